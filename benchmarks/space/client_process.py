"""Starts a process of `benchmarks.space.client`, and tells it what to do."""

import json
import select
import subprocess
import sys
from collections.abc import Mapping

from benchmarks.record import machine


class Client:
    """A process of `benchmarks.space.client`."""

    def __init__(self, environment: Mapping[str, str]) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-m", "benchmarks.space.client"],
            cwd=machine.ROOT,
            env=dict(environment),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def tell(self, line: str) -> None:
        """Give it a line; `answer` returns what it says."""
        assert self.process.stdin is not None
        self.process.stdin.write(f"{line}\n")
        self.process.stdin.flush()

    def answer(self) -> int | None:
        """Return its answer; None where it has ended."""
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        return int(json.loads(line)) if line else None

    def answers_within(self, seconds: float) -> bool:
        """Whether there is an answer before the time is over."""
        assert self.process.stdout is not None
        return bool(select.select([self.process.stdout], [], [], seconds)[0])

    def __call__(self, line: str) -> int | None:
        """Give it a line and return its answer."""
        self.tell(line)
        return self.answer()

    def within(self, seconds: float, line: str) -> int | None:
        """Give it a line and return its answer; None where it has ended, or does not answer in time."""
        try:
            self.tell(line)
        except BrokenPipeError:
            return None
        return self.answer() if self.answers_within(seconds) else None

    def beside(self) -> tuple[int, float, int]:
        """End its kernels that `beside` began: their number, the longest time between two in ms, the last result."""
        self.tell("enough")
        assert self.process.stdout is not None
        count, longest_ms, result = json.loads(self.process.stdout.readline())
        self.answer()
        return int(count), float(longest_ms), int(result)

    def end(self) -> None:
        """Kill it."""
        self.process.kill()
        self.process.communicate()
