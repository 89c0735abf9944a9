"""Memory in slices, which the kubelet counts: the one place where MiB, slices and percent are converted.

MiB are rounded up to slices, so that every MiB of a card can be given out. A percent of a card is rounded down, in
slices and in MiB, so that N shares of 100 / N percent fit on a card N times, whatever its size.
"""

from dataclasses import dataclass

from vgpu.domain.quantity import WHOLE_PERCENT


@dataclass(frozen=True, slots=True)
class CardPart:
    """A part of one card. Exactly `slices` slices are needed for `memory_mib`."""

    slices: int
    memory_mib: int


def holding(memory_mib: int, slice_mib: int) -> int:
    """Return the number of slices that hold this many MiB; a partial slice counts as one.

    It is 0 where a slice has no size: a GPUNode that was just created has no status, and offers nothing.
    """
    return -(-memory_mib // slice_mib) if slice_mib else 0


def percent_of(card_mib: int, percent: int, slice_mib: int) -> CardPart | None:
    """Return a percent of a card of `card_mib` MiB; None where that is less than a slice."""
    slices = holding(card_mib, slice_mib) * percent // WHOLE_PERCENT
    return CardPart(slices, min(card_mib * percent // WHOLE_PERCENT, slices * slice_mib)) if slices else None


def least_percent(card_mib: int, slice_mib: int) -> int:
    """Return the least percent of a card that is a slice or more."""
    return -(-WHOLE_PERCENT // holding(card_mib, slice_mib))
