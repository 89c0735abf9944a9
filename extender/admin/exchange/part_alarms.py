"""What the extender knows of its own parts: what does not work, and since when its answers are old. Pure.

The admin's process asks for it with each snapshot: `/summary` shows the alarms, and every answer says since when it is
stale.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final

from extender.history.lag import Lag

SILENT_S: Final = 150.0  # of a watch: after 120 s of silence the API server is asked for a new one
LEASES_SILENT_S: Final = 30.0  # the leading extender alone renews its Lease every 2 s
REPLACED_MS: Final = 7 * 86_400_000  # for how long the loss of a database is told
LEASES: Final = "leases"
OUT_OF_REACH: Final = (
    "this replica does not know the address of the leading one, whose history answers for all: it refuses questions "
    "about usage. Start the extenders with --admin-advertise-address, or name one database for all by --history-url "
    "(docs/history.md)"
)


@dataclass(frozen=True, slots=True)
class PartAlarm:
    """Something that does not work; `severity` is error or warning, `since_ms` Unix milliseconds, 0 where unknown."""

    severity: str
    about: str
    reason: str
    detail: str
    since_ms: int = 0


@dataclass(frozen=True, slots=True)
class WatchAge:
    """A watch: for how long it has heard nothing (None before its first list), and how many objects it has skipped."""

    name: str
    silent_s: float | None
    unreadable: int = 0


@dataclass(frozen=True, slots=True)
class PartHealth:
    """The alarms, and since when the cluster's state is old: Unix milliseconds, 0 where it is fresh."""

    alarms: tuple[PartAlarm, ...] = ()
    stale_since_ms: int = 0


HEALTHY: Final = PartHealth()


def health(
    watches: Iterable[WatchAge],
    lag: Lag | None,
    *,
    is_led: bool,
    now_ms: int,
    is_history_out_of_reach: bool = False,
    why_not_led: str = "",
) -> PartHealth:
    """Return what is wrong with the extender.

    `lag` is None where no history is kept. `is_led` says whether a replica holds the Lease of the one that binds,
    `why_not_led` what keeps every replica from it, as far as that is known.
    `is_history_out_of_reach`: the history is another replica's, which has published no address.
    """
    known = list(watches)
    silent = [(watch, silent_s) for watch in known if (silent_s := watch.silent_s or 0.0) > _limit_s(watch.name)]
    alarms = [
        PartAlarm(
            "error", "extender", "WatchSilent",
            f"the API server has sent nothing about {watch.name}: what is shown of them is old",
            _before(now_ms, silent_s),
        )
        for watch, silent_s in silent
    ]  # fmt: skip
    alarms += [
        PartAlarm(
            "warning", "extender", "UnreadableObjects",
            f"{watch.unreadable} versions of {watch.name} could not be read and were skipped; the log names them",
        )
        for watch in known
        if watch.unreadable
    ]  # fmt: skip
    if not is_led:
        detail = "; ".join(filter(None, ("no replica holds the Lease: no pod is bound", why_not_led)))
        alarms.append(PartAlarm("error", "extender", "NoLeader", detail))
    alarms += _of_history(lag, now_ms) if lag is not None else ()
    if is_history_out_of_reach:
        alarms.append(PartAlarm("warning", "history", "HistoryOutOfReach", OUT_OF_REACH))
    return PartHealth(tuple(alarms), min((_before(now_ms, silent_s) for _, silent_s in silent), default=0))


def _of_history(lag: Lag, now_ms: int) -> Iterator[PartAlarm]:
    waiting = lag.waiting + lag.queued
    if lag.error:
        detail = f"nothing is stored: {lag.error}; {waiting} records wait"
        yield PartAlarm("error", "history", "HistoryStoresNothing", detail, lag.since_ms)
    if lost := lag.dropped + lag.unreadable + lag.refused:
        detail = f"{lost} records are lost since the start: {lag.dropped} dropped, {lag.unreadable} unreadable, "
        yield PartAlarm("warning", "history", "HistoryLost", f"{detail}{lag.refused} refused by the database")
    if lag.replaced_ms and now_ms - lag.replaced_ms < REPLACED_MS:
        detail = "the database's file was removed or replaced: usage and events from before are gone"
        yield PartAlarm("warning", "history", "HistoryReplaced", detail, lag.replaced_ms)


def _limit_s(watch: str) -> float:
    return LEASES_SILENT_S if watch == LEASES else SILENT_S


def _before(now_ms: int, seconds: float) -> int:
    """Return a time before now, in full seconds, so that it stays equal from one snapshot to the next."""
    return (now_ms - int(seconds * 1000)) // 1000 * 1000
