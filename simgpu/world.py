"""Simulated cards in a state directory of their own, and programs that use them: what test fixtures hand out."""

import contextlib
import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from simgpu import build, state_directory, usage
from simgpu.session import ProbeSession
from simgpu.state_directory import SimulatedCard

PROBE_TIMEOUT_S = 30
_TWO_CARDS = state_directory.make_cards(2)


@dataclass(frozen=True, slots=True)
class World:
    """The built libraries and one state directory.

    Attributes:
        bin: folder of the built libraries and of gpuprobe.
        state: the state directory.
        cards: what its file ``cards`` describes.
        session_module: the Python module that `session` runs: it reads expressions and prints their values.
        processes: every program started here, in the order of their starts.
    """

    bin: Path
    state: Path
    cards: tuple[SimulatedCard, ...]
    session_module: str
    processes: list[subprocess.Popen[str]]

    def environment(self, **more: str) -> dict[str, str]:
        """Return this process's environment with the simulated GPU in place of a real one, and all of its cards."""
        kept = {name: value for name, value in os.environ.items() if name != "CUDA_VISIBLE_DEVICES"}
        return {**kept, "SIMGPU_STATE": str(self.state), "LD_LIBRARY_PATH": str(self.bin), **more}

    def probe(self, *arguments: str, program: str = "gpuprobe", **more: str) -> list[dict[str, Any]]:
        """Run gpuprobe to its end and return the lines it printed. Raises AssertionError where it crashed."""
        done = subprocess.run(
            [str(self.bin / program), *arguments],
            env=self.environment(**more),
            capture_output=True,
            text=True,
            check=False,
            timeout=PROBE_TIMEOUT_S,
        )
        assert done.returncode in {0, 1}, done
        return [json.loads(line) for line in done.stdout.splitlines()]

    def mib_used(self) -> int:
        """Return the MiB that all processes hold on all cards, by the driver's own ledger."""
        return sum(usage.bytes_by_card(self.state).values()) >> 20

    def start(self, *command: str, **more: str) -> subprocess.Popen[str]:
        """Start a program that is killed when the fixture ends."""
        process = subprocess.Popen(
            command, env=self.environment(**more), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        self.processes.append(process)
        return process

    def hold(self, *mib: int, wrapper: tuple[str, ...] = ()) -> subprocess.Popen[str]:
        """Start a gpuprobe that holds allocations of these sizes until it is killed; return once all succeeded."""
        process = self.start(*wrapper, str(self.bin / "gpuprobe"), "--hold", "0", "alloc", *map(str, mib))
        assert process.stdout is not None
        for _ in mib:
            assert json.loads(process.stdout.readline())["result"] == 0
        return process

    def session(self, **more: str) -> ProbeSession:
        """Start a process that evaluates expressions."""
        environment = {"PYTHONPATH": str(build.ROOT), **more}
        return ProbeSession(self.start(sys.executable, "-m", self.session_module, **environment))

    def only_session(self) -> ProbeSession:
        """Return the first session, with CUDA initialized; starts it at the first call."""
        if self.processes:
            return ProbeSession(self.processes[0])
        session = self.session()
        assert session("start()") == 0
        return session


@contextlib.contextmanager
def worlds(state: Path, session_module: str = "") -> Iterator[Callable[..., World]]:
    """Yield a function that describes cards in `state`, two by default, and returns their world.

    Each call replaces the cards of the call before. At the end every program that was started is killed.
    """
    started: list[subprocess.Popen[str]] = []

    def make(cards: tuple[SimulatedCard, ...] = _TWO_CARDS) -> World:
        state_directory.write_cards(state, cards)
        return World(build.ensure(), state, cards, session_module, started)

    yield make
    for process in started:
        process.kill()
        process.communicate()
