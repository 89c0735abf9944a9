"""Nodes on which a job would overlap with other jobs come after the others, and bound jobs are in a node's state."""

from dataclasses import replace
from typing import Any

import pytest

from extender.state.cluster import Cluster
from extender.state.objects import GpuNode, KubeNode, WatchedLease, WatchedPod
from extender.state.pod_reader import PodReader
from extender.state.reservations import Reservation
from extender.verbs import preferences
from tests import strategies
from tests.extender.conftest import Clock
from vgpu.domain import names
from vgpu.domain.asks.policy import PackingPolicy
from vgpu.domain.cards.device import Node
from vgpu.domain.grants import assignment
from vgpu.domain.grants.assignment import Assignment, Grant
from vgpu.domain.identifiers import CardUuid, ContainerName, NodeName
from vgpu.placement.policies import DefaultPolicies

NODES = tuple(NodeName(f"n{n}") for n in range(3))
MIB = 1024  # half of a card
PACK = DefaultPolicies(node_policy=PackingPolicy.BINPACK)


@pytest.fixture
def cluster() -> Cluster:
    """Three nodes of three cards."""
    made = Cluster(256, Clock())
    for name in NODES:
        cards = tuple(strategies.card(n) for n in range(3))
        named = tuple(replace(card, uuid=CardUuid(f"GPU-{name}-{card.index}")) for card in cards)
        made.updates.upsert_gpunodes(GpuNode(Node(name, 256, named), name, "2026-01-01T00:00:00Z"))
        made.updates.upsert_nodes(KubeNode(name, {names.SLICE: 24, names.CARD: 3}))
        made.leases.put(WatchedLease(names.node_lease(name), name, "x", 1 << 30))
    return made


def grants(node: str, *cards: int) -> Assignment:
    found = tuple(Grant(CardUuid(f"GPU-{node}-{card}"), MIB, None) for card in cards)
    return Assignment({ContainerName("main"): found})


def pod(uid: str, node: str = "", cards: tuple[int, ...] = (0, 1), gang: str = "") -> WatchedPod:
    annotations = {names.ASSIGNMENT: assignment.encode(grants(node, *cards))} if node else {}
    if gang:
        annotations |= {names.GANG: gang, names.GANG_SIZE: "2"}
    asked = strategies.container(gpu_mem=MIB * len(cards), gpu=len(cards))
    made: dict[str, Any] = strategies.admit(strategies.pod(asked, uid=uid, annotations=annotations))
    made["metadata"] |= {"name": uid, "namespace": "default"}
    made["spec"]["nodeName"] = node
    return PodReader().decoded(made)


def fill(cluster: Cluster, uid: str, node: str, *cards: int) -> None:
    """Take the other half of these cards, pod by pod."""
    for card in cards:
        cluster.updates.upsert_pod(pod(f"{uid}-{card}", node, (card,)))


def tiers(cluster: Cluster, asking: WatchedPod | None = None) -> dict[NodeName, int]:
    cluster.rows.write()
    return dict(preferences.tiers(cluster, asking or pod("asks"), NODES, PACK))


def test_a_node_on_which_a_job_would_overlap_comes_last(cluster: Cluster) -> None:
    """The fullest node would be the best one; the next ones have the same cards free, or a node's worth of them."""
    assert tiers(cluster) == {}
    for node in NODES[:2]:
        cluster.updates.upsert_pod(pod(f"job-{node}", node, (0, 1)))
    fill(cluster, "single", "n1", 0)  # card 0 is full: only {1,2} is left
    assert tiers(cluster) == {"n0": 0, "n1": 1, "n2": 0}
    assert tiers(cluster, pod("one", cards=(0,))) == {}, "a share of one card overlaps with no job"


def test_where_each_node_overlaps_the_policy_decides(cluster: Cluster) -> None:
    for node in NODES:
        cluster.updates.upsert_pod(pod(f"job-{node}", node, (0, 1)))
        fill(cluster, f"single-{node}", node, 0)
    assert tiers(cluster) == dict.fromkeys(NODES, 1)


def test_racks_come_before_jobs(cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    cluster.updates.upsert_pod(pod("job", "n1", (0, 1)))
    fill(cluster, "single", "n1", 0)
    monkeypatch.setattr(preferences, "rack_tiers", lambda *_: {NODES[0]: 1, NODES[1]: 0, NODES[2]: 2})
    assert tiers(cluster) == {"n0": 2, "n1": 1, "n2": 4}


def test_the_state_of_a_node_has_its_jobs_and_those_that_are_being_bound(cluster: Cluster) -> None:
    job = pod("job", "n0", (0, 1))
    cluster.updates.upsert_pod(job)
    fill(cluster, "single", "n0", 2)
    assert cluster.states.of(NODES[0]).jobs == (frozenset({"GPU-n0-0", "GPU-n0-1"}),)
    asking = pod("asks")
    assert asking.parsed.request is not None
    cluster.updates.upsert_pod(asking)
    cluster.reservations.put(Reservation(asking.uid, NODES[1], asking.parsed.request, grants("n1", 1, 2), 1))
    assert cluster.states.of(NODES[1]).jobs == (frozenset({"GPU-n1-1", "GPU-n1-2"}),)
    assert cluster.states.with_jobs() == {"n0", "n1"}
    cluster.updates.delete_pod(job)
    assert cluster.states.of(NODES[0]).jobs == ()
    assert cluster.states.with_jobs() == {"n1"}


def test_the_ranks_of_a_gang_are_one_job(cluster: Cluster) -> None:
    cluster.updates.upsert_pod(pod("rank-0", "n0", (0,), gang="train"))
    assert cluster.states.of(NODES[0]).jobs == ()
    cluster.updates.upsert_pod(pod("rank-1", "n0", (2,), gang="train"))
    assert cluster.states.of(NODES[0]).jobs == (frozenset({"GPU-n0-0", "GPU-n0-2"}),)
