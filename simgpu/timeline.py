"""Prints when a simulated card worked last, and for which context: `python -m simgpu.timeline` with `SIMGPU_STATE` set.

Contexts of one MPS server work at the same moment, so their runs overlap.

A gap of 0.2 ms is a handover from a context whose work had run out, one of 0.53 ms a switch away from a context that
had work left. In a longer gap the card was idle. A run of length 0 is an event that put its context on the card.
"""

import os
import struct
import sys
from dataclasses import dataclass
from pathlib import Path

from simgpu.usage import CARD_TIMES

_QUEUES, _RUNS, _CHANNELS, _BARRIERS, _SPINS = 512, 128, 17, 64, 64
_HEAD = struct.Struct(
    "<QQQQQQII64sQII"
)  # lock, checked_at, at, ids, slice, switching, current, queues_used, pending, barriers, begun, spinning
_QUEUE = struct.Struct("<QQQQQQQ")  # id, owner, submitted, done, limit, ended, runs
_ORDER_SIZE = (
    (7 + _CHANNELS + 2) * 4 + _SPINS * 16 + _BARRIERS * 32
)  # leader, last, barriers, server, cap, fills, carry, channel, spins, has_begun, ...
_RUN = struct.Struct("<QQQ")  # from, at, stretch
_FULL_SPEED = 1000
_QUEUE_SIZE = _QUEUE.size + _ORDER_SIZE + _RUNS * _RUN.size
_CARD_SIZE = _HEAD.size + _QUEUES * _QUEUE_SIZE


@dataclass(frozen=True, slots=True, order=True)
class BusyPeriod:
    """Work of one context without a break.

    Attributes:
        begun: CLOCK_MONOTONIC, ns.
        queue: number of the context's queue.
        length: ns.
    """

    begun: int
    queue: int
    length: int


def runs(state: Path, card: int = 0) -> list[BusyPeriod]:
    """Return the last runs of all contexts on a card, by time; `card` counts in the order of first use."""
    with (state / "state").open("rb") as file:
        file.seek(CARD_TIMES + card * _CARD_SIZE)
        raw = file.read(_CARD_SIZE)
    queues_used = _HEAD.unpack_from(raw)[7]
    return sorted(run for queue in range(1, queues_used) for run in _runs_of(raw, queue))


def _runs_of(raw: bytes, queue: int) -> list[BusyPeriod]:
    start = _HEAD.size + queue * _QUEUE_SIZE
    *_, done, _, _, count = _QUEUE.unpack_from(raw, start)
    numbers = range(max(0, count - _RUNS), count)
    begun = [
        _RUN.unpack_from(raw, start + _QUEUE.size + _ORDER_SIZE + number % _RUNS * _RUN.size) for number in numbers
    ]
    ends = [*(position for position, _, _ in begun[1:]), done]
    return [
        BusyPeriod(at, queue, (end - position) * stretch // _FULL_SPEED)
        for (position, at, stretch), end in zip(begun, ends, strict=True)
    ]


def main() -> None:
    """Print one line for each run, with the gap before it."""
    ended = 0
    for run in runs(Path(os.environ["SIMGPU_STATE"])):
        gap = run.begun - ended if ended else 0
        sys.stdout.write(f"{gap / 1e6:8.3f} ms gap, then context {run.queue} for {run.length / 1e6:8.3f} ms\n")
        ended = run.begun + run.length


if __name__ == "__main__":
    main()
