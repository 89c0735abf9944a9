"""What happens to a client, a daemon or the supervisor of one group touches that group only (simulated cards)."""

import os
import shutil
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from limiter import launch
from simgpu.session import ProbeSession
from tests.eventually import eventually
from tests.simgpu import mps_daemon
from tests.vgpu.node.builders import allocation, bound, slices
from tests.vgpu.node.space.test_supervisor import NOT_READY, RPC_FAILURE, Node, node, works
from vgpu.adapters import mps
from vgpu.domain import names
from vgpu.domain.asks.policy import ComputePolicy
from vgpu.domain.asks.space import MAX_CLIENTS, SpaceGroup, SpaceOptions
from vgpu.domain.formats.limits import ANY_GPU, CardLimit, Limits, SpaceMembership
from vgpu.domain.identifiers import Namespace
from vgpu.node.gpunode.group_faults import GroupFaults
from vgpu.node.processes import share_files
from vgpu.node.space import seen_faults
from vgpu.node.space.seen_faults import SeenFault

pytestmark = pytest.mark.heavy

if TYPE_CHECKING:
    from vgpu.node.containers.allocations import Allocation
    from vgpu.node.containers.bound_pod import BoundPod
    from vgpu.node.space.directories import GroupOnCard

__all__ = ["node"]  # a fixture

OUT_OF_MEMORY, ILLEGAL_ADDRESS, MAX_CLIENTS_REACHED = 2, 700, 808
SERVED_S = 10.0  # within which a card serves a new member, whatever happened


class TwoGroups:
    """Two groups on one card, of which the first has two clients and the other one, and a program outside of MPS.

    Attributes:
        of: the group to which something happens.
        hit: its client to which it happens.
        neighbour: its other client.
    """

    def __init__(self, node: Node) -> None:
        self.node, self.of, self.other = node, node.group("models"), node.group("other")
        pods: dict[GroupOnCard, BoundPod] = {}
        self.held: list[Allocation] = []
        for number, (of, name) in enumerate(((self.of, "models"), (self.other, "other"))):
            group = SpaceGroup(Namespace("team"), name)
            pods[of] = replace(bound(name), space=SpaceOptions(group))
            self.held.append(allocation(slices(0, number), pods[of], sequence=number))
            node.join(of, self.held[-1].id)
        self.hit, self.neighbour, self.elsewhere = node.client(self.of), node.client(self.of), node.client(self.other)
        self.outside = node.world.session()
        assert self.outside("start()") == 0
        self.regions: dict[str, Path] = {}
        self.faults = GroupFaults(node.space.parent, time.time, lambda: self.held, pods.values, self.seen)

    def seen(self, member: str) -> SeenFault | None:
        """What the region of a member says of a fault, as the device plugin reads it."""
        header = share_files.read_region_header(self.regions.get(member, Path("none")))
        return seen_faults.seen_in(header, time.time, time.monotonic)

    def limited_client(self, folder: Path) -> ProbeSession:
        """A process of a container in the group to which something happens, with the limiter and these files of it."""
        variables = {**launch.variables(folder, {}), "VGPU_SPACE_DIRECTORY": str(self.node.directories.pipe(self.of))}
        session = self.node.world.session(**variables)
        assert session("start()") == 0
        assert session("device_attribute(133)") == 1
        return session

    def told(self) -> list[tuple[str, str]]:
        """The pods of which the device plugin reports a fault, with the reason, as their Events have it."""
        self.faults.look()
        return [(str(report["pod"]), str(report["reason"])) for report in self.faults.reports(16)]

    def others_go_on(self) -> bool:
        """Whether the other group's client and the program outside of MPS work, as before."""
        return [works(self.elsewhere), works(self.outside)] == [0, 0]

    def end(self) -> None:
        """Take the members away, and assert that no process of MPS stays, also where a client never exits."""
        for of, held in zip((self.of, self.other), self.held, strict=True):
            self.node.directories.remove_member(of, held.id)
        eventually(lambda: not list(mps_daemon.pids(self.node.world)))
        assert not list(mps_daemon.pids(self.node.world, mps.SERVER))
        assert self.node.directories.ready() == self.node.directories.faults().keys() == set()


def is_client(session: ProbeSession) -> bool:
    """Whether a new process is a client of MPS: before a daemon that was killed runs again it works outside of it."""
    return bool(session("start()") == 0 and session("device_attribute(133)") == 1)


@contextmanager
def served_in_time(groups: TwoGroups) -> Iterator[None]:
    """Assert that a new member of the group is served within SERVED_S of the beginning."""
    begun = time.monotonic()
    yield
    eventually(lambda: is_client(groups.node.session(groups.of)))
    assert works(groups.node.client(groups.of)) == 0
    assert time.monotonic() - begun < SERVED_S


@pytest.fixture
def groups(node: Node) -> TwoGroups:
    # GroupFaults reads the directories below a state directory.
    node.supervisor.kill()
    node.supervisor.wait()
    node.space = node.space / "space"
    node.space.mkdir()
    node.directories = type(node.directories)(node.space)
    node.supervisor = node.start()
    return TwoGroups(node)


def illegal_access(client: ProbeSession) -> None:
    client("kernels.launch(kernels.load('fault_10'))")
    assert client("cuda.cuCtxSynchronize()") == ILLEGAL_ADDRESS


def test_an_illegal_access_ends_the_contexts_of_its_group_and_is_told_to_its_pods_only(groups: TwoGroups) -> None:
    with served_in_time(groups):
        illegal_access(groups.hit)
        assert works(groups.neighbour) == ILLEGAL_ADDRESS
        assert groups.others_go_on()
        eventually(lambda: groups.told() == [("default/models", names.SPACE_SERVER_FAULTED)])
        groups.hit.kill()
        groups.neighbour.kill()
    assert groups.others_go_on()
    assert groups.told() == [("default/models", names.SPACE_SERVER_FAULTED)]
    groups.end()


def test_a_fault_whose_clients_all_exit_before_the_daemon_is_asked_is_told_once(groups: TwoGroups) -> None:
    """The daemon says ACTIVE again then: what the limiter of a client has left in its region is all that is known."""
    groups.node.supervisor.kill()  # it asks no daemon from here on
    groups.node.supervisor.wait()
    groups.hit.kill()
    groups.neighbour.kill()
    membership = SpaceMembership(SpaceGroup(Namespace("team"), "models").fingerprint, None)
    granted = Limits((CardLimit(ANY_GPU, None, 0),), ComputePolicy.BURST, space=membership)
    folders = [launch.write_files(granted) for _ in range(2)]
    try:
        sessions = [groups.limited_client(folder) for folder in folders]
        illegal_access(sessions[0])
        assert works(sessions[1]) == ILLEGAL_ADDRESS
        for session in sessions:
            session.kill()
        groups.regions[groups.held[0].id] = folders[0] / "region"
        assert groups.told() == [("default/models", names.SPACE_SERVER_FAULTED)]
        groups.regions[groups.held[0].id] = folders[1] / "region"
        assert groups.told() == [("default/models", names.SPACE_SERVER_FAULTED)]
        assert groups.faults.counts == {groups.of: 1}
        assert groups.others_go_on()
    finally:
        for folder in folders:
            shutil.rmtree(folder)
    groups.node.supervisor = groups.node.start()
    groups.end()


@pytest.mark.parametrize("number", [signal.SIGABRT, signal.SIGKILL])
def test_a_client_that_aborts_or_is_killed_in_its_work_harms_nobody(groups: TwoGroups, number: int) -> None:
    groups.hit("kernels.launch(kernels.load('spin_60000000'))")
    server = groups.node.pids(groups.of, servers=True)
    with served_in_time(groups):
        groups.hit.process.send_signal(number)
        assert groups.hit.process.wait(10) == -number
        assert works(groups.neighbour) == 0
        assert groups.others_go_on()
    assert groups.node.pids(groups.of, servers=True) == server
    assert (groups.told(), groups.node.directories.faults()) == ([], {})
    groups.end()


def test_a_stopped_client_harms_nobody_and_its_server_ends_with_the_last_member(groups: TwoGroups) -> None:
    """A container that has ended may leave a process that never exits; its server does not wait for that process."""
    groups.hit.process.send_signal(signal.SIGSTOP)
    with served_in_time(groups):
        assert works(groups.neighbour) == 0
        assert groups.others_go_on()
    assert groups.told() == []
    groups.end()
    groups.hit.process.send_signal(signal.SIGCONT)
    assert works(groups.hit) == RPC_FAILURE


def test_a_client_without_memory_gets_an_error_and_harms_nobody(groups: TwoGroups) -> None:
    with served_in_time(groups):
        assert groups.hit(f"alloc({1 << 50})")[0] == OUT_OF_MEMORY
        assert [works(groups.hit), works(groups.neighbour)] == [0, 0]
        assert groups.others_go_on()
    assert groups.told() == []
    groups.end()


@pytest.mark.parametrize("servers", [True, False], ids=["server", "daemon"])
def test_a_killed_server_or_daemon_ends_its_own_clients_only(groups: TwoGroups, servers: bool) -> None:
    with served_in_time(groups):
        os.kill(groups.node.pids(groups.of, servers=servers)[0], signal.SIGKILL)
        eventually(lambda: [works(groups.hit), works(groups.neighbour)] == [RPC_FAILURE] * 2)
        assert groups.others_go_on()
    assert groups.others_go_on()
    assert groups.told() == []  # no client has faulted
    groups.end()


def test_a_killed_supervisor_ends_no_client_and_its_successor_tells_of_a_fault_of_meanwhile(groups: TwoGroups) -> None:
    groups.node.supervisor.kill()
    groups.node.supervisor.wait()
    assert [works(groups.hit), works(groups.neighbour)] == [0, 0]
    assert groups.others_go_on()
    illegal_access(groups.hit)
    with served_in_time(groups):
        groups.node.supervisor = groups.node.start()
        eventually(lambda: groups.told() == [("default/models", names.SPACE_SERVER_FAULTED)])
        groups.hit.kill()
        groups.neighbour.kill()
    assert groups.others_go_on()
    groups.end()


def test_the_49th_client_of_a_group_is_refused_and_the_other_group_is_not_full(groups: TwoGroups) -> None:
    clients = [groups.node.session(groups.of) for _ in range(MAX_CLIENTS - 2)]
    assert {client("cuda.cuInit(0)") for client in clients} == {0}
    assert groups.node.session(groups.of)("cuda.cuInit(0)") == MAX_CLIENTS_REACHED
    assert works(groups.node.client(groups.other)) == 0
    assert [works(groups.hit), works(groups.neighbour)] == [0, 0]
    assert groups.others_go_on()
    with served_in_time(groups):
        for client in clients[:2]:
            client.kill()
    assert groups.told() == []
    groups.end()


@pytest.mark.slow
def test_a_client_that_is_stopped_in_a_fault_keeps_its_group_waiting_for_at_most_ten_seconds(groups: TwoGroups) -> None:
    groups.neighbour.process.send_signal(signal.SIGSTOP)
    with served_in_time(groups):
        illegal_access(groups.hit)
        groups.hit.kill()
        assert groups.node.session(groups.of)("start()") == NOT_READY
        assert groups.others_go_on()
        eventually(lambda: groups.told() == [("default/models", names.SPACE_SERVER_FAULTED)])
    assert groups.others_go_on()
    groups.end()
