"""A running application (`phases.py`), seen from the benchmark that starts it."""

import importlib.util
import json
import os
import select
import subprocess
import sys
import time
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from benchmarks.compute.scenario import SkippedError

READY_TIMEOUT_S = 120.0
LATE_S = 30.0  # after the end of a phase, until an application has answered
WARM_S = 1.5  # all tenants work for this long before a phase counts


class Application:
    """A process that serves phases. Raises SkippedError where it cannot run, RuntimeError when it fails."""

    def __init__(self, module: str, env: Mapping[str, str]) -> None:
        if "SIMGPU_STATE" in os.environ or not importlib.util.find_spec(framework(module)):
            raise SkippedError("needs the framework and a real card")
        self.name = module
        self._process = subprocess.Popen(
            [sys.executable, "-m", f"benchmarks.applications.{module}"],
            env={**env, "PYTHONUNBUFFERED": "1"},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def await_ready(self) -> None:
        """Wait until it is set up."""
        self._answer(READY_TIMEOUT_S)

    def pin(self, processors: Collection[int]) -> None:
        """Run its threads, and those that they start, on these processors only."""
        for task in Path(f"/proc/{self._process.pid}/task").iterdir():
            with suppress(OSError):  # the thread has ended
                os.sched_setaffinity(int(task.name), processors)

    def begin(self, kind: str, begin_ns: int, seconds: float) -> None:
        """Begin a phase."""
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps({"kind": kind, "begin_ns": begin_ns, "seconds": seconds}) + "\n")
        self._process.stdin.flush()

    def answer(self, seconds: float) -> dict[str, Any]:
        """Return what a phase of `seconds` measured."""
        return self._answer(seconds + LATE_S)

    def _answer(self, timeout: float) -> dict[str, Any]:
        assert self._process.stdout is not None
        if not select.select([self._process.stdout], [], [], timeout)[0]:
            self._process.kill()
            raise RuntimeError(f"{self.name}: no answer in {timeout:g} s: it was killed")
        line = self._process.stdout.readline()
        if not line:
            raise RuntimeError(f"{self.name} ended with {self._process.wait()}")
        answer: dict[str, Any] = json.loads(line)
        return answer

    def end(self) -> None:
        """Close its input, and kill it unless it ends."""
        try:
            self._process.communicate(timeout=10)
        except (subprocess.TimeoutExpired, ValueError):
            self._process.kill()
            self._process.wait()


def framework(module: str) -> str:
    """Return the package that an application needs."""
    named = [name for name in ("jax", "triton") if module.startswith(name)]
    return named[0] if named else "torch"


def processors_of(tenant: int) -> list[int]:
    """Return half of the processors, the first or the second; all of them where there are fewer than four."""
    every = sorted(os.sched_getaffinity(0))
    half = len(every) // 2
    return every if half < 2 else every[tenant % 2 * half :][:half]  # noqa: PLR2004  # a program has helper threads


def together(
    work: Sequence[tuple[Application, str]], seconds: float, place: int = 0, warm_s: float = WARM_S
) -> list[dict[str, Any]]:
    """Let applications work at the same time, each on its kind; return what each measured.

    The first has the processors of tenant `place`, so that its host is as fast alone as in a pair: two busy threads may
    share a core.
    """
    for number, (application, _) in enumerate(work, place):
        application.pin(processors_of(number))
    begin_ns = time.monotonic_ns() + int(warm_s * 1e9)
    for application, kind in work:
        application.begin(kind, begin_ns, seconds)
    return [application.answer(warm_s + seconds) for application, _ in work]
