"""`python -m deviceplugin.space` with simulated daemons: what is started, what outlives what, and what is refused."""

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

import tests.eventually
from simgpu import build
from simgpu.world import World, worlds
from tests.simgpu import mps_daemon
from vgpu.adapters import mps
from vgpu.domain.asks.space import SpaceGroup
from vgpu.domain.identifiers import CardUuid, Namespace
from vgpu.node.space.directories import GroupOnCard, SpaceDirectories

pytestmark = pytest.mark.heavy

MEMBER = "allocation-1"


@dataclass
class SpaceNode:
    """A node's state directory, and the programs that were started on it."""

    world: World
    state: Path
    programs: list[subprocess.Popen[str]] = field(default_factory=list)

    @property
    def directories(self) -> SpaceDirectories:
        return SpaceDirectories(self.state / "space")

    @property
    def group(self) -> GroupOnCard:
        return GroupOnCard(CardUuid(self.world.cards[0].uuid), SpaceGroup(Namespace("team"), "").directory)

    def start(self, *more: str) -> subprocess.Popen[str]:
        """Start the program; its log is read by `log`."""
        flags = (f"--state-dir={self.state}", f"--control={self.world.bin / mps.CONTROL}", *more)
        with (self.state / f"log{len(self.programs)}").open("w") as log:
            program = subprocess.Popen(
                [sys.executable, "-m", "deviceplugin.space", *flags],
                env=self.world.environment(PYTHONPATH=str(build.ROOT)),
                stderr=log,
                text=True,
            )
        self.programs.append(program)
        return program

    def log(self, number: int = 0) -> str:
        return (self.state / f"log{number}").read_text()

    def daemons(self) -> list[int]:
        return list(mps_daemon.pids(self.world, mps.CONTROL))


def children(program: subprocess.Popen[str]) -> list[int]:
    return [int(pid) for pid in Path(f"/proc/{program.pid}/task/{program.pid}/children").read_text().split()]


eventually = partial(tests.eventually.eventually, within_s=20)


@pytest.fixture
def node(tmp_path: Path) -> Iterator[SpaceNode]:
    # Paths of pytest's folders are too long for sockets.
    with TemporaryDirectory(prefix="s") as folder, worlds(tmp_path, "tests.cuda_calls.session") as make:
        node = SpaceNode(make(), Path(folder))
        yield node
        for program in node.programs:
            with contextlib.suppress(ProcessLookupError):
                program.terminate()
            program.wait(10)
        mps_daemon.end_all(node.world)


def test_a_member_gets_a_daemon_and_the_last_one_ends_it(node: SpaceNode) -> None:
    node.start()
    node.directories.add_member(node.group, MEMBER)
    eventually(lambda: node.directories.is_ready(node.group))
    pipe = {"CUDA_MPS_PIPE_DIRECTORY": str(node.directories.pipe(node.group))}
    session = node.world.session(**pipe)
    assert session("start()") == 0
    assert session("device_attribute(133)") == 1
    session.kill()
    node.directories.remove_member(node.group, MEMBER)
    eventually(lambda: not node.daemons())
    assert f"group {node.group}: daemon started" in node.log()


def test_a_killed_supervisor_is_started_again_beside_its_daemons(node: SpaceNode) -> None:
    first = node.start()
    node.directories.add_member(node.group, MEMBER)
    eventually(lambda: node.directories.is_ready(node.group))
    before = node.daemons()
    (supervisor,) = children(first)
    os.kill(supervisor, signal.SIGKILL)
    eventually(lambda: "the supervisor exited with code -9; it is started again in 0.2 s" in node.log())
    node.directories.remove_member(node.group, MEMBER)  # which only a supervisor carries out
    assert node.daemons() == before
    eventually(lambda: not node.daemons())


def test_a_second_program_waits_for_the_first_and_takes_its_daemons_over(node: SpaceNode) -> None:
    first = node.start()
    node.directories.add_member(node.group, MEMBER)
    eventually(lambda: node.directories.is_ready(node.group))
    before = node.daemons()
    node.start()
    time.sleep(2)
    assert node.daemons() == before
    first.terminate()
    assert first.wait(10) == 0
    assert node.daemons() == before  # outside of a container daemons go on; a container's end would end them
    node.directories.remove_member(node.group, MEMBER)
    eventually(lambda: not node.daemons())


def test_a_driver_without_the_program_is_named_and_waited_for(node: SpaceNode, tmp_path: Path) -> None:
    control = tmp_path / mps.CONTROL
    node.start(f"--control={control}")
    eventually(lambda: f"deviceplugin.space: {control}: no such program" in node.log())
    assert "a node without the toolkit serves no groups in space" in node.log()
    assert not node.directories.is_supervised(time.time())
    control.symlink_to(node.world.bin / mps.CONTROL)
    node.directories.add_member(node.group, MEMBER)
    eventually(lambda: "daemon started" in node.log())
    assert node.directories.is_supervised(time.time())


def test_a_node_is_supervised_until_the_program_is_told_to_end(node: SpaceNode) -> None:
    program = node.start()
    eventually(lambda: node.directories.is_supervised(time.time()))
    program.terminate()
    assert program.wait(10) == 0
    assert not node.directories.is_supervised(time.time())


def test_wrong_settings_end_the_program(node: SpaceNode) -> None:
    program = node.start("--no-such-option=1")
    assert program.wait(20) == 2
    assert "--no-such-option: there is no such option" in node.log()
