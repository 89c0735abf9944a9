"""Cost functions: equal for ints and arrays, and what each policy prefers."""

from dataclasses import fields
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.strategies import card, node_state
from vgpu.domain.asks.policy import CardSelector, PackingPolicy
from vgpu.domain.cards.share import CardState, HostRoom, NodeState, Usage
from vgpu.domain.identifiers import NodeName
from vgpu.placement import rank
from vgpu.placement.costs import fgd, fragmentation
from vgpu.placement.demand import Demand, Typical, TypicalPods
from vgpu.placement.models import ALL, Models
from vgpu.placement.policies import POLICIES
from vgpu.placement.question import Question
from vgpu.placement.room import CardRoom, NodeRoom, PodAsk, after, fits
from vgpu.placement.weights import Weights

TOTAL = 8
small = st.integers(0, TOTAL)
card_rooms = st.builds(
    CardRoom, small, st.just(TOTAL), st.sampled_from([0, 30, 70, 100]), st.sampled_from([1, 2])
) | st.just(CardRoom(0, 0, 0, 0))
rooms = st.builds(
    NodeRoom, st.integers(0, 9000), st.integers(0, 9000), st.lists(card_rooms, min_size=3, max_size=3).map(tuple)
)
shares = st.builds(
    PodAsk, st.integers(1, 2), st.integers(1, TOTAL), st.sampled_from([0, 30, 70]), st.just(0),
    st.integers(0, 3000), st.integers(0, 3000), st.sampled_from([1, 2, ALL]),
)  # fmt: skip
wholes = st.builds(lambda gpus, cpu: PodAsk(gpus, 0, 0, 1, cpu, 1, ALL), st.integers(1, 3), st.integers(0, 3000))
asks = shares | wholes
demands = st.builds(
    Demand,
    st.lists(st.builds(Typical, asks, st.integers(1, 10**6), st.integers(0, 10**7)), max_size=3).map(tuple),
    st.sampled_from([0, 4000]),
)


def columns(many: list[NodeRoom]) -> NodeRoom:
    """Return rooms of nodes as one room of arrays."""
    of_cards = [[room.cards[n] for room in many] for n in range(len(many[0].cards))]
    arrays = [CardRoom(*(array(of_card, field.name) for field in fields(CardRoom))) for of_card in of_cards]
    return NodeRoom(array(many, "cpu_milli"), array(many, "memory_mib"), arrays)


def array(values: list[Any], name: str) -> Any:
    return np.array([getattr(value, name) for value in values], np.int64)


def has_room(room: NodeRoom, ask: PodAsk) -> bool:
    return bool(sum(fits(card_room, ask) for card_room in room.cards) >= ask.gpus)


@settings(max_examples=60)
@given(st.lists(rooms, min_size=1, max_size=4), asks, demands, st.sampled_from(PackingPolicy))
def test_arrays_and_ints_give_equal_costs(
    many: list[NodeRoom], ask: PodAsk, demand: Demand, policy: PackingPolicy
) -> None:
    cost, question = POLICIES[policy].node, Question(ask, demand)
    with np.errstate(all="raise"):
        together = cost(columns(many), question)
    assert [int(cost_of_room) for cost_of_room in np.broadcast_to(together, len(many))] == [
        cost(room, question) for room in many
    ]


@given(rooms, asks)
def test_what_is_left_is_what_the_pod_did_not_take(room: NodeRoom, ask: PodAsk) -> None:
    left = after(room, ask)
    if has_room(room, ask):
        changed = [(a, b) for a, b in zip(room.cards, left.cards, strict=True) if a != b]
        assert len(changed) == ask.gpus or (ask.slices, ask.cores) == (0, 0)
        assert all(b.free_slices == (0 if ask.whole else a.free_slices - ask.slices) for a, b in changed)
        assert all(b.free_slices >= 0 <= b.free_cores for _, b in changed)


def test_a_tolerance_fills_the_first_node_and_without_it_the_fullest_is_filled() -> None:
    ask = PodAsk(1, 2, 0, 0, 0, 0, ALL)
    nodes = [node("a", 8, 6), node("b", 8, 4), node("c", 8, 8)]

    def ranked(weights: Weights) -> list[NodeName]:
        demand = Demand((Typical(ask, 10**6, 0),), weights=weights)
        return rank.rank(nodes, PackingPolicy.FRAGMENTATION, Question(ask, demand))

    assert ranked(Weights(tolerance=0)) == ["b", "a", "c"]
    assert ranked(Weights(tolerance=500)) == ranked(Weights(left=0)) == sorted("abc", key=rank.fixed_order)


def node(name: str, *free: int, cpu: int = 100_000) -> NodeState:
    """A node with cards of 8 slices, of which each has so many free."""
    usages = [Usage(8 - slices, 256 * (8 - slices), 0, int(slices < 8)) for slices in free]
    cards = tuple(CardState(card(n), 256, usage) for n, usage in enumerate(usages))
    return NodeState(NodeName(name), 256, cards, host=HostRoom(cpu, 1 << 20))


def best(policy: PackingPolicy, question: Question, *nodes: NodeState) -> str:
    return rank.rank(nodes, policy, question)[0]


def learned(*seen: PodAsk, copies: int = 10_000) -> Demand:
    typical = TypicalPods()
    for ask in seen:
        typical.see(ask)
    return typical.demand(lambda _: copies, 10_000, 8)


SHARE = PodAsk(1, 3, 0, 0, 1000, 0, ALL)
WHOLE = PodAsk(1, 0, 0, 1, 1000, 0, ALL)
PAIR = PodAsk(2, 0, 0, 1, 1000, 0, ALL)


@pytest.mark.parametrize("policy", [PackingPolicy.FRAGMENTATION, PackingPolicy.FGD])
def test_a_share_leaves_the_pair_of_cards_for_those_that_need_it(policy: PackingPolicy) -> None:
    demand = learned(*[PAIR] * 5, SHARE)
    assert best(policy, Question(SHARE, demand), node("pair", 8, 8), node("single", 8, 0)) == "single"


def test_a_node_without_cpu_gets_the_pod_that_asks_for_little_cpu() -> None:
    hungry = PodAsk(1, 4, 0, 0, 8000, 0, ALL)
    demand = learned(*[hungry] * 5, SHARE)
    rich, poor = node("rich", 8, 8, cpu=64_000), node("poor", 8, 8, cpu=2000)
    assert best(PackingPolicy.FRAGMENTATION, Question(SHARE, demand), rich, poor) == "poor"


def test_cards_of_a_scarce_model_are_left_for_pods_that_ask_for_it() -> None:
    models = Models()
    scarce, common = (node_state(card(0, model=model), name=model) for model in ("H100", "T4"))
    for state in (scarce, common):
        models.bit(state.cards[0].card.model)
    choosy = PodAsk(1, 4, 0, 0, 0, 0, models.accepted(CardSelector(use_models=("h100",))))
    demand = learned(choosy, SHARE)
    assert best(PackingPolicy.FRAGMENTATION, Question(SHARE, demand, models), scarce, common) == "T4"


def test_before_any_pod_was_seen_the_fullest_node_comes_first() -> None:
    full, empty = node("full", 4, 8), node("empty", 8, 8)
    assert best(PackingPolicy.FRAGMENTATION, Question(SHARE), full, empty) == "full"


def test_power_takes_cards_in_use_then_nodes_in_use() -> None:
    idle, one_in_use, shared = node("idle", 8), node("one", 1, 8), node("shared", 8, 8, 4)
    assert best(PackingPolicy.POWER, Question(SHARE), idle, one_in_use, shared) == "shared"
    assert best(PackingPolicy.POWER, Question(SHARE), idle, one_in_use) == "one"


def test_topology_prefers_the_node_whose_cards_are_linked() -> None:
    peers = {n: tuple(f"GPU-{other}" for other in range(2) if other != n) for n in range(2)}
    linked = node_state(*(card(n, nvlink_peers=peers[n]) for n in range(2)), card(2), name="linked")
    apart = node_state(card(0), card(1), name="apart")
    assert best(PackingPolicy.TOPOLOGY, Question(PAIR), apart, linked) == "linked"


def test_fgd_counts_all_that_a_class_cannot_use() -> None:
    """F_n(m) of the paper: all where the node cannot run the pod, else the cards that are too small for it."""
    room = NodeRoom(2000, 0, tuple(CardRoom(free, 8, 100, 1) for free in (8, 2, 4)))
    assert fgd.stranded(room, PodAsk(1, 4, 0, 0, 2000, 0, ALL)) == 250
    assert fgd.stranded(room, PodAsk(1, 4, 0, 0, 3000, 0, ALL)) == 1750
    assert fgd.stranded(room, PodAsk(0, 0, 0, 0, 1000, 0, 0)) == 1750
    assert fgd.stranded(room, PodAsk(2, 0, 0, 1, 1000, 0, ALL)) == 1750


def test_compute_without_memory_is_no_room() -> None:
    """The tighter one of memory and time decides."""
    room = NodeRoom(1 << 20, 1 << 20, (CardRoom(8, 8, 30, 1), CardRoom(0, 8, 100, 1)))
    assert room.share == 300
    assert fragmentation.copies(room, PodAsk(1, 2, 10, 0, 1, 1, ALL)) == 3000
