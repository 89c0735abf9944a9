"""The protocol between a benchmark and an application that it starts: one process, several phases.

The application prints `{"ready": true}` when it is set up. For each line that it reads, a JSON object with `kind`,
`begin_ns` (CLOCK_MONOTONIC) and `seconds`, it works until the phase ends and prints one JSON object. Work begins at
once; only what ends between the begin and the end of the phase counts. Every tenant of a phase has the same begin.
"""

import json
import sys
import time
from collections.abc import Callable
from contextlib import redirect_stdout
from dataclasses import dataclass, field
from typing import Any


@dataclass(slots=True)
class LoadPhase:
    """One phase: what to do, and when things ended.

    Attributes:
        kind: of the work.
        begin_ns: from when on things count, CLOCK_MONOTONIC.
        end_ns: when the phase ends.
        times_ms: how long each piece of work took, of those that ended in the phase.
        ends_ns: when they ended.
        choices: what an autotuner has chosen, by what it was chosen for.
    """

    kind: str
    begin_ns: int
    end_ns: int
    times_ms: list[float] = field(default_factory=list)
    ends_ns: list[int] = field(default_factory=list)
    choices: dict[str, str] = field(default_factory=dict)

    def is_over(self) -> bool:
        """Whether the end of the phase has passed."""
        return time.monotonic_ns() >= self.end_ns

    def add(self, begun_ns: int) -> None:
        """Count a piece of work that began at `begun_ns` and has just ended."""
        now = time.monotonic_ns()
        if self.begin_ns <= now < self.end_ns:
            self.times_ms.append((now - begun_ns) / 1e6)
            self.ends_ns.append(now)

    def answer(self) -> dict[str, Any]:
        """Return what the application prints: times, pieces per second from the first end to the last, and choices."""
        span = (self.ends_ns[-1] - self.ends_ns[0]) / 1e9 if len(self.ends_ns) > 1 else 0
        rate = (len(self.ends_ns) - 1) / span if span else 0.0
        return {"times_ms": self.times_ms, "per_second": rate, "choices": self.choices}


def serve(kinds: dict[str, Callable[[LoadPhase], None]]) -> None:
    """Print that the application is ready, then run each phase that is asked for, until the input ends.

    What libraries print meanwhile goes to standard error.
    """
    answers = sys.stdout
    print(json.dumps({"ready": True}), file=answers, flush=True)
    with redirect_stdout(sys.stderr):
        for line in sys.stdin:
            asked = json.loads(line)
            phase = LoadPhase(asked["kind"], asked["begin_ns"], asked["begin_ns"] + int(asked["seconds"] * 1e9))
            kinds[phase.kind](phase)
            print(json.dumps(phase.answer()), file=answers, flush=True)
