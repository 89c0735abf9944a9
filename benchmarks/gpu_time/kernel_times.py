"""The GPU time of a program, from a trace of its kernels that contains other programs' time slices.

A program's GPU time is that of its kernels, and of the pauses between them in which the next one has been launched: the
card begins it a few microseconds after the end of the one before, and can do nothing else meanwhile.
"""

import itertools
import statistics
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

Span = tuple[int, int]  # begin and end, in ns

_INTERRUPTED: Final = 1.5  # times the usual duration: a time slice of another program is a hundred times a short kernel
_JITTER_NS: Final = 3000
_PAUSE_NS: Final = 4000  # on an H200 nine of ten pauses of small models take 1 to 3 us; longer ones wait for the host


@dataclass(frozen=True, slots=True)
class KernelTimes:
    """What a program's kernels took, in seconds.

    Attributes:
        own_s: without the slices of others.
        pauses_s: between kernels that were launched already.
        slices_s: what was taken off for them.
        interrupted: number of kernels that contained some.
    """

    own_s: float
    pauses_s: float
    slices_s: float
    interrupted: int

    @property
    def gpu_s(self) -> float:
        """The GPU time: kernels, and the pauses between them."""
        return self.own_s + self.pauses_s


def own_times(spans: Sequence[Span], requests: int) -> KernelTimes:
    """Return the time of kernels on one stream that repeat with each request.

    In time slices, a kernel that is interrupted lasts from its begin to its end. So one that takes far longer than the
    kernels at the same place of the other requests counts as they do. Where the kernels do not repeat, nothing is taken
    off.
    """
    by_time = sorted(spans)
    ordered = [end - begin for begin, end in by_time]
    between = (begin - end for (_, end), (begin, _) in itertools.pairwise(by_time))
    pauses_s = sum(pause for pause in between if 0 < pause < _PAUSE_NS) / 1e9
    if not requests or len(ordered) % requests:
        return KernelTimes(sum(ordered) / 1e9, pauses_s, 0.0, 0)
    each = len(ordered) // requests
    usual = [statistics.median(ordered[place::each]) for place in range(each)]
    excess = [
        took - usual[number % each]
        for number, took in enumerate(ordered)
        if took > _INTERRUPTED * usual[number % each] + _JITTER_NS
    ]
    return KernelTimes((sum(ordered) - sum(excess)) / 1e9, pauses_s, sum(excess) / 1e9, len(excess))


def covered(spans: Iterable[tuple[float, float]]) -> float:
    """Return how much time is in any of the spans, in their unit."""
    total, until = 0.0, float("-inf")
    for begin, end in sorted(spans):
        total += max(0, end - max(begin, until))
        until = max(until, end)
    return total
