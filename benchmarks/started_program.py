"""A process of `benchmarks.diagnose.programs`: starts, waits for `begin`, computes, and tells its steps per second."""

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from typing import Any, Self


class StartedProgram:
    """A process that has not begun to compute. It is terminated when the context is left."""

    def __init__(
        self, program: str, gpu: int, seconds: float, before: Sequence[str] = (), *, cured: bool = False
    ) -> None:
        """Start it on a card; `before` is the beginning of the command line, such as `vgpu run --`."""
        command = [*before, sys.executable, "-m", "benchmarks.diagnose.programs", program, str(seconds)]
        env = {**os.environ, "CUDA_VISIBLE_DEVICES": str(gpu)}
        self._process = subprocess.Popen(
            [*command, *["--cured"] * cured], env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.terminate()
        self._process.communicate()

    def begin(self) -> float:
        """Let it compute; return when it is warm: the UNIX time in seconds at which it began to compute."""
        assert self._process.stdin
        self._answer()
        self._process.stdin.write("\n")
        self._process.stdin.flush()
        return float(self._answer()["first"])

    def end(self) -> tuple[float, float]:
        """Wait for the end; return the steps per second, and the UNIX time in seconds of the end."""
        answer = self._answer()
        return float(answer["steps_per_s"]), float(answer["ended"])

    def _answer(self) -> Any:
        assert self._process.stdout
        return json.loads(self._process.stdout.readline())
