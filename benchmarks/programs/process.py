"""The programs of several processes that say a line, hear a line, and say what came of it."""

import json
import subprocess
from collections.abc import Mapping
from typing import Any, Self

from benchmarks.programs import build


class Speaker:
    """A command that hears and says lines, ended when it is left."""

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

    def hear(self) -> dict[str, Any]:
        """Return the next line that it says. Raises RuntimeError where it ends instead."""
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            raise RuntimeError(f"{self._name} ended with {self._process.wait()}")
        said: dict[str, Any] = json.loads(line)
        return said

    def go_on(self) -> None:
        """Say the line that it waits for."""
        self.say("")

    def say(self, line: str) -> None:
        """Say a line that it waits for."""
        assert self._process.stdin is not None
        self._process.stdin.write(f"{line}\n")
        self._process.stdin.flush()

    def ask(self, line: str) -> dict[str, Any]:
        """Say a line and return the answer."""
        self.say(line)
        return self.hear()

    def wait(self) -> int:
        """Return its exit code."""
        return self._process.wait()


class Program(Speaker):
    """One of `build.PROGRAMS` with its arguments."""

    def __init__(self, env: Mapping[str, str], name: str, *arguments: object) -> None:
        super().__init__(env, str(build.program(name)), *map(str, arguments))
