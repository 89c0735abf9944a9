"""Which allocations may still be in use after their pods have left the API."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest

from tests.vgpu.node.builders import allocation, bound, mount_of, slices
from vgpu.node.containers.allocations import Allocation, Allocations
from vgpu.node.containers.departed import SETTLED_S, DepartedHolders
from vgpu.node.containers.pods import NodePods

POD = bound("p")


@dataclass
class Node:
    """One allocation of POD. `using` are the allocations whose files processes have mounted; None: not seen."""

    state: Path
    using: set[str] | None = field(default_factory=set)
    now: float = 0.0
    looks: int = 0
    changes: int = 0

    def __post_init__(self) -> None:
        self.pods, self.allocations = NodePods(), Allocations(self.state)
        self.of_pod = allocation(slices(0, 0, 1), POD, is_proven=True)
        self.allocations.add(self.of_pod)
        self.departed = DepartedHolders(self.pods, self.allocations, self._mountinfos, lambda: self.now)
        self.departed.on_change = self._changed

    def _mountinfos(self) -> Mapping[int, str] | None:
        self.looks += 1
        return None if self.using is None else dict(enumerate(map(mount_of, self.using)))

    def _changed(self) -> None:
        self.changes += 1

    async def look(self, after_s: float = 0.5) -> tuple[Allocation, ...]:
        self.now += after_s
        await self.departed.look()
        return self.departed.held()


@pytest.fixture
async def node(tmp_path: Path) -> Node:
    node = Node(tmp_path)
    node.pods.upsert(POD)
    return node


async def test_the_allocation_of_a_pod_deleted_by_force_is_held_until_its_processes_have_ended(node: Node) -> None:
    node.using = {node.of_pod.id, "of-another-node"}
    assert await node.look() == ()
    node.pods.delete(POD)
    assert node.departed.held() == (node.of_pod,), "before the first look too"
    for _ in range(100):
        assert await node.look() == (node.of_pod,)
        assert node.departed.is_used(node.of_pod)
    node.using = set()
    assert await node.look() == ()
    assert not node.departed.is_used(node.of_pod)
    assert node.changes == 1


async def test_a_container_that_was_being_started_is_held_from_its_start_on(node: Node) -> None:
    node.pods.delete(POD)
    assert await node.look() == ()
    node.using = {node.of_pod.id}
    assert await node.look() == (node.of_pod,)
    node.using = set()
    assert await node.look() == ()


async def test_a_pod_that_has_ended_before_its_deletion_holds_nothing_and_is_not_looked_for(node: Node) -> None:
    node.pods.upsert(replace(POD, is_terminal=True))
    node.pods.delete(POD)
    assert node.departed.held() == ()
    await node.look()
    assert node.looks == 0


async def test_a_new_pod_of_the_name_does_not_make_one_that_has_ended_a_holder(node: Node) -> None:
    """The slices would not be offered to the new pod, which would get others and be refused for good."""
    node.pods.upsert(replace(POD, is_terminal=True))
    node.pods.delete(POD)
    node.pods.upsert(bound("p", uid="next"))
    assert node.departed.held() == ()


async def test_a_new_pod_of_the_name_does_not_release_what_the_first_holds(node: Node) -> None:
    node.using = {node.of_pod.id}
    node.pods.upsert(bound("p", uid="next"))
    node.pods.delete(POD)
    assert await node.look() == (node.of_pod,)


async def test_a_plugin_that_starts_finds_the_pods_that_were_deleted_meanwhile(tmp_path: Path) -> None:
    node = Node(tmp_path)
    node.using = {node.of_pod.id}
    node.pods.replace([], "1")
    assert await node.look() == (node.of_pod,)
    node.using = set()
    assert await node.look() == ()


async def test_the_processes_of_the_node_are_not_read_for_ever(node: Node) -> None:
    node.pods.delete(POD)
    await node.look()
    await node.look(SETTLED_S + 1)
    looks = node.looks
    await node.look()
    assert node.looks == looks
    assert node.departed.held() == ()


async def test_where_no_process_is_seen_the_record_decides(node: Node) -> None:
    node.using = None
    node.pods.delete(POD)
    assert await node.look(1000) == (node.of_pod,)
    assert not node.departed.is_used(node.of_pod), "so that the record is removed in time"
    node.allocations.forget(node.of_pod.id)
    assert await node.look() == ()
