"""Shares of 100 / N percent are placed N times on a card of any size: as pods, as containers, over several cards."""

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests import strategies
from tests.vgpu.domain.test_slices import SIZES
from vgpu.domain.asks import request, request_text
from vgpu.domain.asks.policy import PackingPolicy
from vgpu.domain.asks.request import PodRequest
from vgpu.domain.cards.share import NodeState
from vgpu.domain.grants import usage
from vgpu.domain.grants.assignment import Assignment
from vgpu.placement import choose, documents, fit

COUNTS = (2, 3, 4, 5, 7, 10, 20)


def asked(node: NodeState, *percents: int, gpus: int = 1) -> PodRequest:
    """Return what a pod asks for that has a container for each percentage."""
    containers = (
        strategies.container(f"c{n}", gpu_mem_percentage=percent, gpu=gpus) for n, percent in enumerate(percents)
    )
    found = request.parse(strategies.in_mib(strategies.pod(*containers), *(state.card for state in node.cards)))
    assert found.request is not None
    return found.request


def node_of(*sizes: int) -> NodeState:
    return strategies.node_state(*(strategies.card(n, size) for n, size in enumerate(sizes)))


def placed(node: NodeState, *pods: PodRequest, policy: PackingPolicy = PackingPolicy.BINPACK) -> NodeState:
    """Place pods one after the other; each must fit."""
    for pod in pods:
        chosen = choose.place(pod, node, policy)
        assert isinstance(chosen, Assignment), chosen
        assert fit.has_room_for(node, chosen, pod)
        taken = usage.of_pod(chosen, pod, node.slice_mib, node.card_slices)
        cards = (s.with_usage(taken[s.card.uuid]) if s.card.uuid in taken else s for s in node.cards)
        node = replace(node, cards=tuple(cards))
    return node


@pytest.mark.parametrize("memory_mib", SIZES)
@pytest.mark.parametrize("count", COUNTS)
def test_a_card_takes_as_many_pods_as_the_percentage_says(memory_mib: int, count: int) -> None:
    node = node_of(memory_mib)
    placed(node, *[asked(node, 100 // count)] * count)


@pytest.mark.parametrize("memory_mib", strategies.REAL_CARD_MIB)
@pytest.mark.parametrize("count", COUNTS)
def test_a_card_takes_as_many_containers_of_one_pod(memory_mib: int, count: int) -> None:
    node = node_of(memory_mib)
    placed(node, asked(node, *[100 // count] * count))


@pytest.mark.parametrize("memory_mib", strategies.REAL_CARD_MIB)
@pytest.mark.parametrize("count", COUNTS)
def test_several_cards_take_as_many_pods_that_share_all_of_them(memory_mib: int, count: int) -> None:
    node = node_of(memory_mib, memory_mib, memory_mib)
    placed(node, *[asked(node, 100 // count, gpus=3)] * count)


@pytest.mark.parametrize("count", COUNTS)
def test_cards_of_two_drivers_take_as_many_pods_each(count: int) -> None:
    node = node_of(81_008, 81_037)
    placed(node, *[asked(node, 100 // count)] * count * 2)


@pytest.mark.heavy
@settings(max_examples=200)
@given(st.one_of(st.sampled_from(SIZES), st.integers(2560, 9000)), st.data(), st.sampled_from(PackingPolicy))
def test_pods_whose_percentages_add_up_to_a_card_fit_on_it(
    memory_mib: int, data: st.DataObject, policy: PackingPolicy
) -> None:
    node, percents = node_of(memory_mib), list[int]()
    while (left := 100 - sum(percents)) >= 10:
        percents.append(data.draw(st.integers(10, left)))
    pods = [asked(node, *percents)] if data.draw(st.booleans()) else [asked(node, percent) for percent in percents]
    placed(node, *pods, policy=policy)


def test_a_share_more_is_refused() -> None:
    node = node_of(81_008)
    pod = asked(node, 50)
    with pytest.raises(AssertionError, match="CardInsufficientMemory"):
        placed(node, pod, pod, pod)


def test_a_percentage_that_was_not_resolved_is_shown_as_one() -> None:
    asking = request.parse(strategies.pod(strategies.container(gpu_mem_percentage=50, gpu=2))).request
    assert asking is not None
    assert documents.asked(asking) == "2 x 50 % of a card"
    assert request_text.needs(asking) == "needs 50 % of a card on 2 cards"
