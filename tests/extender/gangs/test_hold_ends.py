"""Room that is kept free for a gang follows the gang and the nodes: it moves, or ends, as soon as they change."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import pytest
from msgspec import structs

from extender.gangs.room_holding import IMPOSSIBLE
from extender.state.gang_members import key_of
from extender.state.held_room import HeldRoom
from extender.state.objects import GpuNode, KubeNode, WatchedLease, WatchedPod
from extender.state.pod_reader import PodReader
from tests import strategies
from tests.extender.conftest import Clock
from tests.extender.gangs.gangs import HOLD_AFTER_S, HOLD_S, NODES, Extender, node
from vgpu.domain import names
from vgpu.domain.asks.gang import GangSource
from vgpu.domain.asks.node_rules import NodeMarks, Taint
from vgpu.domain.cards.device import Node
from vgpu.domain.identifiers import Namespace, NodeName

N1, N2 = NODES


@dataclass
class Held:
    """Two nodes of two cards, a small pod on each of them, and a gang of whole cards that has waited for long."""

    clock: Clock = field(default_factory=Clock)
    members: list[WatchedPod] = field(default_factory=list)
    made: int = 0

    def __post_init__(self) -> None:
        self.extender = Extender(self.clock, None)
        for name in NODES:
            for _ in range(2):
                self.small(name)

    def pod(self, size: int = 0, *, gang: str = "train", **share: int) -> WatchedPod:
        self.made += 1
        annotations = {names.GANG: gang, names.GANG_SIZE: str(size)} if size else {}
        obj = strategies.pod(strategies.container(**share), annotations=annotations, uid=f"pod{self.made}")
        del obj["spec"]["nodeName"]
        pod = PodReader().decoded(strategies.admit(obj))
        self.extender.cluster.updates.upsert_pod(pod)
        return pod

    def small(self, name: NodeName, cores: int = 60) -> WatchedPod:
        """Bind a pod with one slice to a node. With 60 percent of a card's time, a card has room for one such pod."""
        pod = self.pod(gpu_mem=256, gpu_cores=cores)
        chosen = self.extender.binder._reserve(pod, name)
        assert not isinstance(chosen, str)
        bound = structs.replace(pod, node=name, assignment=chosen, has_started=True)
        self.extender.cluster.updates.upsert_pod(bound)
        return bound

    def gang(self, size: int, gpu: int = 1) -> None:
        """Create a gang, which kube-scheduler tries in vain, and let it wait until room is kept free for it."""
        self.members = [self.pod(size, gpu=gpu) for _ in range(size)]
        self.ask(self.members[0])
        self.pass_time(HOLD_AFTER_S + 1)
        assert self.held is not None

    def ask(self, pod: WatchedPod) -> set[str]:
        """Ask filter about a pod on all nodes, and return the reasons of its refusals."""
        answer = asyncio.run(self.extender.filter.judge(pod, NODES, asyncio.sleep))
        return set(map(str, answer.reasons))

    def pass_time(self, seconds: float) -> None:
        self.clock.seconds += seconds
        asyncio.run(self.extender.deadlines.look())

    @property
    def held(self) -> HeldRoom | None:
        return self.extender.cluster.holds.now

    def held_nodes(self) -> set[str]:
        return set(self.held.usages) if self.held else set()

    def why(self) -> str:
        key = key_of(self.members[0])
        assert key is not None
        waits = self.extender.tracker.why(key)
        return waits[1] if waits else ""

    def change_node(self, name: NodeName, marks: NodeMarks) -> None:
        before = self.extender.cluster.objects.nodes[name]
        self.extender.cluster.updates.upsert_nodes(replace(before, marks=marks))

    def change_card(self, name: NodeName, **changes: Any) -> None:
        """Change the first card of a node."""
        known = node(name)
        changed = replace(known, cards=(replace(known.cards[0], **changes), *known.cards[1:]))
        before = self.extender.cluster.objects.gpunodes[name]
        self.extender.cluster.updates.upsert_gpunodes(GpuNode(changed, before.uid, before.created, before.version + 1))

    def report_again(self, name: NodeName) -> None:
        """Have a newer GPUNode report the first card of a node too."""
        newer, card = NodeName("n0"), node(name).cards[0]
        self.extender.cluster.leases.put(WatchedLease(names.node_lease(newer), newer, "x", 1 << 30))
        self.extender.cluster.updates.upsert_gpunodes(GpuNode(Node(newer, 256, (card,)), newer, "2027-01-01T00:00:00Z"))


@pytest.fixture
def held() -> Held:
    return Held()


LOSSES: dict[str, Callable[[Held], None]] = {
    "the Node is deleted": lambda held: held.extender.cluster.updates.delete_nodes(N2),
    "the GPUNode is deleted": lambda held: held.extender.cluster.updates.delete_gpunodes(N2),
    "the node is cordoned": lambda held: held.change_node(N2, NodeMarks(is_unschedulable=True)),
    "the node is not Ready": lambda held: held.change_node(N2, NodeMarks(is_ready=False)),
    "the node is tainted": lambda held: held.change_node(N2, NodeMarks(taints=(Taint("a", "b", "NoSchedule"),))),
    "the device plugin is gone": lambda held: held.extender.cluster.updates.upsert_nodes(
        KubeNode(N2, {names.SLICE: 0, names.CARD: 0})
    ),
    "a card is ill": lambda held: held.change_card(N2, healthy=False, reason="Xid 79"),
    "a card is cordoned": lambda held: held.change_card(N2, cordoned=True),
    "a card counts on another node": lambda held: held.report_again(N2),
}


@pytest.mark.parametrize("loss", LOSSES)
def test_nothing_is_kept_for_a_gang_that_does_not_fit_what_is_left(held: Held, loss: str) -> None:
    held.gang(size=4)
    assert held.held_nodes() == set(NODES)
    small = held.pod(gpu_mem=256)
    assert held.ask(small) == {"CardKeptForGang"}
    LOSSES[loss](held)
    held.pass_time(0.5)
    assert held.held is None
    assert not held.ask(small) & {"CardKeptForGang"}
    assert IMPOSSIBLE in held.why()
    assert held.extender.holding.outcomes["impossible"] == 1
    held.pass_time(HOLD_S)
    assert held.held is None


@pytest.mark.parametrize("loss", LOSSES)
def test_other_room_is_kept_where_a_part_of_it_is_lost(held: Held, loss: str) -> None:
    held.gang(size=2)
    (name,) = held.held_nodes()
    other = N1 if name == N2 else N2
    if name != N2:  # the losses are those of n2
        held.extender.cluster.updates.delete_gpunodes(N1)
        held.pass_time(0.5)
        assert held.held_nodes() == {N2}
        held.extender.cluster.updates.upsert_gpunodes(GpuNode(node(N1), N1, "2026-01-01T00:00:00Z"))
        other = N1
    before = held.held
    assert before is not None
    LOSSES[loss](held)
    held.pass_time(0.5)
    assert held.held is not None
    assert held.held_nodes() == {other}
    assert (held.held.since_ms, held.held.until_ms) == (before.since_ms, before.until_ms)
    assert f"{other} (2)" in held.why()
    held.pass_time(HOLD_S)
    assert held.held is None  # moving adds no time


def test_room_is_kept_again_once_the_node_is_back(held: Held) -> None:
    held.gang(size=4)
    held.extender.cluster.updates.delete_gpunodes(N2)
    held.pass_time(0.5)
    assert held.held is None
    held.extender.cluster.updates.upsert_gpunodes(GpuNode(node(N2), N2, "2026-01-01T00:00:00Z"))
    held.pass_time(HOLD_AFTER_S + 1)
    assert held.held_nodes() == set(NODES)
    assert IMPOSSIBLE not in held.why()


def test_nothing_is_kept_when_the_pods_of_the_gang_are_gone(held: Held) -> None:
    held.gang(size=4)
    for member in held.members:
        held.extender.cluster.updates.delete_pod(member)
    held.pass_time(0.5)
    assert held.held is None
    assert held.extender.holding.outcomes["dropped"] == 1


def test_other_room_is_kept_when_the_gang_is_made_anew_with_fewer_pods(held: Held) -> None:
    held.gang(size=4)
    for member in held.members:
        held.extender.cluster.updates.delete_pod(member)
    held.members = [held.pod(2, gpu=1) for _ in range(2)]
    held.ask(held.members[0])
    held.pass_time(0.5)
    assert held.held is not None
    assert held.held.cards == 2
    assert "room on 2 cards is kept free for it" in held.why()


def test_room_stays_where_it_is_while_pods_come_and_go(held: Held) -> None:
    held.gang(size=2)
    before = held.held
    (name,) = held.held_nodes()
    (other,) = set(NODES) - {name}
    held.small(NodeName(other), cores=10)
    held.pass_time(0.5)
    assert held.held is before


def test_a_gang_that_fits_no_cards_that_exist_makes_no_other_gang_wait(held: Held) -> None:
    """It is looked at first, since it has waited longer; room is kept for the other one at the next look."""
    huge = [held.pod(5, gpu=1, gang="huge") for _ in range(5)]
    held.ask(huge[0])
    held.clock.seconds += 1
    held.members = [held.pod(4, gpu=1) for _ in range(4)]
    held.ask(held.members[0])
    held.pass_time(HOLD_AFTER_S + 1)
    assert held.extender.holding.outcomes["impossible"] == 1
    assert held.held is None
    held.pass_time(0.5)
    assert held.held_nodes() == set(NODES)


def test_few_impossible_gangs_of_a_namespace_are_listed() -> None:
    known = Extender(Clock(), None).tracker.known
    for number in range(20):
        known.open((Namespace("crowd"), GangSource.ANNOTATION, f"g{number}")).impossible_since_ms = 1
    known.open((Namespace("other"), GangSource.ANNOTATION, "g")).impossible_since_ms = 1
    listed = [key[0] for key, _ in known.impossible()]
    assert (listed.count(Namespace("crowd")), listed.count(Namespace("other"))) == (16, 1)
