"""A conversation with a process that evaluates expressions: one line in, one line of JSON out."""

import json
import signal
import subprocess
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class ProbeSession:
    """A running process to which each line is an expression: ``session("alloc(4096)")`` returns its value."""

    process: subprocess.Popen[str]

    def __call__(self, expression: str) -> Any:
        """Send an expression and wait for its value."""
        self.tell(expression)
        return self.answer()

    def tell(self, expression: str) -> None:
        """Send an expression; `answer` returns its value later."""
        assert self.process.stdin is not None
        self.process.stdin.write(f"{expression}\n")
        self.process.stdin.flush()

    def answer(self) -> Any:
        """Wait for the value of the oldest expression that has no answer yet."""
        assert self.process.stdout is not None
        return json.loads(self.process.stdout.readline())

    def kill(self) -> None:
        """Send SIGKILL and wait for the process's end."""
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()
