"""The copy of the cluster that is made of pieces is the cluster, whatever has changed, and costs what has changed."""

import asyncio
import random
from dataclasses import replace
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from extender.admin.exchange.messages import Piece, SnapshotEnd
from extender.admin.exchange.mirror import MAPPINGS, Mirror
from extender.admin.exchange.sent_objects import PER_PIECE, SentObjects
from extender.admin.exchange.snapshots import Snapshots
from extender.explain.last_decisions import LastDecision
from extender.state.change_journal import ChangeJournal
from extender.state.fields.container_use import ContainerUse
from extender.state.held_room import HeldRoom
from extender.state.objects import WatchedLease, WatchedPod
from tests.extender.admin.conftest import CopiedSnapshots, shown
from tests.extender.admin.exchange.test_cluster_client import end
from tests.extender.admin.exchange.whole_snapshot import whole
from tests.extender.conftest import World
from vgpu.domain import names
from vgpu.domain.asks.gang import GangSource
from vgpu.domain.cards.reasons import Reason
from vgpu.domain.cards.share import NodeState, Usage
from vgpu.domain.grants.assignment import Assignment, Grant
from vgpu.domain.identifiers import DEFAULT_NAMESPACE, CardUuid, ContainerName, NodeName, PodUid

NODES = [NodeName(f"n{n}") for n in (1, 2, 3)]
STEPS = 150
MAIN = ContainerName("main")


class Changing:
    """Changes of a world whose watches are stopped."""

    def __init__(self, world: World, template: WatchedPod, seed: int) -> None:
        self.world = world
        self.cluster = world.cluster
        self.template = template
        self.random = random.Random(seed)
        self.nodes, self.gpunodes = dict(world.cluster.objects.nodes), dict(world.cluster.objects.gpunodes)
        self.number = 0

    def step(self) -> None:
        """Change something."""
        ways = [
            self.put_pod, self.put_pod, self.remove_pod, self.report, self.lose_node, self.put_node, self.pass_time,
            self.renew, self.lose_lease, self.hold, self.decide,
        ]  # fmt: skip
        self.random.choice(ways)(self.random.choice(NODES))

    def put_pod(self, node: NodeName) -> None:
        self.number += 1
        is_bound = self.random.random() < 0.7
        grants = {MAIN: (Grant(CardUuid(f"GPU-{node}-0"), 256, 0),)}
        pod = msgspec.structs.replace(
            self.template,
            uid=PodUid(f"uid-{self.random.randrange(8)}"), version=self.number, node=node if is_bound else "",
            **{"assignment": Assignment(grants)} if is_bound else {},
        )  # fmt: skip
        self.cluster.updates.upsert_pod(pod)

    def remove_pod(self, _: NodeName) -> None:
        if pods := list(self.cluster.objects.pods.values()):
            self.cluster.updates.delete_pod(self.random.choice(pods))

    def report(self, node: NodeName) -> None:
        if gpunode := self.cluster.objects.gpunodes.get(node):
            self.number += 1
            use = ContainerUse(PodUid("uid-1"), MAIN, CardUuid(f"GPU-{node}-0"), 0, self.number, 0)
            used = replace(gpunode, version=self.number, usage={PodUid("uid-1"): (use,)})
            cordoned = [replace(card, cordoned=self.random.random() < 0.5) for card in gpunode.node.cards]
            changed = replace(gpunode, version=self.number, node=replace(gpunode.node, cards=tuple(cordoned)))
            self.cluster.updates.upsert_gpunodes(self.random.choice([used, changed]))

    def lose_node(self, node: NodeName) -> None:
        lose = self.random.choice([self.cluster.updates.delete_nodes, self.cluster.updates.delete_gpunodes])
        lose(node)

    def put_node(self, node: NodeName) -> None:
        gpunode = self.gpunodes[node]
        without_cards = replace(gpunode, node=replace(gpunode.node, cards=()))
        self.cluster.updates.upsert_gpunodes(self.random.choice([gpunode, gpunode, without_cards]))
        self.cluster.updates.upsert_nodes(self.nodes[node])

    def pass_time(self, _: NodeName) -> None:
        self.world.clock.seconds += self.random.choice([0.5, 2.0, 4.0, 30.0])

    def renew(self, node: NodeName) -> None:
        self.number += 1
        self.cluster.leases.put(WatchedLease(names.node_lease(node), node, f"time-{self.number}", 3))

    def lose_lease(self, node: NodeName) -> None:
        self.cluster.leases.remove(names.node_lease(node))

    def hold(self, node: NodeName) -> None:
        gang = (DEFAULT_NAMESPACE, GangSource.ANNOTATION, "train")
        usages = {node: {CardUuid(f"GPU-{node}-0"): Usage(slices=self.random.randrange(3))}}
        self.cluster.holds.now = self.random.choice([None, HeldRoom(gang, 0, usages)])

    def decide(self, _: NodeName) -> None:
        self.world.seen.decisions.refused(self.template, {})


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("noted", [None, 2], ids=["all-noted", "few-noted"])
async def test_the_copy_is_the_cluster_whatever_has_changed(world: World, seed: int, noted: int | None) -> None:
    uid = (await world.create_pod(gpu_mem=256))["metadata"]["uid"]
    world.stop_watching()
    await asyncio.sleep(0)
    if noted is not None:
        world.cluster.objects.changed_pods = ChangeJournal(noted)
        world.cluster.objects.changed_nodes = ChangeJournal(noted)
        world.cluster.states.listen(world.cluster.objects.changed_nodes.add)
    source, changing = CopiedSnapshots(shown(world)), Changing(world, world.cluster.objects.pods[uid], seed)
    for _ in range(STEPS):
        for _ in range(changing.random.randrange(4)):
            changing.step()
        await world.cluster.index(asyncio.sleep)
        copy = await source.take()
        assert copy == whole(world, copy)


async def test_a_cluster_that_has_not_changed_costs_nothing(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    looked: list[NodeName] = []
    usable = world.cluster.states.usable

    def noted(name: NodeName) -> NodeState | Reason:
        looked.append(name)
        return usable(name)

    monkeypatch.setattr(world.cluster.states, "usable", noted)
    source = Snapshots(shown(world))
    assert {piece.mapping for piece in await taken(source)} == {"gpunodes", "views"}
    assert sorted(looked) == NODES
    looked.clear()
    assert await taken(source) == []
    assert looked == []
    pod = await world.create_pod(gpu_mem=256)
    assert not await world.bind(pod, "n2")
    await world.until_bound_is_watched(pod)
    looked.clear()
    assert [(piece.mapping, list(piece.changed)) for piece in await taken(source)] == [
        ("pods", [pod["metadata"]["uid"]]), ("views", ["n2"]),
    ]  # fmt: skip
    assert looked == ["n2"]


async def taken(source: Snapshots) -> list[Piece]:
    return [frame for frame in await source.changes() if isinstance(frame, Piece)]


async def test_a_model_that_was_seen_since_goes_to_the_copy(world: World) -> None:
    inputs = shown(world)
    source = Snapshots(inputs)
    sent = []
    for model in ("H100", "H100", "H200"):
        inputs.policies().models.bit(model)
        last = list(await source.changes())[-1]
        assert isinstance(last, SnapshotEnd)
        sent.append(last.policies and last.policies.models.names)
    assert sent == [("H100",), None, ("H100", "H200")]


DECISIONS = [LastDecision(n, 1, {}) for n in range(3)]
MADE = st.dictionaries(st.text("abcdefgh", min_size=1, max_size=2), st.sampled_from(DECISIONS), max_size=40)


@given(st.lists(st.tuples(st.sampled_from(MAPPINGS[:4]), MADE), max_size=6))
def test_pieces_are_small_and_make_the_mapping(made: list[tuple[str, dict[str, LastDecision]]]) -> None:
    mirror = Mirror()
    sent: dict[str, SentObjects[str, Any]] = {name: SentObjects(name) for name in MAPPINGS}
    for number, (name, mapping) in enumerate(made, 1):
        for piece in sent[name].pieces([*mapping, *sent[name].keys()], mapping.get):
            assert len(piece.changed) <= PER_PIECE
            mirror.apply(piece)
        assert getattr(mirror.take(end(number)), name) == mapping


@given(st.lists(st.integers(0, 5), max_size=20), st.integers(0, 20), st.integers(1, 8))
def test_a_reader_of_the_journal_misses_nothing(keys: list[int], read: int, most: int) -> None:
    journal = ChangeJournal[int](most)
    for key in keys:
        journal.add(key)
    read = min(read, journal.count)
    found = journal.since(read)
    assert found == (set(keys[read:]) if len(keys) - read <= most else None)
    assert journal.since(-1) is None
