"""What `vgpu top` shows: a row for each allocation and card, from what was read now and the time before. Pure."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from vgpu import region
from vgpu.cli.local.allocations import Sight
from vgpu.limits import ANY_GPU, CardLimit, Limits
from vgpu.region import CardUse, Window

Key = tuple[str, str]  # an allocation's ID and a card


@dataclass(frozen=True, slots=True)
class Row:
    """One allocation on one card, `*` before it has used any.

    Attributes:
        limit_bytes: None for no limit.
        policy: None, with `cores` and `priority` 0, where the limits cannot be read.
        share_1s: of the card's time, 0 to 1, over the last second; None where nothing was ever measured, as for those
            without a share and without neighbours.
        share_10s: over the last ten.
        throttled: of the time since the last look, what launches waited, all together; None at the first look.
    """

    id: str
    name: str
    gpu: str
    used_bytes: int
    limit_bytes: int | None
    policy: str | None
    cores: int
    priority: int
    share_1s: float | None
    share_10s: float | None
    throttled: float | None
    delayed_launches: int
    longest_wait_us: int
    refusals: int


@dataclass(frozen=True, slots=True)
class Look:
    """What every row waited so far, and when that was (CLOCK_MONOTONIC, ns)."""

    at_ns: int = 0
    throttled_ns: Mapping[Key, int] | None = None


def rows(sights: Iterable[Sight], before: Look, now_ns: int) -> list[Row]:
    """Make the rows of a look at `now_ns`."""
    return [_row(sight, card, before, now_ns) for sight in sights for card in sight.cards or (_unused(),)]


def look(sights: Iterable[Sight], now_ns: int) -> Look:
    """Keep what the next rows are to be compared with."""
    return Look(now_ns, {(s.folder.name, card.gpu): card.throttled_ns for s in sights for card in s.cards})


def _unused() -> CardUse:
    return CardUse(ANY_GPU, 0, None, 0, 0, 0)


def _row(sight: Sight, card: CardUse, before: Look, now_ns: int) -> Row:
    limits = sight.limits or Limits(())
    limit = _limit_of(limits, card.gpu)
    return Row(
        id=sight.folder.name,
        name=sight.name,
        gpu=card.gpu,
        used_bytes=card.used_bytes,
        limit_bytes=limit.memory_bytes,
        policy=str(limits.compute_policy) if sight.limits else None,
        cores=limit.cores,
        priority=limits.priority,
        share_1s=_share(card, card.second, now_ns),
        share_10s=_share(card, card.ten_seconds, now_ns),
        throttled=_throttled((sight.folder.name, card.gpu), card, before, now_ns),
        delayed_launches=card.delayed_launches,
        longest_wait_us=card.longest_wait_us,
        refusals=card.refusals,
    )


def _limit_of(limits: Limits, gpu: str) -> CardLimit:
    """The card's own entry, else the one for every card, else nothing may be used; before any use the first."""
    by_gpu = {each.gpu: each for each in limits.cards}
    if gpu == ANY_GPU and limits.cards:
        return limits.cards[0]
    return by_gpu.get(gpu) or by_gpu.get(ANY_GPU) or CardLimit(gpu, 0, 0)


def _share(card: CardUse, window: Window, now_ns: int) -> float | None:
    return region.recent_share(card, window, now_ns) if window.begun_ns else None


def _throttled(key: Key, card: CardUse, before: Look, now_ns: int) -> float | None:
    former = (before.throttled_ns or {}).get(key)
    if former is None or now_ns <= before.at_ns:
        return None
    return max(0, card.throttled_ns - former) / (now_ns - before.at_ns)
