"""What the extender learns: the CPU that all pods take, and which pods the cluster gets."""

import json
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from extender.index.supply import Supply
from extender.state.demand import DemandKeeper, described
from extender.state.objects import KubeNode, WatchedPod
from extender.state.pod_reader import PodReader
from tests import strategies
from tests.extender.conftest import World
from vgpu.domain.asks.host_request import HostRequest
from vgpu.domain.asks.policy import PackingPolicy
from vgpu.domain.cards.share import HostRoom, NodeState
from vgpu.domain.identifiers import NodeName
from vgpu.placement import rank, room
from vgpu.placement.costs import fragmentation
from vgpu.placement.models import Models
from vgpu.placement.policies import DefaultPolicies
from vgpu.placement.room import PodAsk
from vgpu.placement.weights import DEFAULTS, PolicyWeights, Weights

N1 = NodeName("n1")

FRAGMENTATION = PackingPolicy.FRAGMENTATION


def other_pod(uid: str = "o1", **status: Any) -> bytes:
    main = {"name": "c", "resources": {"requests": {"cpu": "1500m", "memory": "1Gi"}}}
    pod = {"metadata": {"uid": uid}, "spec": {"nodeName": "n1", "containers": [main]}, "status": status}
    return json.dumps(pod, separators=(",", ":")).encode()


async def test_pods_without_gpus_take_cpu_and_memory_of_a_node_until_they_end(world: World) -> None:
    nodes, pods = world.watches.by_name["nodes"].handler, world.watches.pods.handler
    known = world.cluster.objects.nodes[NodeName("n1")]
    nodes.upsert(replace(known, host=HostRequest(4000, 8192)))
    pods.upsert(PodReader().watched(other_pod()))
    pods.upsert(PodReader().watched(other_pod()))
    assert world.cluster.states.of(N1).host == HostRoom(2500, 7168)
    pods.upsert(PodReader().watched(other_pod(phase="Succeeded")))
    assert world.cluster.states.of(N1).host == HostRoom(4000, 8192)
    pods.upsert(PodReader().watched(other_pod("o2")))
    pods.replace([], "7")
    assert world.cluster.states.of(N1).host == HostRoom(4000, 8192)
    nodes.upsert(KubeNode(N1, known.allocatable))
    assert world.cluster.states.of(N1).host == HostRoom()


def test_a_pod_that_cannot_be_read_or_is_on_no_node_takes_nothing() -> None:
    assert PodReader().watched(b'{"metadata":{"uid":"a"},"spec":{"nodeName":7}}') is None
    assert PodReader().watched(b'{"metadata":{"uid":"a"},"spec":{}}') is None
    assert PodReader().watched(b'{"spec":{"nodeName":"n1"}}') is None


def pod(uid: str, **amounts: int | str) -> WatchedPod:
    return PodReader().decoded(strategies.pod(strategies.container(**amounts), uid=uid))


def nodes() -> list[NodeState]:
    pair = strategies.node_state(strategies.card(0), strategies.card(1), name="pair")
    single = strategies.node_state(strategies.card(0), strategies.card(1, cordoned=True), name="single")
    return [pair, single]


def keeper(states: Sequence[NodeState]) -> DemandKeeper:
    models = Models()
    rooms = [room.room_of(state, models) for state in states]

    def supply(typical: tuple[PodAsk, ...]) -> Supply:
        copies = {ask: sum(int(fragmentation.copies(node_room, ask)) for node_room in rooms) for ask in typical}
        return Supply(copies, sum(int(node_room.share) for node_room in rooms), 8)

    return DemandKeeper(strategies.SLICE_MIB, models, supply)


def test_a_share_leaves_pairs_for_pods_like_those_seen() -> None:
    known = keeper(nodes())
    for n in range(8):
        known.see(pod(f"u{n}", gpu=2))
    small = pod("s", gpu_mem=512)
    known.see(small)
    assert rank.rank(nodes(), FRAGMENTATION, known.question(small))[0] == "single"


def test_prices_are_made_again_while_pods_are_few_and_then_after_questions() -> None:
    known, versions = keeper(nodes()), []
    for n in range(40):
        known.see(pod(f"u{n}", gpu_mem=512))
        versions.append(known.question(pod("s", gpu_mem=512)).demand.version)
    assert [n for n in range(1, 40) if versions[n] > versions[n - 1]] == [2, 6, 14, 30]
    for _ in range(DEFAULTS.refresh):
        known.question(pod("s", gpu_mem=512))
    assert known.demand.version == versions[-1] + 1
    assert known.policies(DefaultPolicies()).demand is known.demand


def test_the_effective_policies_and_weights_are_logged() -> None:
    said = described(DefaultPolicies(PackingPolicy.SPREAD, PackingPolicy.TOPOLOGY), PolicyWeights(Weights(tolerance=7)))
    assert said.startswith("nodes by spread, cards by topology; ")
    assert "fragmentation: tolerance = 7, left = 20, scarcity = 1.5, covered = 95, half-life = 4000" in said
    assert said.endswith("topology: nvlink = 100, same-numa = 10, other-numa = 1")
