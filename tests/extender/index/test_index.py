"""The index gives the answers of the exact walk over all nodes: the same nodes, the same reasons, the same scores."""

import asyncio
import os
from collections.abc import Iterator, Sequence
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import structs

from extender.index.supply import Supply
from extender.state.cluster import Cluster
from extender.state.fields.scheduling import Scheduling
from extender.state.objects import GpuNode, KubeNode, WatchedLease, WatchedPod
from extender.state.pod_reader import PodReader
from extender.verbs import preferences
from extender.verbs.filter import Filter
from extender.verbs.prioritize import prioritize
from tests import strategies
from tests.extender.conftest import Clock
from vgpu.domain import names
from vgpu.domain.asks import host_request, space
from vgpu.domain.asks.host_request import HostRequest
from vgpu.domain.asks.policy import PackingPolicy
from vgpu.domain.cards.device import Card, CardMode, Node
from vgpu.domain.cards.reasons import Reason
from vgpu.domain.cards.share import NodeState
from vgpu.domain.grants.assignment import Assignment
from vgpu.domain.identifiers import CardUuid, NodeName, PodUid
from vgpu.placement import rank, room
from vgpu.placement.choose import NodeRefusal
from vgpu.placement.costs import fragmentation
from vgpu.placement.policies import DefaultPolicies
from vgpu.placement.room import PodAsk

pytestmark = pytest.mark.heavy

N0 = NodeName("n0")

READER = PodReader()
NAMES = [NodeName(f"n{n}") for n in range(5)]
MODELS = ["NVIDIA H100 80GB HBM3", "NVIDIA A100-SXM4-40GB", "Tesla T4"]
UNKNOWN = NodeName("not-a-node")

cards = st.builds(
    Card,
    uuid=st.just(""),
    index=st.just(0),
    model=st.sampled_from(MODELS),
    memory_mib=st.sampled_from([1000, 1024, 2048]),
    healthy=st.sampled_from([True, True, True, False]),
    cordoned=st.sampled_from([False, False, False, True]),
    mode=st.sampled_from([CardMode.SHARED, CardMode.SHARED, CardMode.SHARED, CardMode.EXCLUSIVE, CardMode.UNKNOWN]),
    held_slices=st.sampled_from([0, 0, 0, 1, 3]),
    held_whole=st.sampled_from([False, False, False, True]),
    serves_space=st.sampled_from([True, True, False]),
)


def scores_by_rank(ranked: Sequence[str]) -> dict[str, int]:
    """Give the first node the score 10 and every other node a smaller one that falls with its rank, at least 0."""
    rest = max(1, len(ranked) - 1)
    return {name: 10 if n == 0 else 9 * (rest - n) // rest for n, name in enumerate(ranked)}


@st.composite
def pods(draw: st.DrawFn, uid: str) -> WatchedPod:
    """Pods of one container, mostly; some of several, some of whole cards, some with annotations."""
    kind = draw(st.sampled_from(["one", "one", "one", "whole", "several"]))
    if kind == "several":
        obj = draw(strategies.share_pods())
    else:
        gpus = draw(st.integers(1, 3))
        memory = draw(st.sampled_from([1, 256, 500, 900, 1024, 1500, 2048]))
        amounts: dict[str, int | str] = {"gpu": gpus} if kind == "whole" else {"gpu": gpus, "gpu_mem": gpus * memory}
        if kind == "one" and draw(st.booleans()):
            amounts["gpu_cores"] = gpus * draw(st.sampled_from([1, 30, 50, 100]))
        obj = strategies.pod(strategies.container(**amounts))
    obj["metadata"]["uid"] = uid
    obj["metadata"]["annotations"] |= draw(annotations())
    owner = {"kind": "Job", "name": draw(st.sampled_from(["j", "k"])), "controller": True}
    obj["metadata"]["ownerReferences"] = [owner]
    obj["metadata"]["labels"] = draw(st.sampled_from([{}, {"app": "a"}, {"app": "b"}]))
    host = draw(st.sampled_from([host_request.NOTHING, HostRequest(1000, 1024), HostRequest(8000, 512)]))
    pod = READER.decoded(strategies.admit(obj) if draw(st.integers(0, 9)) else obj)
    return structs.replace(pod, asked=replace(pod.asked, host=host))


@st.composite
def annotations(draw: st.DrawFn) -> dict[str, str]:
    found = {names.NODE_POLICY: str(draw(st.sampled_from(list(PackingPolicy))))}
    uuids = st.sampled_from([f"GPU-{node}-{n}" for node in NAMES for n in range(2)])
    if draw(st.integers(0, 3)) == 0:
        found[names.RACK_POLICY] = draw(st.sampled_from(["pack", "spread"]))
    for name, values in (
        (names.USE_GPU_MODEL, st.sampled_from(["H100", "A100", "h100,t4", "none"])),
        (names.AVOID_GPU_MODEL, st.sampled_from(["T4", "nvidia"])),
        (names.USE_GPU_UUID, uuids),
        (names.AVOID_GPU_UUID, uuids),
        (names.GPU_AFFINITY, st.sampled_from(["app=a", "app=b"])),
        (names.PREFERRED_GPU_AFFINITY, st.sampled_from(["app=a", "app=b"])),
        (names.PREFERRED_GPU_ANTI_AFFINITY, st.sampled_from(["app=a", "app=b"])),
        (names.GPU_ANTI_AFFINITY, st.sampled_from(["app=a", "app=b"])),
    ):
        if draw(st.integers(0, 5)) == 0:
            found[name] = draw(values)
    if draw(st.integers(0, 2)) == 0:
        found[names.COMPUTE_POLICY] = "space"
    return found


@pytest.fixture(autouse=True, scope="module")
def _small_groups() -> Iterator[None]:
    """A group in space is full with two containers on a card."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(space, "MAX_CLIENTS", 2)
        yield


class World:
    """A cluster that changes as the watches, bind and time change it."""

    def __init__(self, defaults: DefaultPolicies) -> None:
        self.clock = Clock()
        self.cluster = Cluster(256, self.clock)
        self.defaults = defaults
        self.filter = Filter(self.cluster, defaults)
        self.version = 0

    def put_node(self, data: st.DataObject, name: str) -> None:
        self.version += 1
        found = data.draw(st.lists(cards, max_size=data.draw(st.sampled_from([2, 3, 4]))))
        if data.draw(st.integers(0, 30)) == 0:
            found = found * 9  # wider than the index
        named = tuple(replace(card, uuid=CardUuid(f"GPU-{name}-{n}"), index=n) for n, card in enumerate(found))
        slice_mib = data.draw(st.sampled_from([256, 256, 256, 256, 512]))
        self.cluster.updates.upsert_gpunodes(
            GpuNode(Node(NodeName(name), slice_mib, named), name, "2026-01-01T00:00:00Z", self.version)
        )

    def put_kubelet(self, data: st.DataObject, name: str) -> None:
        slices = data.draw(st.sampled_from([0, 4, 16, 32, 32, 32]))
        host = data.draw(st.sampled_from([host_request.NOTHING, HostRequest(4000, 4096), HostRequest(64000, 65536)]))
        rack = data.draw(st.sampled_from(["r1", "r2", ""]))
        self.cluster.updates.upsert_nodes(
            KubeNode(NodeName(name), {names.SLICE: slices, names.CARD: slices // 8}, host, rack)
        )

    def put_lease(self, data: st.DataObject, name: str) -> None:
        holder, duration = data.draw(st.sampled_from([name, name, name, ""])), data.draw(st.sampled_from([3, 10]))
        self.cluster.leases.put(
            WatchedLease(names.node_lease(NodeName(name)), holder, str(self.clock.seconds), duration)
        )

    def put_pod(self, data: st.DataObject, name: str) -> None:
        """Bind a pod, end it, or nominate it for a node."""
        self.version += 1
        uid = data.draw(st.sampled_from(["a", "b", "c", "d"]))
        pod = structs.replace(data.draw(pods(uid)), version=self.version, has_started=True)
        self.cluster.demand.see(pod)
        state = self.cluster.states.usable(NodeName(name))
        known = self.cluster.objects.pods.get(PodUid(uid))
        if known is not None and data.draw(st.booleans()):
            self.cluster.updates.delete_pod(structs.replace(known, version=self.version))
        elif data.draw(st.booleans()) and known is None:
            scheduling = Scheduling(priority=data.draw(st.integers(0, 2)), nominated_node=NodeName(name))
            self.cluster.updates.upsert_pod(structs.replace(pod, scheduling=scheduling))
        elif known is None and isinstance(state, NodeState):
            chosen = self.filter.node(pod, NodeName(name))
            if isinstance(chosen, Assignment):
                self.cluster.updates.upsert_pod(structs.replace(pod, node=name, assignment=chosen))

    def remove(self, data: st.DataObject, name: str) -> None:
        match data.draw(st.sampled_from(["gpunode", "node", "lease", "time", "time"])):
            case "gpunode":
                self.cluster.updates.delete_gpunodes(NodeName(name))
            case "node":
                self.cluster.updates.delete_nodes(NodeName(name))
            case "lease":
                self.cluster.leases.remove(names.node_lease(NodeName(name)))
            case "time":
                self.clock.seconds += data.draw(st.sampled_from([1, 3, 6]))

    def expected(self, pod: WatchedPod, asked: Sequence[NodeName]) -> dict[str, Reason | None]:
        """Place the pod on each node by the rule itself, with no cache."""
        walk = Filter(self.cluster, self.defaults)
        found = {name: walk.node(pod, NodeName(name)) for name in asked}
        return {
            name: placement.reason if isinstance(placement, NodeRefusal) else None for name, placement in found.items()
        }

    def answered(self, pod: WatchedPod, asked: Sequence[NodeName]) -> dict[str, Reason | None]:
        answer = asyncio.run(self.filter.judge(pod, asked, asyncio.sleep))
        found: dict[str, Reason | None] = {name.decode().strip('"'): None for name in answer.fitting()}
        for reason, refused in answer.refused().items():
            found |= {name.decode().strip('"'): reason for name in refused}
        assert sum(answer.reasons.values()) == sum(reason is not None for reason in found.values())
        return found

    def expected_scores(self, pod: WatchedPod, asked: Sequence[NodeName]) -> dict[str, int]:
        usable = [state for name in asked if isinstance(state := self.cluster.states.usable(NodeName(name)), NodeState)]
        assert pod.parsed.request is not None
        policy = self.defaults.node_policy_for(pod.parsed.request.options)
        question = self.cluster.demand.asked(pod)  # as the last call of prioritize
        scores = scores_by_rank(
            rank.rank(usable, policy, question, preferences.tiers(self.cluster, pod, asked, self.defaults))
        )
        return {name: scores.get(name, 0) for name in asked}

    def expected_supply(self, typical: tuple[PodAsk, ...]) -> Supply:
        """Add up the room of all usable nodes, one by one."""
        models = self.cluster.demand.policies(self.defaults).models
        states = [self.cluster.states.usable(name) for name in self.cluster.objects.gpunodes]
        rooms = [room.room_of(state, models) for state in states if isinstance(state, NodeState)]
        cards = [card.total_slices for node_room in rooms for card in node_room.cards]
        copies = {ask: sum(fragmentation.copies(node_room, ask) for node_room in rooms) for ask in typical}
        return Supply(copies, sum(node_room.share for node_room in rooms), max(1, sum(cards) // max(1, len(cards))))

    def scores(self, pod: WatchedPod, asked: Sequence[NodeName]) -> dict[str, int]:
        found = asyncio.run(prioritize(pod, asked, self.cluster, self.defaults, asyncio.sleep))
        return {name.decode().strip('"'): score for score, encoded in found.items() for name in encoded}


def is_alike(expected: Reason | None, answered: Reason | None, pod: WatchedPod) -> bool:
    """Whether two answers on a node agree.

    Where several containers choose cards, the index refuses by the first container that fits on no card by itself. The
    walk refuses by the first one that does not fit beside those before. Both last, or both may pass.
    """
    request = pod.parsed.request
    if expected == answered or request is None or len(request.choosers) == 1:
        return expected == answered
    return expected is not None and answered is not None


def compare(data: st.DataObject) -> None:
    defaults = DefaultPolicies(data.draw(st.sampled_from(list(PackingPolicy))))
    world = World(defaults)
    for name in NAMES:
        world.put_node(data, name)
        world.put_kubelet(data, name)
        world.put_lease(data, name)
    changes = [world.put_node, world.put_kubelet, world.put_lease, world.put_pod, world.put_pod, world.remove]
    asking = data.draw(pods("asks"))
    asked = [*data.draw(st.permutations(NAMES)), UNKNOWN]
    for _ in range(data.draw(st.integers(1, 4))):
        for _ in range(data.draw(st.integers(0, 4))):
            data.draw(st.sampled_from(changes))(data, data.draw(st.sampled_from(NAMES)))
        expected, answered = world.expected(asking, asked), world.answered(asking, asked)
        wrong = {
            name: (expected[name], answered[name])
            for name in asked
            if not is_alike(expected[name], answered[name], asking)
        }
        assert wrong == {}
        scored = world.scores(asking, asked)
        assert scored == world.expected_scores(asking, asked)
        typical = world.cluster.demand.demand.asks
        assert world.cluster.supply(typical) == world.expected_supply(typical)


@pytest.mark.parametrize("policy", [PackingPolicy.FRAGMENTATION, PackingPolicy.FGD, PackingPolicy.TOPOLOGY])
def test_what_is_known_of_rows_follows_prices_typical_pods_and_nodes(policy: PackingPolicy) -> None:
    world, sizes = World(DefaultPolicies(policy)), (1, 2, 3, 4, 18)

    def change(number: int, version: int) -> None:
        name = NAMES[number]
        held, linked = [version * (n + 1) % 4 for n in range(sizes[number])], (CardUuid(f"GPU-{name}-0"),)
        found = tuple(
            Card(CardUuid(f"GPU-{name}-{n}"), n, MODELS[n % 2], 2048, held_slices=slices, nvlink_peers=linked)
            for n, slices in enumerate(held)
        )
        world.cluster.updates.upsert_gpunodes(GpuNode(Node(name, 256, found), name, "2026-01-01T00:00:00Z", version))

    for number, name in enumerate(NAMES):
        change(number, 1)
        world.cluster.updates.upsert_nodes(
            KubeNode(name, {names.SLICE: 144, names.CARD: 18}, HostRequest(64_000, 1 << 16))
        )
        world.cluster.leases.put(WatchedLease(names.node_lease(name), name, "", 1000))
    for n in range(120):
        kinds: list[dict[str, int | str]] = [{"gpu": 2}, {"gpu_mem": 512}, {"gpu": 3}, {"gpu_mem": 256 * (1 + n // 20)}]
        pod = structs.replace(
            READER.decoded(strategies.admit(strategies.pod(strategies.container(**kinds[n % 4])))), uid=f"u{n}"
        )
        world.cluster.demand.see(pod)
        assert world.scores(pod, NAMES) == world.expected_scores(pod, NAMES)
        typical = world.cluster.demand.demand.asks
        assert world.cluster.supply(typical) == world.expected_supply(typical)
        change(n % 5, n + 2)
    assert world.cluster.demand.demand.version > 4


CASES = int(os.environ.get("VGPU_INDEX_CASES", "500"))  # 10,000 take six minutes


@given(st.data())
@settings(max_examples=40, deadline=None)
def test_the_index_answers_as_the_walk(data: st.DataObject) -> None:
    compare(data)


@pytest.mark.slow
@pytest.mark.timeout(7200)
@given(st.data())
@settings(max_examples=CASES, deadline=None)
def test_the_index_answers_as_the_walk_in_many_clusters(data: st.DataObject) -> None:
    compare(data)


def test_a_correction_of_a_report_ends_in_the_index_too() -> None:
    """A pod's slices are reported as held after its end: they are not counted for five seconds, then they are."""
    world = World(DefaultPolicies())
    obj = strategies.admit(strategies.pod(strategies.container(gpu_mem=1024)))
    pod = structs.replace(READER.decoded(obj), uid="a", version=2, has_started=True)
    card = Card(CardUuid("GPU-0"), 0, MODELS[0], 1024)
    world.cluster.updates.upsert_gpunodes(GpuNode(Node(N0, 256, (card,)), "n0", "2026-01-01T00:00:00Z", 1))
    world.cluster.updates.upsert_nodes(KubeNode(N0, {names.SLICE: 4, names.CARD: 1}))
    world.cluster.leases.put(WatchedLease(names.node_lease(N0), "n0", "", 1000))
    chosen = world.filter.node(pod, N0)
    assert isinstance(chosen, Assignment)
    world.cluster.updates.upsert_pod(structs.replace(pod, node="n0", assignment=chosen))
    held = replace(card, held_slices=4)
    world.cluster.updates.upsert_gpunodes(GpuNode(Node(N0, 256, (held,)), "n0", "2026-01-01T00:00:00Z", 3))
    ended = structs.replace(pod, node="n0", assignment=chosen, version=4, is_terminal=True)
    world.cluster.updates.delete_pod(ended)
    assert world.answered(structs.replace(pod, uid="b"), [NodeName("n0")]) == {"n0": None}
    world.clock.seconds += 6
    assert world.answered(structs.replace(pod, uid="b"), [NodeName("n0")]) == {"n0": Reason.CARD_INSUFFICIENT_MEMORY}
