"""Sets of cards by their connections: as good as brute force, in bounded time."""

import random
from itertools import combinations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.strategies import card
from vgpu.domain.cards import links
from vgpu.domain.cards.links import LinkWeights
from vgpu.domain.cards.share import CardState
from vgpu.placement.costs import topology

Pairs = list[tuple[int, int]]

CUBE = [*combinations(range(4), 2), *combinations(range(4, 8), 2), *((n, n + 4) for n in range(4))]
DGX_1: Pairs = CUBE  # two quads, each card linked with its partner: the hybrid cube mesh
HGX_H100: Pairs = list(combinations(range(8), 2))
PCIE_PAIRS: Pairs = [(0, 1), (2, 3), (4, 5), (6, 7)]
MACHINES = {"DGX-1": DGX_1, "HGX H100": HGX_H100, "PCIe pairs": PCIE_PAIRS, "no NVLink": []}


def cards(linked: Pairs, count: int = 8, numa_nodes: int = 2) -> list[CardState]:
    peers = [tuple(f"GPU-{a + b - n}" for a, b in linked if n in {a, b}) for n in range(count)]
    made = (card(n, numa_node=n * numa_nodes // count, nvlink_peers=peers[n]) for n in range(count))
    return [CardState(made_card, 256) for made_card in made]


def best_score(weights: topology.Weights, count: int) -> int:
    return max(topology.score(weights, combination) for combination in combinations(range(len(weights)), count))


@pytest.mark.parametrize("machine", MACHINES)
@pytest.mark.parametrize("count", range(1, 9))
def test_every_subset_of_a_machines_cards_has_the_set_of_brute_force(machine: str, count: int) -> None:
    everything = cards(MACHINES[machine])
    for free in ([*everything], everything[1:], everything[::2] + everything[5:6], everything[3:]):
        if len(free) >= count > 1:
            weights = topology.connections(free, links.DEFAULTS)
            chosen = topology.best_cards(free, count, links.DEFAULTS)
            assert len({state.card.uuid for state in chosen}) == count
            assert topology.score(topology.connections(chosen, links.DEFAULTS), range(count)) == best_score(
                weights, count
            )


@given(st.integers(2, 9), st.integers(1, 9), st.randoms())
def test_random_connections_have_the_set_of_brute_force(size: int, count: int, rng: random.Random) -> None:
    weights = [[0] * size for _ in range(size)]
    for a, b in combinations(range(size), 2):
        weights[a][b] = weights[b][a] = rng.choice([1, 10, 100])
    chosen = topology.best_set(weights, count)
    assert topology.score(weights, chosen) == best_score(weights, min(count, size))


@given(
    st.builds(LinkWeights, *[st.integers(0, 1000)] * 3),
    st.sampled_from(sorted(MACHINES)),
    st.sets(st.integers(0, 7), min_size=2),
    st.data(),
)
@settings(max_examples=40)
def test_other_weights_have_the_set_of_brute_force(
    chosen: LinkWeights, machine: str, free: set[int], data: st.DataObject
) -> None:
    state = [card_state for card_state in cards(MACHINES[machine]) if card_state.card.index in free]
    count = data.draw(st.integers(2, len(state)))
    best = best_score(topology.connections(state, chosen), count)
    found = topology.best_cards(state, count, chosen)
    assert topology.score(topology.connections(found, chosen), range(count)) == best
    assert topology.lacking(state, count, chosen) == count * (count - 1) // 2 * chosen.most - best >= 0


def test_one_card_is_the_one_with_the_fewest_connections() -> None:
    assert [
        best_card.card.index for best_card in topology.best_cards(cards([(0, 1), (1, 2), (0, 2)], 4), 1, links.DEFAULTS)
    ] == [3]


@pytest.mark.slow
def test_eight_of_sixteen_and_of_24_cards_without_order_are_exact() -> None:
    """Random links are the hardest: no two cards are alike. The bound on steps must not end the search."""
    for size, seed in ((16, 1), (16, 2), (24, 1), (24, 2)):
        rng = random.Random(seed)
        linked = [pair for pair in combinations(range(size), 2) if rng.random() < 0.4]
        search = topology._CardSetSearch(topology.connections(cards(linked, size), links.DEFAULTS), 8)
        search.run()
        assert search._steps < topology.MAX_STEPS
