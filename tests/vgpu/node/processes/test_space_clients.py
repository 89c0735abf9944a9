"""Which processes of members of groups in space are no clients, by NVML's two lists."""

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from tests.vgpu.node.builders import bound, uuid
from vgpu.domain.asks.space import SpaceGroup, SpaceOptions
from vgpu.domain.identifiers import ContainerName, Namespace
from vgpu.node.containers.bound_pod import BoundPod
from vgpu.node.processes import space_clients
from vgpu.node.processes.findings import ListedProcess
from vgpu.node.processes.unlimited import ProcessGroup

MAIN = ContainerName("main")
PIDS = st.frozensets(st.integers(1, 8))


def member(name: str) -> BoundPod:
    return replace(bound(name), space=SpaceOptions(SpaceGroup(Namespace("default"), "")))


def processes(pod: BoundPod, card: int, *pids: int) -> ProcessGroup:
    return ProcessGroup(pod, MAIN, uuid(card), tuple(ListedProcess(uuid(card), pid, None) for pid in pids))


@given(PIDS, PIDS)
def test_a_members_process_that_is_no_client_is_outside(listed: frozenset[int], clients: frozenset[int]) -> None:
    groups = [processes(member("m"), 0, *listed), processes(bound("p"), 0, *listed)]
    found = space_clients.outside(groups, {uuid(0): clients})
    assert {pid for _, pid in found} == listed - clients
    assert space_clients.counted(groups[:1], found) == ({(member("m").uid, MAIN): len(found)} if found else {})


def test_a_card_that_does_not_tell_its_clients_is_not_judged() -> None:
    assert space_clients.outside([processes(member("m"), 1, 5)], {uuid(0): frozenset()}) == frozenset()


def test_the_processes_of_each_container_are_counted() -> None:
    groups = [processes(member("m"), 0, 1, 2), processes(member("n"), 0, 3)]
    found = space_clients.outside(groups, {uuid(0): frozenset({1})})
    assert space_clients.counted(groups, found) == {(member("m").uid, MAIN): 1, (member("n").uid, MAIN): 1}
