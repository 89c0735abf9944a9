"""Scores from costs, and names by score."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from extender.index import ranking

NUMBERED = st.lists(st.tuples(st.integers(0, 3), st.integers(0, 50)), min_size=1, max_size=30)


@given(st.lists(st.integers(0, 10), max_size=30))
def test_names_are_grouped_by_score_in_their_order(scores: list[int]) -> None:
    names = [str(number).encode() for number in range(len(scores))]
    grouped = ranking.by_score(np.array(scores, np.int64), np.array(names, object))
    expected = {
        score: [name for name, given in zip(names, scores, strict=True) if given == score] for score in set(scores)
    }
    assert grouped == expected
    assert list(grouped) == sorted(expected)


@given(NUMBERED, st.integers(0, 9))
def test_one_tier_for_all_nodes_is_no_tier(nodes: list[tuple[int, int]], tolerance: int) -> None:
    costs = np.array([cost for _, cost in nodes], np.int64)
    order = np.arange(len(nodes), dtype=np.uint64)
    alike = np.full(len(nodes), 3, np.int64)
    assert (ranking.by_rank(costs, order, tolerance) == ranking.by_rank(costs, order, tolerance, alike)).all()


@given(NUMBERED, st.integers(0, 9))
def test_ranks_are_by_tier_and_cost_and_scores_fall_with_them(nodes: list[tuple[int, int]], tolerance: int) -> None:
    tiers, costs = (np.array(column, np.int64) for column in zip(*nodes, strict=True))
    order = np.arange(len(nodes), dtype=np.uint64)
    least = min(cost for tier, cost in nodes if tier == min(tiers))
    keys = [(tier, max(cost, least + tolerance), number) for number, (tier, cost) in enumerate(nodes)]
    ranked = sorted(range(len(nodes)), key=keys.__getitem__)
    rest = max(1, len(nodes) - 1)
    expected = {number: 10 if rank == 0 else 9 * (rest - rank) // rest for rank, number in enumerate(ranked)}
    assert ranking.by_rank(costs, order, tolerance, tiers).tolist() == [expected[n] for n in range(len(nodes))]
