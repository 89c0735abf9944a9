"""What a container should ask for, from what it has used. Pure."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from vgpu.domain.cards import measured_use
from vgpu.domain.quantity import FULL_CORES

FRACTION: Final = 0.95  # of the minutes: p95
LEAST_MINUTES: Final = 60  # before any advice is given
_MARGIN: Final = 1.15
_STEP_CORES: Final = 5
_STEP_MIB: Final = 256
_WORTH_IT: Final = 0.8  # advice to ask for less: at most this part of what is asked for
_AT_THE_LIMIT: Final = 0.95


@dataclass(frozen=True, slots=True)
class AskedShare:
    """What a container asks for on one card; `cores` is None where it asks for no guaranteed time."""

    memory_mib: int
    cores: int | None = None
    whole: bool = False


@dataclass(frozen=True, slots=True)
class RightSize:
    """What was used, and what to ask for.

    Attributes:
        mean_cores: percent of the card's time, on average.
        p95_cores: percent of the card's time that 95 percent of the minutes do not exceed; None without minutes.
        peak_mib: the most memory that was in use.
        cores: percent of the card's time to ask for; None: as it is.
        memory_mib: MiB to ask for; None: as it is.
        is_enough: whether enough minutes were measured for advice.
    """

    mean_cores: float
    p95_cores: float | None
    peak_mib: int
    cores: int | None = None
    memory_mib: int | None = None
    is_enough: bool = True


def right_size(asked: AskedShare, levels: Sequence[int], gpu_ms: int, measured_ms: int, peak_mib: int) -> RightSize:
    """Return what a container should ask for.

    Args:
        asked: what it asks for now.
        levels: histogram of the minutes (`vgpu.domain.cards.measured_use`).
        gpu_ms: GPU time that it used.
        measured_ms: the time in which that was measured.
        peak_mib: the most memory that was in use.
    """
    mean = FULL_CORES * gpu_ms / measured_ms if measured_ms else 0.0
    p95 = measured_use.percentile(levels, FRACTION)
    if sum(levels) < LEAST_MINUTES or p95 is None:
        return RightSize(mean, p95, peak_mib, is_enough=False)
    return RightSize(mean, p95, peak_mib, _cores(asked, p95), _memory(asked, peak_mib))


def unused_s(asked: AskedShare, found: RightSize, measured_s: float) -> float:
    """Return how many seconds of a whole card were guaranteed, or held with the card, and not used."""
    guaranteed = FULL_CORES if asked.whole else asked.cores or 0
    return max(0.0, guaranteed - found.mean_cores) / FULL_CORES * measured_s


def sentences(asked: AskedShare, found: RightSize) -> Iterator[str]:
    """Yield the advice for people."""
    if found.cores is not None and asked.cores is not None:
        verb = "less" if found.cores < asked.cores else "more"
        yield f"ask for {verb} time: vgpu.io/gpu-cores: {found.cores} (asked {asked.cores} %, {_used(found)})"
    if found.memory_mib is not None:
        why = f"asked {asked.memory_mib}, peak {found.peak_mib}"
        yield f"ask for less memory: vgpu.io/gpu-mem: {found.memory_mib} ({why})"


def _used(found: RightSize) -> str:
    return f"used {found.p95_cores or 0.0:.0f} % at p95"


def _cores(asked: AskedShare, p95: float) -> int | None:
    if asked.whole or not asked.cores:
        return None
    enough = min(FULL_CORES, max(_STEP_CORES, _up(_MARGIN * p95, _STEP_CORES)))
    is_less = enough <= _WORTH_IT * asked.cores
    is_more = p95 >= _AT_THE_LIMIT * asked.cores and enough > asked.cores
    return enough if is_less or is_more else None


def _memory(asked: AskedShare, peak_mib: int) -> int | None:
    """Return less memory only: a container that reaches its limit is refused, and may not need more."""
    if asked.whole or not peak_mib:
        return None
    enough = max(_STEP_MIB, _up(_MARGIN * peak_mib, _STEP_MIB))
    return enough if enough <= _WORTH_IT * asked.memory_mib else None


def _up(amount: float, step: int) -> int:
    return -int(-amount // step) * step
