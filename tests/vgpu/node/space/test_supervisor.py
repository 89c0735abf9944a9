"""The supervisor with simulated daemons: members come and go, and each of its processes is killed."""

import contextlib
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from simgpu import build
from simgpu.session import ProbeSession
from simgpu.world import World, worlds
from tests.eventually import eventually
from tests.simgpu import mps_daemon
from vgpu.adapters import mps
from vgpu.domain.asks.space import SpaceGroup
from vgpu.domain.identifiers import CardUuid, Namespace
from vgpu.node.space.directories import GroupOnCard, SpaceDirectories

pytestmark = pytest.mark.heavy

PROGRAM = """
import asyncio, logging, os, sys, time
from pathlib import Path
from vgpu.node.space.directories import SpaceDirectories
from vgpu.node.space.supervisor import Supervisor
logging.basicConfig(level=logging.INFO)
space, program = map(Path, sys.argv[1:])
asyncio.run(Supervisor(SpaceDirectories(space), program, os.environ, time.monotonic).run())
"""
FIRST = """
import os, sys, time
from vgpu.adapters import first_process
from vgpu.adapters.child_process import Restarts
from vgpu.pacing.back_off import BackOff
restarts = Restarts(BackOff(first_s=0.1, longest_s=1), steady_s=60)
first_process.keep_running(sys.argv[1:], os.environ, restarts, lambda end, pause_s: None, time.monotonic)
"""
MEMBER = "allocation-1"
RPC_FAILURE, NOT_READY = 806, 807


class Node:
    """A node with two cards, and a supervisor."""

    def __init__(self, world: World, space: Path) -> None:
        self.world, self.space = world, space
        self.directories = SpaceDirectories(space)
        self.supervisor = self.start()

    def start(self, *before: str) -> subprocess.Popen[str]:
        """Start a supervisor, by the command `before` if there is one."""
        program = str(self.world.bin / mps.CONTROL)
        arguments = (sys.executable, "-c", PROGRAM, str(self.space), program)
        return self.world.start(*before, *arguments, PYTHONPATH=str(build.ROOT))

    def group(self, name: str, card: int = 0) -> GroupOnCard:
        """A group of the namespace `team` on a card."""
        uuid = CardUuid(self.world.cards[card].uuid)
        return GroupOnCard(uuid, SpaceGroup(Namespace("team"), name).directory)

    def join(self, of: GroupOnCard, allocation: str = MEMBER) -> None:
        """Add a member as PreStartContainer will, and wait until its group is served."""
        self.directories.add_member(of, allocation)
        eventually(lambda: self.directories.is_ready(of))

    def client(self, of: GroupOnCard) -> ProbeSession:
        """A process of a member, with a context."""
        session = self.session(of)
        assert session("start()") == 0
        assert session("device_attribute(133)") == 1  # it is a client of MPS
        return session

    def session(self, of: GroupOnCard) -> ProbeSession:
        """A process of a member."""
        return self.world.session(CUDA_MPS_PIPE_DIRECTORY=str(self.directories.pipe(of)))

    def pids(self, of: GroupOnCard, *, servers: bool) -> list[int]:
        """The daemons or the servers of a group that run."""
        found = [process for process in mps.processes() if process.pipe == self.directories.pipe(of)]
        return [process.pid for process in found if process.is_server == servers]

    def daemon(self, of: GroupOnCard) -> int:
        """The only daemon of a group."""
        (pid,) = self.pids(of, servers=False)
        return pid


def works(session: ProbeSession) -> int:
    """The result of waiting for a kernel."""
    session("kernels.launch(kernels.load('spin_10'))")
    result: int = session("cuda.cuCtxSynchronize()")
    return result


@pytest.fixture
def node(tmp_path: Path) -> Iterator[Node]:
    # Paths of pytest's folders are too long for sockets.
    with TemporaryDirectory(prefix="s") as folder, worlds(tmp_path, "tests.cuda_calls.session") as make:
        node = Node(make(), Path(folder))
        yield node
        node.supervisor.kill()
        mps_daemon.end_all(node.world)


def test_a_group_has_a_daemon_from_its_first_member_to_its_last(node: Node) -> None:
    of = node.group("models")
    node.join(of)
    assert works(node.client(of)) == 0
    before = node.daemon(of)
    node.join(of, "allocation-2")
    node.directories.remove_member(of, MEMBER)
    time.sleep(0.5)
    assert node.daemon(of) == before
    node.directories.remove_member(of, "allocation-2")
    eventually(lambda: not list(mps_daemon.pids(node.world)))
    assert not node.directories.is_ready(of)


def test_groups_and_cards_have_daemons_of_their_own(node: Node) -> None:
    places = [node.group("one"), node.group("two"), node.group("one", card=1)]
    for of in places:
        node.join(of)
    assert len({node.daemon(of) for of in places}) == 3
    for of in places:
        environment = Path(f"/proc/{node.daemon(of)}/environ").read_bytes()
        assert f"CUDA_VISIBLE_DEVICES={of.card}".encode() in environment.split(b"\0")
    node.directories.remove_member(places[0], MEMBER)
    eventually(lambda: not node.pids(places[0], servers=False))
    assert all(node.daemon(of) for of in places[1:])


def test_daemons_and_clients_go_on_when_the_supervisor_is_killed_and_the_next_one_finds_them(node: Node) -> None:
    stays, leaves = node.group("stays"), node.group("leaves")
    node.join(stays)
    node.join(leaves)
    client, before = node.client(stays), node.daemon(stays)
    node.supervisor.kill()
    node.supervisor.wait()
    node.directories.remove_member(leaves, MEMBER)
    assert works(client) == 0
    node.supervisor = node.start()
    eventually(lambda: not node.pids(leaves, servers=False))
    eventually(lambda: node.directories.is_ready(stays) and not node.directories.is_ready(leaves))
    assert node.daemon(stays) == before
    assert works(client) == 0


def test_a_killed_supervisor_is_replaced_in_its_container_and_no_process_stays_as_a_zombie(node: Node) -> None:
    node.supervisor.kill()
    first = node.start(sys.executable, "-c", FIRST)
    of, children = node.group("models"), Path(f"/proc/{first.pid}/task/{first.pid}/children")
    node.join(of)
    (supervisor,) = map(int, children.read_text().split())
    client, daemon = node.client(of), node.daemon(of)
    os.kill(supervisor, signal.SIGKILL)
    eventually(lambda: str(supervisor) not in children.read_text().split() and len(children.read_text().split()) == 2)
    assert str(daemon) in children.read_text().split()
    assert works(client) == 0
    os.kill(daemon, signal.SIGKILL)
    eventually(lambda: len(children.read_text().split()) == 1)
    eventually(lambda: node.pids(of, servers=False) not in ([], [daemon]) and node.directories.is_ready(of))
    assert works(node.client(of)) == 0
    first.terminate()
    assert first.wait(5) == 0


def test_nothing_counts_as_served_when_the_supervisor_starts(node: Node) -> None:
    of = node.group("models")
    node.join(of)
    daemon = node.daemon(of)
    node.supervisor.kill()
    node.supervisor.wait()
    os.kill(daemon, signal.SIGKILL)
    assert node.directories.is_ready(of)  # nobody is there to say otherwise
    node.supervisor = node.start()
    eventually(lambda: not node.directories.is_ready(of))
    eventually(lambda: node.directories.is_ready(of))
    assert node.daemon(of) != daemon


def test_a_killed_daemon_is_started_again_without_the_servers_of_the_former(node: Node) -> None:
    of, other = node.group("models"), node.group("other")
    node.join(of)
    node.join(other)
    client, neighbour, before = node.client(of), node.client(other), node.daemon(of)
    (server,) = node.pids(of, servers=True)
    os.kill(before, signal.SIGKILL)
    eventually(lambda: not Path(f"/proc/{server}").exists() and bool(node.pids(of, servers=False)))
    eventually(lambda: node.directories.is_ready(of))
    assert node.daemon(of) != before
    assert works(client) == RPC_FAILURE
    assert [works(node.client(of)), works(neighbour)] == [0, 0]


def test_a_killed_server_is_replaced_by_its_daemon(node: Node) -> None:
    of = node.group("models")
    node.join(of)
    client, before = node.client(of), node.daemon(of)
    os.kill(node.pids(of, servers=True)[0], signal.SIGKILL)
    eventually(lambda: works(client) == RPC_FAILURE)
    eventually(lambda: not node.pids(of, servers=True))
    assert works(node.client(of)) == 0
    assert node.daemon(of) == before


def test_a_daemon_that_ends_at_its_start_is_started_again_after_pauses_that_grow(node: Node) -> None:
    of = node.group("models")
    (node.directories.pipe(of) / "control_lock").mkdir(parents=True)  # the simulated daemon cannot open it
    node.directories.add_member(of, MEMBER)
    time.sleep(2)
    assert not node.directories.is_ready(of)
    (node.directories.pipe(of) / "control_lock").rmdir()
    eventually(lambda: node.directories.is_ready(of))
    node.supervisor.terminate()
    node.supervisor.wait()


def test_a_faulted_server_is_noted_until_the_group_is_gone(node: Node) -> None:
    of, other = node.group("models"), node.group("other")
    node.join(of)
    node.join(other)
    faulty, neighbour = node.client(of), node.client(of)
    assert node.directories.faults() == {}
    faulty("kernels.launch(kernels.load('fault_10'))")
    eventually(lambda: node.directories.faults().keys() == {of})
    assert time.time() - node.directories.faults()[of] < 60
    neighbour.kill()
    node.directories.remove_member(of, MEMBER)
    eventually(lambda: node.directories.faults() == {})


@pytest.mark.slow
def test_a_client_that_never_exits_keeps_a_server_from_others_for_at_most_ten_seconds(node: Node) -> None:
    of = node.group("models")
    node.join(of)
    faulty, stopped = node.client(of), node.client(of)
    stopped.process.send_signal(signal.SIGSTOP)
    begun = time.monotonic()
    faulty("kernels.launch(kernels.load('fault_10'))")
    faulty.kill()
    assert node.session(of)("start()") == NOT_READY
    eventually(lambda: node.session(of)("start()") == 0)
    assert time.monotonic() - begun < 10
    assert works(node.client(of)) == 0
    stopped.process.send_signal(signal.SIGCONT)
    assert works(stopped) == RPC_FAILURE


@pytest.mark.slow
def test_a_daemon_that_does_not_answer_is_replaced_and_delays_no_other_group(node: Node) -> None:
    of, other = node.group("models"), node.group("other")
    node.join(of)
    before = node.daemon(of)
    os.kill(before, signal.SIGSTOP)
    eventually(lambda: not node.directories.is_ready(of))
    begun = time.monotonic()
    node.join(other)
    assert time.monotonic() - begun < 4
    eventually(lambda: node.directories.is_ready(of), within_s=15)
    assert node.daemon(of) != before
    assert works(node.client(of)) == 0


def signalled(pids: list[int], number: int) -> None:
    for pid in pids:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, number)


def happens(node: Node, what: str, of: GroupOnCard, allocation: str) -> None:
    """One event in the life of a group."""
    match what:
        case "add":
            node.directories.add_member(of, allocation)
        case "remove":
            node.directories.remove_member(of, allocation)
        case "daemon killed" | "server killed":
            signalled(node.pids(of, servers=what == "server killed"), signal.SIGKILL)
        case "daemon stopped":
            signalled(node.pids(of, servers=False), signal.SIGSTOP)
        case "client":
            pipe = {"CUDA_MPS_PIPE_DIRECTORY": str(node.directories.pipe(of))}
            node.world.start(str(node.world.bin / "gpuprobe"), "--hold", "0", "alloc", "1", **pipe)
        case _:
            node.supervisor.kill()
            node.supervisor.wait()
            node.supervisor = node.start()


EVENTS = ("add", "add", "remove", "daemon killed", "server killed", "daemon stopped", "client", "supervisor killed")


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3))
def test_whatever_happens_groups_with_members_are_served_at_the_end_and_no_others(node: Node, seed: int) -> None:
    """Random members, kills and stops of every process, and supervisors, each a moment after the one before."""
    chance = random.Random(seed)
    groups = [node.group("one"), node.group("two"), node.group("one", card=1)]
    for _ in range(40):
        happens(node, chance.choice(EVENTS), chance.choice(groups), chance.choice(("a", "b")))
        time.sleep(chance.uniform(0, 0.2))
    wanted = node.directories.wanted()
    time.sleep(3)  # in which it is noticed that a daemon does not answer
    eventually(lambda: node.directories.ready() == wanted, within_s=30)
    assert {of for of in groups if node.pids(of, servers=False)} == wanted
    assert [works(node.client(of)) for of in wanted] == [0] * len(wanted)
    assert not [of for of in groups if of not in wanted and node.pids(of, servers=True)]
