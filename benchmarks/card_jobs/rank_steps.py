"""The protocol between the benchmark and a process of a job, and its loop of steps.

The process prints `{"ready": true}` when its framework is imported. Each line that it reads is a JSON object with a
`kind`, and `timeout_s`, after which the process writes where it is and ends; each is answered by a line.
prepare: join the other ranks, build the model, and run a few steps.
steps: run steps, also while `warm_s` pass, until `seconds` after `begin_ns` (CLOCK_MONOTONIC); answers when the steps
ended of those that ended from the begin on. `phase` is a number that no phase of the job had before.
trace: run `steps` steps under the framework's profiler; answers the kernels of each card.
"""

import collections
import faulthandler
import json
import os
import sys
import time
import traceback
from collections.abc import Callable
from typing import Any, Final, Protocol

from benchmarks.card_jobs.kernel_spans import CardSpans
from benchmarks.card_jobs.seat import LastStep, Seat

PREPARE_STEPS: Final = 4


class StepProgram(Protocol):
    """A program of a job. `ahead`: how many steps its host may be ahead of the card."""

    ahead: int

    def step(self) -> Callable[[], object]:
        """Launch a step, and return what waits for its end."""

    def trace(self, run: Callable[[], None]) -> CardSpans:
        """Run a function and return the kernels that cards had meanwhile."""


class RankServer:
    """Carries requests out with the program of a seat."""

    def __init__(self, seat: Seat, make: Callable[[Seat], StepProgram]) -> None:
        self._seat, self._make = seat, make
        self._program: StepProgram | None = None

    @property
    def program(self) -> StepProgram:
        """Return the program, which is made with the first request."""
        if self._program is None:
            self._program = self._make(self._seat)
        return self._program

    def answer(self, request: dict[str, Any]) -> dict[str, Any]:
        """Carry a request out."""
        if request["kind"] == "prepare":
            self._run(PREPARE_STEPS)
            return {"prepared": True}
        if request["kind"] == "trace":
            return {"cards": self.program.trace(lambda: self._run(request["steps"]))}
        end_ns = request["begin_ns"] + int(request["seconds"] * 1e9)
        ends = timed_steps(self.program, self._seat, LastStep(self._seat.folder, request["phase"]), end_ns)
        return {"ends_ns": [end for end in ends if request["begin_ns"] <= end < end_ns]}

    def _run(self, steps: int) -> None:
        for _ in range(steps):
            self.program.step()()


def timed_steps(program: StepProgram, seat: Seat, last: LastStep, end_ns: int) -> list[int]:
    """Run steps until a time of the monotonic clock; return when each one ended that was waited for in the loop."""
    waiting: collections.deque[Callable[[], object]] = collections.deque()
    ends, launched = [], 0
    while not last.is_reached(launched):
        waiting.append(program.step())
        launched += 1
        if seat.rank == 0 and time.monotonic_ns() >= end_ns:
            last.choose(launched, program.ahead)
        if len(waiting) > program.ahead:
            waiting.popleft()()
            ends.append(time.monotonic_ns())
    for wait in waiting:
        wait()
    return ends


def serve(make: Callable[[Seat], StepProgram]) -> None:
    """Serve requests until the input ends, then end the process.

    It ends without the frameworks' own tear-down, which waits for ranks that may be gone.
    """
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # libraries print, too
    code = 1
    try:
        _serve(
            RankServer(Seat.of(sys.argv[1:]), make), lambda answer: print(json.dumps(answer), file=answers, flush=True)
        )
        code = 0
    except BaseException:  # noqa: BLE001  # the parent reads the traceback; threads of NCCL must not delay the end
        traceback.print_exc()
    finally:
        sys.stderr.flush()
        os._exit(code)


def _serve(server: RankServer, say: Callable[[dict[str, Any]], None]) -> None:
    say({"ready": True})
    for line in sys.stdin:
        request = json.loads(line)
        faulthandler.dump_traceback_later(request["timeout_s"], exit=True)
        answer = server.answer(request)
        faulthandler.cancel_dump_traceback_later()
        say(answer)
