"""The arbiter as a process with a directory of containers, and its modules as a library."""

import ctypes
import os
import platform
import shutil
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

import limiter
from limiter import build
from limiter.build import toolchain
from tests.arbiter import simulation
from tests.arbiter.client import Client
from tests.arbiter.simulation import World
from vgpu.domain.asks.policy import ComputePolicy
from vgpu.domain.formats import limits, region
from vgpu.domain.formats.limits import CardLimit, Limits

UNSTARTED = tuple(path for path in build.arbiter_sources() if path.name != "main.c")
CARD = bytes(range(1, 17))
GPU = limits.uuid_text(CARD)
ROW = 256  # offset of the first card's row in a region


def until(condition: Callable[[], object], seconds: float = 10) -> None:
    """Waits until the condition is true; fails after `seconds`."""
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, f"still false after {seconds} s"
        time.sleep(0.001)


@dataclass
class Container:
    """A container's directory as the device plugin makes it."""

    folder: Path
    clients: list[Client] = field(default_factory=list)

    @property
    def socket(self) -> Path:
        return self.folder / "arbiter" / "socket"

    def connect(self, uuid: bytes = CARD, hello: bytes | None = None) -> Client:
        until(self.socket.exists)
        self.clients.append(Client(self.socket, uuid, hello))
        return self.clients[-1]

    def limit(self, wanted: Limits) -> None:
        """Rewrites the limits in place."""
        with (self.folder / "limits").open("r+b") as file:
            for offset, piece in limits.rewrite(file.read(), wanted):
                os.pwrite(file.fileno(), piece, offset)

    def set_busy_until(self, until_ns: int) -> None:
        """Writes `busy_until` of the card as a process of the container does."""
        with (self.folder / "region").open("r+b") as file:
            os.pwrite(file.fileno(), CARD, ROW)
            os.pwrite(file.fileno(), b"\1", ROW + 48)
            os.pwrite(file.fileno(), until_ns.to_bytes(8, "little"), ROW + 152)


def limits_for(cores: int = 100, policy: str = "fixed", priority: int = 0) -> Limits:
    return Limits((CardLimit(GPU, None, cores),), ComputePolicy(policy), priority)


class Node:
    """A directory of containers with its arbiter."""

    def __init__(self, allocations: Path) -> None:
        self.allocations = allocations
        self.containers: list[Container] = []
        self.process: subprocess.Popen[str] | None = None

    def start(self, *options: str, program: Path | None = None, **env: str) -> subprocess.Popen[str]:
        command = [str(program or limiter.arbiter_path()), *options, str(self.allocations)]
        self.process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env={**os.environ, **env})
        return self.process

    def add(self, wanted: Limits | None = None, name: str | None = None) -> Container:
        folder = self.allocations / (name or f"c{len(self.containers)}")
        folder.mkdir()
        (folder / "limits").write_bytes(limits.encode(wanted or limits_for()))
        with (folder / "region").open("wb") as file:
            file.write(region.new())
            file.truncate(region.SIZE)
        (folder / "arbiter").mkdir()
        self.containers.append(Container(folder))
        return self.containers[-1]

    def end(self, how: signal.Signals = signal.SIGTERM) -> tuple[int, str]:
        """Ends the arbiter; returns its exit code and standard error."""
        assert self.process is not None
        if self.process.poll() is None:
            self.process.send_signal(how)
        try:
            stderr = self.process.communicate(timeout=10)[1]
        finally:
            self.process.kill()
        return self.process.returncode, stderr

    def close(self) -> None:
        for container in self.containers:
            for client in container.clients:
                client.close()
        if self.process is not None:
            self.process.kill()
            self.process.communicate()


@pytest.fixture(scope="session")
def built_arbiter() -> Path:
    build.ensure()
    return limiter.arbiter_path()


@pytest.fixture
def idle_node(tmp_path: Path, built_arbiter: Path) -> Iterator[Node]:
    """A node whose arbiter is not started."""
    assert built_arbiter.is_file()
    (tmp_path / "allocations").mkdir()
    node = Node(tmp_path / "allocations")
    yield node
    node.close()
    shutil.rmtree(tmp_path / "allocations")


@pytest.fixture
def node(idle_node: Node) -> Node:
    idle_node.start()
    return idle_node


@pytest.fixture(scope="session")
def pure(tmp_path_factory: pytest.TempPathFactory) -> ctypes.CDLL:
    return compile_modules(tmp_path_factory.mktemp("pure"))


def compile_modules(folder: Path) -> ctypes.CDLL:
    """The arbiter's modules with every function exported, compiled into a folder."""
    library = folder / "libarbiter.so"
    command = [*toolchain.compiler(platform.machine()), *build.flags(), "-O1", "-shared", *map(str, UNSTARTED)]
    subprocess.run([*command, "-o", str(library)], check=True)
    return simulation.declare(ctypes.CDLL(str(library)))


@pytest.fixture
def make_world(pure: ctypes.CDLL) -> Iterator[Callable[..., World]]:
    made: list[World] = []

    def make(high: int = 90, low: int = 70) -> World:
        made.append(World(pure, high, low))
        return made[-1]

    yield make
    for world in made:
        world.close()
