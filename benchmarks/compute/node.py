"""Where containers run: on a node with an arbiter, or natively."""

import os
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Protocol, Self

import limiter
from benchmarks.container import limiter_settings, native_env
from benchmarks.programs.old_limiters import OldLimiter
from limiter import launch, local_keeper, local_state
from vgpu.domain.formats import region
from vgpu.domain.formats.limits import SpaceMembership

SOCKET_S = 2.0
Env = Mapping[str, str]


class LaunchPlace(Protocol):
    """A node, or native."""

    native: bool

    def container(self, cores: int | None, policy: str = "fixed", priority: int = 0, job: bytes | None = None) -> Env:
        """Return the environment of the programs of a new container, which may be of a job of several."""


class Native:
    """No limits: programs share the card by its own time slices."""

    native = True

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        """Do nothing."""

    def container(
        self,
        cores: int | None,  # noqa: ARG002 - of the protocol, as the others
        policy: str = "fixed",  # noqa: ARG002
        priority: int = 0,  # noqa: ARG002
        job: bytes | None = None,  # noqa: ARG002
    ) -> Env:
        """Return the environment without limits."""
        return native_env()


class BenchmarkNode:
    """A directory of allocations, and the arbiter that serves it.

    Args:
        log_level: of the arbiter; None: as this process's environment says.
    """

    native = False

    def __init__(self, log_level: str | None = None) -> None:
        self._env = {**os.environ, **({"VGPU_LOG": log_level} if log_level else {})}
        self._home = Path(tempfile.mkdtemp(prefix="vb-", dir=local_state.shared_memory()))
        self._allocations: list[local_state.LocalAllocation] = []
        self.arbiter: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Self:
        local_state.ensure(self._home)
        self.start_arbiter()
        return self

    def __exit__(self, *_: object) -> None:
        self.signal_arbiter(signal.SIGKILL)
        for allocation in self._allocations:
            local_keeper.release(allocation)
        shutil.rmtree(self._home)

    @property
    def log(self) -> str:
        """Return the arbiter's log."""
        return (self._home / "log").read_text()

    def start_arbiter(self, program: Path | None = None) -> None:
        """Start an arbiter, by default this tree's. Raises LimiterError when it is not built."""
        command = [str(program or limiter.arbiter_path()), str(self._home / local_state.ALLOCATIONS)]
        with (self._home / "log").open("ab") as log:
            self.arbiter = subprocess.Popen(command, env=self._env, stdin=subprocess.DEVNULL, stdout=log, stderr=log)

    def signal_arbiter(self, number: int) -> None:
        """Send the arbiter a signal; after SIGKILL wait for its end."""
        if self.arbiter:
            self.arbiter.send_signal(number)
        if self.arbiter and number == signal.SIGKILL:
            self.arbiter.wait()
            self.arbiter = None

    def allocate(
        self,
        cores: int | None,
        policy: str = "fixed",
        priority: int = 0,
        space: SpaceMembership | None = None,
        job: bytes | None = None,
    ) -> Path:
        """Make a container's directory and wait until the arbiter listens there. Raises RuntimeError when it does not.

        The container has no memory limit: only its time is limited.
        """
        wanted = replace(launch.parse(None, cores, policy, priority=priority), space=space, job=job)
        self._allocations.append(local_state.add(self._home, wanted, ["benchmark"], limiter.this_host()))
        folder = self._allocations[-1].folder
        until = time.monotonic() + SOCKET_S
        while not local_state.socket_of(folder).exists():
            if time.monotonic() > until:
                raise RuntimeError(f"the arbiter does not listen at {folder}: {self.log}")
            time.sleep(0.001)
        return folder

    def container(self, cores: int | None, policy: str = "fixed", priority: int = 0, job: bytes | None = None) -> Env:
        """Return the environment of the programs of a new container."""
        return _limited(self.allocate(cores, policy, priority, job=job))

    def old_container(self, old: OldLimiter, cores: int | None, policy: str = "fixed") -> Env:
        """Return the environment of the programs of a new container that loads an earlier release's library."""
        folder = self.allocate(cores, policy)
        (folder / "region").write_bytes(old.region())  # in place, because the arbiter may have opened it
        return {**_limited(folder), launch.PRELOAD_ENV: str(old.library)}

    def member(self, cores: int | None, space: SpaceMembership, pipe: Path) -> Env:
        """Return the environment of the programs of a new member of a group in space, whose daemon is at `pipe`."""
        return {**_limited(self.allocate(cores, "burst", space=space)), launch.SPACE_ENV: str(pipe)}


def _limited(folder: Path) -> dict[str, str]:
    return native_env() | launch.variables(folder, {}) | limiter_settings() | {"VGPU_LOG": "warn"}


def gpu_seconds(env: Env) -> float:
    """Return the GPU time that the limiter has measured for a container; 0 natively."""
    if launch.REGION_ENV not in env:
        return 0.0
    return sum(card.gpu_ns for card in cards_of(env)) / 1e9


def cards_of(env: Env) -> tuple[region.CardUse, ...]:
    """Return what the limiter has counted for a container on each card that it has used."""
    return region.decode(Path(env[launch.REGION_ENV]).read_bytes()).cards
