"""The order of nodes."""

from tests.strategies import card, node_state
from vgpu.domain.asks.policy import PackingPolicy, PodOptions
from vgpu.domain.cards.share import NodeState
from vgpu.placement import rank
from vgpu.placement.policies import POLICIES, DefaultPolicies

BINPACK, SPREAD = PackingPolicy.BINPACK, PackingPolicy.SPREAD


def named(name: str, held: int) -> NodeState:
    return node_state(card(0, held_slices=held), name=name)


def test_nodes_rank_by_policy_and_equal_nodes_in_a_fixed_order() -> None:
    nodes = [named("a", 0), named("b", 5), named("c", 2)]
    assert rank.rank(nodes, BINPACK) == ["b", "c", "a"]
    assert rank.rank(nodes, SPREAD) == ["a", "c", "b"]
    equals = [named(f"n{i}", 0) for i in range(10)]
    assert rank.rank(equals, BINPACK) == rank.rank(equals[::-1], BINPACK)


def test_a_pods_policy_overrides_the_clusters() -> None:
    cluster = DefaultPolicies(node_policy=SPREAD, gpu_policy=BINPACK)
    assert cluster.node_policy_for(PodOptions()) is SPREAD
    assert cluster.node_policy_for(PodOptions(node_policy=BINPACK)) is BINPACK
    assert cluster.gpu_policy_for(PodOptions()) is BINPACK
    assert cluster.gpu_policy_for(PodOptions(gpu_policy=SPREAD)) is SPREAD


def test_every_policy_has_a_row_in_the_table() -> None:
    assert POLICIES.keys() == set(PackingPolicy)
