"""Why a running program uses its card badly, from two readings of its region. Pure.

The limiter counts while launches pass its launch gate: with a share of the card's time, or beside other containers.
Without any such launch nothing is known, and that is no finding. Waits are sums over threads, so that they may exceed
the time that has passed.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from vgpu.region import Activity, CardUse, Wait
from vgpu.workloads.diagnose.catalogue import Code
from vgpu.workloads.diagnose.finding import Finding

LEAST_NS: Final = 2_000_000_000  # between two readings
_WAITS: Final = 0.10  # of the time, from which on a wait is worth a finding
_GAPS: Final = 0.20
_LONG_GAP_NS: Final = 5_000_000  # longer than the host takes for any launch: it does something else
_SYNCS_PER_S: Final = 20
_NS: Final = 1e9


@dataclass(frozen=True, slots=True)
class Period:
    """What a container did on one card between two readings.

    Attributes:
        ns: time between the readings.
        gpu_ns: GPU time used in turns.
        activity: the later reading's counters less the earlier one's; `last_launch_at_ns` is the later reading's.
        has_launched: whether a launch passed the gate in between.
        cores: percent of the card's time that the container has, 0 without a share.
    """

    ns: int
    gpu_ns: int
    activity: Activity
    has_launched: bool
    cores: int = 0

    def part(self, ns: int) -> float:
        """Return a time as a part of the period, 1 at most."""
        return min(1.0, ns / self.ns)


def period(before: CardUse, after: CardUse, ns: int, cores: int) -> Period | None:
    """Return what was done between two readings; None where they are too close, or the region was replaced.

    A region of version 1 counts no activity: then nothing was launched as far as is known.
    """
    old, new = before.activity, after.activity
    launched = new.last_launch_at_ns
    made = Activity(
        share=_less(new.share, old.share),
        turn=_less(new.turn, old.turn),
        last_launch_at_ns=launched,
        host_gaps=new.host_gaps - old.host_gaps,
        host_gap_ns=new.host_gap_ns - old.host_gap_ns,
        synchronizes=new.synchronizes - old.synchronizes,
        synchronize_ns=new.synchronize_ns - old.synchronize_ns,
    )
    gpu_ns = after.gpu_ns - before.gpu_ns
    counts = (gpu_ns, made.host_gap_ns, made.synchronizes, made.share.ns, made.turn.ns)
    if ns < LEAST_NS or min(counts) < 0:
        return None
    return Period(ns, gpu_ns, made, launched != old.last_launch_at_ns, cores)


def is_measured(card: CardUse) -> bool:
    """Whether the container has ever launched through the gate, so that its region says what it does."""
    return card.activity.last_launch_at_ns > 0


def check(seen: Period) -> Iterator[Finding]:
    """Yield what keeps a program from its card, in the order of what costs the most."""
    if not seen.has_launched:
        yield Finding(Code.IDLE, (), f"no kernel was launched in {seen.ns / _NS:.0f} s")
        return
    found = [*_waits(seen), *_gaps(seen)]
    yield from (finding for _, finding in sorted(found, key=lambda each: -each[0]))


def _waits(seen: Period) -> Iterator[tuple[float, Finding]]:
    share, turn = seen.part(seen.activity.share.ns), seen.part(seen.activity.turn.ns)
    used = f"it used {seen.part(seen.gpu_ns):.0%} of the card's time"
    if share >= _WAITS:
        text = f"launches waited {share:.0%} of the time for the own share of {seen.cores} %; {used}"
        yield share, Finding(Code.SHARE_USED_UP, (), text)
    if turn >= _WAITS:
        text = f"launches waited {turn:.0%} of the time for other containers of the card; {used}"
        yield turn, Finding(Code.WAITS_FOR_TURNS, (), text)


def _gaps(seen: Period) -> Iterator[tuple[float, Finding]]:
    """Yield why the card was idle although it was the container's turn."""
    activity = seen.activity
    gaps = seen.part(activity.host_gap_ns)
    if gaps < _GAPS or not activity.host_gaps:
        return
    seconds = seen.ns / _NS
    mean_us = activity.host_gap_ns / activity.host_gaps / 1000
    text = f"the card was idle {gaps:.0%} of the time, in {activity.host_gaps / seconds:,.0f} gaps a second"
    waited = f"{activity.synchronizes / seconds:,.0f} waits for the card a second"
    if mean_us * 1000 >= _LONG_GAP_NS:
        yield gaps, Finding(Code.HOST_BOUND, (), f"{text} of {mean_us / 1000:,.0f} ms")
    elif activity.synchronizes / seconds >= _SYNCS_PER_S and activity.synchronizes * 2 >= activity.host_gaps:
        yield gaps, Finding(Code.SYNC_BOUND, (), f"{text}, with {waited}")
    else:
        yield gaps, Finding(Code.LAUNCH_BOUND, (), f"{text} of {mean_us:,.0f} us")


def _less(new: Wait, old: Wait) -> Wait:
    return Wait(new.ns - old.ns, new.count - old.count)
