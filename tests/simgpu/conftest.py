"""A directory of two simulated cards, and processes that use them."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from simgpu import build, state_directory, usage

ROOT = Path(__file__).resolve().parents[2]


@dataclass(frozen=True, slots=True)
class World:
    """The built driver and one state directory."""

    bin: Path
    state: Path
    cards: tuple[state_directory.Card, ...]
    processes: list[subprocess.Popen[str]]

    def environment(self, **more: str) -> dict[str, str]:
        kept = {name: value for name, value in os.environ.items() if name != "CUDA_VISIBLE_DEVICES"}
        return {**kept, "SIMGPU_STATE": str(self.state), "LD_LIBRARY_PATH": str(self.bin), **more}

    def probe(self, *arguments: str, program: str = "gpuprobe", **more: str) -> list[dict[str, Any]]:
        """Runs it to its end; the lines it printed."""
        done = subprocess.run(
            [str(self.bin / program), *arguments],
            env=self.environment(**more),
            capture_output=True,
            text=True,
            check=False,
            timeout=30,
        )
        assert done.returncode in {0, 1}, done
        return [json.loads(line) for line in done.stdout.splitlines()]

    def mib_used(self) -> int:
        """What all processes hold of all cards, by the driver's own account."""
        return sum(usage.bytes_by_card(self.state).values()) >> 20

    def start(self, *command: str, **more: str) -> subprocess.Popen[str]:
        """Starts a program that is killed at the end of the test."""
        process = subprocess.Popen(
            command, env=self.environment(**more), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        self.processes.append(process)
        return process

    def hold(self, *mib: int, wrapper: tuple[str, ...] = ()) -> subprocess.Popen[str]:
        """A probe that has its allocations, all of which succeeded, until it is killed."""
        process = self.start(*wrapper, str(self.bin / "gpuprobe"), "--hold", "0", "alloc", *map(str, mib))
        assert process.stdout is not None
        for _ in mib:
            assert json.loads(process.stdout.readline())["result"] == 0
        return process

    def session(self, **more: str) -> "Session":
        return Session(
            self.start(sys.executable, "-m", "tests.cuda_calls.session", **{"PYTHONPATH": str(ROOT), **more})
        )

    def only_session(self) -> "Session":
        """The same started session at each call."""
        if self.processes:
            return Session(self.processes[0])
        session = self.session()
        assert session("start()") == 0
        return session


@dataclass(frozen=True, slots=True)
class Session:
    """A process of session.py: ``session("alloc(4096)")``."""

    process: subprocess.Popen[str]

    def __call__(self, expression: str) -> Any:
        self.tell(expression)
        return self.answer()

    def tell(self, expression: str) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(f"{expression}\n")
        self.process.stdin.flush()

    def answer(self) -> Any:
        assert self.process.stdout is not None
        return json.loads(self.process.stdout.readline())

    def kill(self) -> None:
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()


@pytest.fixture(scope="session")
def built_driver() -> Path:
    return build.ensure()


@pytest.fixture
def make_world(built_driver: Path, tmp_path: Path) -> Iterator[Callable[..., World]]:
    started: list[subprocess.Popen[str]] = []

    def make(cards: tuple[state_directory.Card, ...] = state_directory.make_cards(2)) -> World:
        state_directory.write_cards(tmp_path, cards)
        return World(built_driver, tmp_path, cards, started)

    yield make
    for process in started:
        process.kill()
        process.communicate()


@pytest.fixture
def world(make_world: Callable[..., World]) -> World:
    return make_world()


@pytest.fixture
def session(world: World) -> Session:
    started = world.session()
    assert started("start()") == 0
    return started
