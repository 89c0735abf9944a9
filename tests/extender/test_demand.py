"""What the extender learns: the CPU that all pods take, and which pods the cluster gets."""

import json
from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from extender import objects
from extender.demand import DemandKeeper, described
from extender.objects import KubeNode, Pod
from tests import strategies
from tests.extender.conftest import World
from vgpu.host_request import HostRequest
from vgpu.placement import rank
from vgpu.placement.policies import DefaultPolicies
from vgpu.policy import PackingPolicy
from vgpu.share import HostRoom, NodeState

FRAGMENTATION = PackingPolicy.FRAGMENTATION


def other_pod(uid: str = "o1", cpu: str = "1500m", **status: Any) -> bytes:
    main = {"name": "c", "resources": {"requests": {"cpu": cpu, "memory": "1Gi"}}}
    pod = {"metadata": {"uid": uid}, "spec": {"nodeName": "n1", "containers": [main]}, "status": status}
    return json.dumps(pod, separators=(",", ":")).encode()


async def test_pods_without_gpus_take_cpu_and_memory_of_a_node_until_they_end(world: World) -> None:
    nodes, pods = world.watches.nodes.handler, world.watches.pods.handler
    known = world.cluster.objects.nodes["n1"]
    nodes.upsert(replace(known, host=HostRequest(4000, 8192)))
    pods.upsert(objects.watched_pod(other_pod()))
    pods.upsert(objects.watched_pod(other_pod()))
    assert world.cluster.state("n1").host == HostRoom(2500, 7168)
    pods.upsert(objects.watched_pod(other_pod(phase="Succeeded")))
    assert world.cluster.state("n1").host == HostRoom(4000, 8192)
    pods.upsert(objects.watched_pod(other_pod("o2")))
    pods.replace([], "7")
    assert world.cluster.state("n1").host == HostRoom(4000, 8192)
    nodes.upsert(KubeNode("n1", known.allocatable))
    assert world.cluster.state("n1").host == HostRoom()


def test_a_pod_that_cannot_be_read_or_is_on_no_node_takes_nothing() -> None:
    assert objects.watched_pod(b'{"metadata":{"uid":"a"},"spec":{"nodeName":7}}') is None
    assert objects.watched_pod(b'{"metadata":{"uid":"a"},"spec":{}}') is None
    assert objects.watched_pod(b'{"spec":{"nodeName":"n1"}}') is None


def pod(uid: str, **amounts: int | str) -> Pod:
    return objects.pod(strategies.pod(strategies.container(**amounts), uid=uid))


def nodes() -> list[NodeState]:
    pair = strategies.node_state(strategies.card(0), strategies.card(1), name="pair")
    single = strategies.node_state(strategies.card(0), strategies.card(1, cordoned=True), name="single")
    return [pair, single]


def keeper(states: Iterable[NodeState]) -> DemandKeeper:
    return DemandKeeper(strategies.SLICE_MIB, lambda: states)


def test_a_share_leaves_pairs_for_pods_like_those_seen() -> None:
    known = keeper(nodes())
    for n in range(8):
        known.see(pod(f"u{n}", gpu=2))
    small = pod("s", gpu_mem=512)
    known.see(small)
    assert known.rank(nodes(), FRAGMENTATION, known.question(small))[0] == "single"


def test_what_is_cached_of_a_node_is_what_the_cost_function_returns() -> None:
    """Also after new prices, other typical pods, and a change of a node."""
    states = nodes()
    known = keeper(states)
    for n in range(300):
        new = pod(f"u{n}", gpu_mem=256 * (1 + n % 5)) if n % 3 else pod(f"u{n}", gpu=1 + n % 2)
        known.see(new)
        question = known.question(new)
        assert known.rank(states, FRAGMENTATION, question) == rank.rank(states, FRAGMENTATION, question)
        if n % 50 == 0:
            states[0] = replace(states[0], host=HostRoom(100_000 - 300 * n, 1 << 20))
    assert known.demand.version > 4
    assert known.policies(DefaultPolicies()).demand is known.demand


def test_the_effective_policies_and_weights_are_logged() -> None:
    said = described(DefaultPolicies(PackingPolicy.SPREAD, PackingPolicy.TOPOLOGY))
    assert said.startswith("nodes by spread, cards by topology; ")
    assert "at most 30 thousandths of a card are equal" in said
