"""What a node has measured of a container on one card: an entry of `status.usage` of its GPUNode.

A device plugin writes the entries, and the extender reads them. An entry covers a period of an hour at most. Its
figures grow until the period ends, so that a later version of an entry replaces the earlier one, and a version that
nobody read is no loss. `levels` is a histogram of minutes: how many of them had a share of the card's time from 0 to
under 5 percent, from 5 to under 10, and so on; the last level is 100 percent.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final

from vgpu.domain.identifiers import CardUuid, ContainerName, PodUid

LEVEL_PERCENT: Final = 5
LEVELS: Final = 100 // LEVEL_PERCENT + 1
MAX_ENTRIES: Final = 512  # 8 cards with 32 containers each, in this hour and in the last one
WAIT_CAUSES: Final = ("turn", "share", "drain", "queued")  # why launches wait: `vgpu.domain.formats.region.Activity`
MAX_MIB: Final = (1 << 24) - 1


@dataclass(frozen=True, slots=True)
class MeasuredUse:
    """GPU time and memory of a container on a card in a period.

    Attributes:
        pod_uid: UID of the pod.
        container: name of the container.
        gpu: UUID of the card.
        from_ms: beginning of the period, in Unix milliseconds.
        until_ms: until when it was measured.
        gpu_ms: GPU time used in the period.
        percent: of the card's time, in the last full minute, or so far in the first one.
        used_mib: memory in use at `until_ms`.
        peak_mib: the most memory that was in use, since the container or the device plugin started.
        levels: number of minutes by level, without the zeros at the end.
        idle_ms: for how long the container had used the card not at all, at `until_ms`; None where that is unknown.
        wait_ms: for how long launches waited in the period, for each of WAIT_CAUSES; empty where that is unknown.
    """

    pod_uid: PodUid
    container: ContainerName
    gpu: CardUuid
    from_ms: int
    until_ms: int
    gpu_ms: int
    percent: int = 0
    used_mib: int = 0
    peak_mib: int = 0
    levels: tuple[int, ...] = ()
    idle_ms: int | None = None
    wait_ms: tuple[int, ...] = ()


def level_of(percent: float) -> int:
    """Return the level of a share of the card's time."""
    return min(LEVELS - 1, max(0, int(percent // LEVEL_PERCENT)))


def percentile(levels: Sequence[int], fraction: float) -> float | None:
    """Return the percent of a card's time below which `fraction` of the minutes are; None without minutes.

    The minutes of a level are assumed to be spread evenly over its five percent.
    """
    wanted, below = fraction * sum(levels), 0
    for level, minutes in enumerate(levels):
        if minutes and below + minutes >= wanted:
            return min(100.0, LEVEL_PERCENT * (level + (wanted - below) / minutes))
        below += minutes
    return None


def added(many: Iterable[Sequence[int]]) -> list[int]:
    """Add histograms up."""
    total = [0] * LEVELS
    for histogram in many:
        for level, minutes in enumerate(histogram[:LEVELS]):
            total[level] += minutes
    return total


def as_json(use: MeasuredUse) -> dict[str, Any]:
    """Write an entry."""
    idle = {} if use.idle_ms is None else {"idleMs": use.idle_ms}
    waits = {"waitMs": list(use.wait_ms)} if any(use.wait_ms) else {}
    return {
        "podUID": use.pod_uid,
        "container": use.container,
        "gpu": use.gpu,
        "fromMs": use.from_ms,
        "untilMs": use.until_ms,
        "gpuMs": use.gpu_ms,
        "percent": use.percent,
        "usedMiB": use.used_mib,
        "peakMiB": use.peak_mib,
        "levels": list(use.levels),
        **idle,
        **waits,
    }
