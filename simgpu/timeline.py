"""What a simulated card did last, stretch by stretch: ``python -m simgpu.timeline`` with ``SIMGPU_STATE`` set.

A gap of 0.2 ms is a handover, one of 0.53 ms a switch away from a context that had work left; what is more, the card
was idle. A stretch of no length is an event that a context was put on the card for.
"""

import os
import struct
import sys
from dataclasses import dataclass
from pathlib import Path

from simgpu.usage import SHARES_END

_QUEUES, _RUNS = 512, 128
_HEAD = struct.Struct("<QQQQQQII64s")  # lock, looked, at, ids, slice, switching, current, high, pending
_QUEUE = struct.Struct("<QQQQQQ")  # id, owner, submitted, done, ended, runs
_RUN = struct.Struct("<QQ")  # from, at
_QUEUE_SIZE = _QUEUE.size + _RUNS * _RUN.size
_CARD_SIZE = _HEAD.size + _QUEUES * _QUEUE_SIZE


@dataclass(frozen=True, slots=True, order=True)
class Run:
    """Work of one context without a break, in ns; `begun` is of CLOCK_MONOTONIC."""

    begun: int
    queue: int
    length: int


def runs(state: Path, place: int = 0) -> list[Run]:
    """The last ones of each context of the card that was used first, or of a later one, in their order."""
    with (state / "state").open("rb") as file:
        file.seek(SHARES_END + place * _CARD_SIZE)
        raw = file.read(_CARD_SIZE)
    high = _HEAD.unpack_from(raw)[7]
    return sorted(run for queue in range(1, high) for run in _runs_of(raw, queue))


def _runs_of(raw: bytes, queue: int) -> list[Run]:
    start = _HEAD.size + queue * _QUEUE_SIZE
    *_, done, _, count = _QUEUE.unpack_from(raw, start)
    numbers = range(max(0, count - _RUNS), count)
    begun = [_RUN.unpack_from(raw, start + _QUEUE.size + number % _RUNS * _RUN.size) for number in numbers]
    ends = [*(position for position, _ in begun[1:]), done]
    return [Run(at, queue, end - position) for (position, at), end in zip(begun, ends, strict=True)]


def main() -> None:
    """Say them."""
    ended = 0
    for run in runs(Path(os.environ["SIMGPU_STATE"])):
        gap = run.begun - ended if ended else 0
        sys.stdout.write(f"{gap / 1e6:8.3f} ms nothing, then context {run.queue} for {run.length / 1e6:8.3f} ms\n")
        ended = run.begun + run.length


if __name__ == "__main__":
    main()
