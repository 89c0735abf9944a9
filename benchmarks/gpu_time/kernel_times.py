"""The GPU time of a program's own kernels, from a trace that contains other programs' time slices."""

import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

Span = tuple[int, int]  # begin and end, in ns

_INTERRUPTED: Final = 1.5  # times the usual duration: a time slice of another program is a hundred times a short kernel
_JITTER_NS: Final = 3000


@dataclass(frozen=True, slots=True)
class KernelTimes:
    """What a program's kernels took, in seconds.

    Attributes:
        own_s: without the slices of others.
        slices_s: what was taken off for them.
        interrupted: number of kernels that contained some.
    """

    own_s: float
    slices_s: float
    interrupted: int


def own_times(spans: Sequence[Span], requests: int) -> KernelTimes:
    """Return the time of kernels on one stream that repeat with each request.

    In time slices, a kernel that is interrupted lasts from its begin to its end. So one that takes far longer than the
    kernels at the same place of the other requests counts as they do. Where the kernels do not repeat, nothing is taken
    off.
    """
    ordered = [end - begin for begin, end in sorted(spans)]
    if not requests or len(ordered) % requests:
        return KernelTimes(sum(ordered) / 1e9, 0.0, 0)
    each = len(ordered) // requests
    usual = [statistics.median(ordered[place::each]) for place in range(each)]
    excess = [
        took - usual[number % each]
        for number, took in enumerate(ordered)
        if took > _INTERRUPTED * usual[number % each] + _JITTER_NS
    ]
    return KernelTimes((sum(ordered) - sum(excess)) / 1e9, sum(excess) / 1e9, len(excess))
