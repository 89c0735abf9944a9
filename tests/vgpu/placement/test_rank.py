"""The order of nodes and their scores."""

from hypothesis import given
from hypothesis import strategies as st

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


@given(st.integers(0, 60))
def test_exactly_one_node_has_the_best_score_and_all_scores_are_in_range(count: int) -> None:
    scored = rank.scores([f"n{i}" for i in range(count)])
    assert list(scored.values()).count(10) == min(count, 1)
    assert all(0 <= score <= 10 for score in scored.values())
    assert sorted(scored.values(), reverse=True) == list(scored.values())


def test_every_policy_has_a_row_in_the_table() -> None:
    assert POLICIES.keys() == set(PackingPolicy)
