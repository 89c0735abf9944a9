"""Running programs that read a line, and answer each line with a line of JSON."""

import json
import subprocess
from collections.abc import Mapping
from typing import Any, Self

from benchmarks.programs import build


class LineProcess:
    """A command that reads and prints lines. It is killed when the context is left."""

    def __init__(self, env: Mapping[str, str], *command: str) -> None:
        self._name = " ".join(command)
        self._process = subprocess.Popen(
            command, env=dict(env), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.kill()
        self._process.communicate()

    def read(self) -> dict[str, Any]:
        """Return the next line it prints. Raises RuntimeError when it ends instead."""
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            raise RuntimeError(f"{self._name} ended with {self._process.wait()}")
        answer: dict[str, Any] = json.loads(line)
        return answer

    def write(self, line: str = "") -> None:
        """Send a line; an empty line makes a program that waits go on."""
        assert self._process.stdin is not None
        self._process.stdin.write(f"{line}\n")
        self._process.stdin.flush()

    def ask(self, line: str) -> dict[str, Any]:
        """Send a line and return the answer."""
        self.write(line)
        return self.read()

    def wait(self) -> int:
        """Wait for its end and return its exit code."""
        return self._process.wait()


class CompiledProgram(LineProcess):
    """One of `build.PROGRAMS`, with its arguments."""

    def __init__(self, env: Mapping[str, str], name: str, *arguments: object) -> None:
        super().__init__(env, str(build.program(name)), *map(str, arguments))
