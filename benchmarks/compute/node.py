"""Where containers run: on a node with an arbiter and limits of their own, or natively."""

import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Protocol, Self

import limiter
from benchmarks.memory.worker import native_env
from limiter import launch, state
from vgpu import region

SOCKET_S = 2.0
Env = Mapping[str, str]


class Place(Protocol):
    """What a measurement needs."""

    native: bool

    def container(self, cores: int | None, policy: str = "fixed", priority: int = 0) -> Env:
        """Return the environment of the programs of a container of its own."""


class Native:
    """No limits: the card's own time slices."""

    native = True

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        """Nothing was made."""

    def container(self, cores: int | None, policy: str = "fixed", priority: int = 0) -> Env:  # noqa: ARG002
        """Return the environment without limits."""
        return native_env()


class Node:
    """Allocations in a directory of their own, and an arbiter that watches it. The arbiter's words are in `log`."""

    native = False

    def __init__(self) -> None:
        self._home = Path(tempfile.mkdtemp(prefix="vb-", dir=state.shared_memory()))
        self._allocations: list[state.Allocation] = []
        self.arbiter: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Self:
        state.ensure(self._home)
        self.start_arbiter()
        return self

    def __exit__(self, *_: object) -> None:
        self.signal_arbiter(signal.SIGKILL)
        for allocation in self._allocations:
            allocation.remove()
        shutil.rmtree(self._home)

    @property
    def log(self) -> str:
        """Return what the arbiter said."""
        return (self._home / "log").read_text()

    def start_arbiter(self) -> None:
        """Start one. Raises LimiterError where it was not built."""
        command = [str(limiter.arbiter_path()), str(self._home / state.ALLOCATIONS)]
        with (self._home / "log").open("ab") as log:
            self.arbiter = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log)

    def signal_arbiter(self, number: int) -> None:
        """Send it a signal; where that kills it, wait for its end."""
        if self.arbiter:
            self.arbiter.send_signal(number)
        if self.arbiter and number == signal.SIGKILL:
            self.arbiter.wait()
            self.arbiter = None

    def allocate(self, cores: int | None, policy: str = "fixed", priority: int = 0) -> Path:
        """Make a container's directory and wait until the arbiter listens there. Raises RuntimeError when it does not.

        The container has all memory of the card, so that nothing but its time is limited.
        """
        wanted = launch.parse(None, cores, policy, priority=priority)
        self._allocations.append(state.add(self._home, wanted, ["benchmark"]))
        folder = self._allocations[-1].folder
        until = time.monotonic() + SOCKET_S
        while not state.socket_of(folder).exists():
            if time.monotonic() > until:
                raise RuntimeError(f"the arbiter does not listen at {folder}: {self.log}")
            time.sleep(0.001)
        return folder

    def container(self, cores: int | None, policy: str = "fixed", priority: int = 0) -> Env:
        """Return the environment of the programs of a container of its own."""
        return native_env() | launch.variables(self.allocate(cores, policy, priority), {}) | {"VGPU_LOG": "warn"}


def gpu_seconds(env: Env) -> float:
    """Return the GPU time that the limiter counted for a container; 0 natively."""
    if launch.REGION_ENV not in env:
        return 0.0
    return sum(card.gpu_ns for card in region.decode(Path(env[launch.REGION_ENV]).read_bytes()).cards) / 1e9
