"""Several containers of a pod: where any choice of cards fits, one is found. The oracle tries every choice."""

import itertools
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.strategies import SLICE_MIB, card, container, node_state, pod
from vgpu.domain import names
from vgpu.domain.asks import request
from vgpu.domain.asks.policy import PackingPolicy
from vgpu.domain.asks.request import ContainerRequest, PodRequest
from vgpu.domain.cards.share import CardState, NodeState, Usage
from vgpu.domain.grants.assignment import Assignment, Grant
from vgpu.placement import choose, fit, packing
from vgpu.placement.choose import NodeRefusal

BINPACK, SPREAD = PackingPolicy.BINPACK, PackingPolicy.SPREAD


def every_choice(wanted: PodRequest, node: NodeState) -> Iterator[Assignment]:
    """Yield every assignment of cards: init containers have their anchor's."""
    choosers = [c for c in wanted.containers if c is wanted.anchor or not wanted.shares_anchor_cards(c)]
    for cards in itertools.product(*(itertools.combinations(node.cards, c.gpus) for c in choosers)):
        by_name = {c.name: chosen for c, chosen in zip(choosers, cards, strict=True)}
        anchored = by_name[wanted.anchor.name]
        yield Assignment(
            {c.name: tuple(grant(c, s.card) for s in by_name.get(c.name, anchored)) for c in wanted.containers}
        )


def by_index(state: CardState) -> int:
    return state.card.index


def grant(asked: ContainerRequest, on: Any) -> Grant:
    memory = on.memory_mib if asked.whole else asked.memory_mib
    return Grant(on.uuid, memory, asked.cores, asked.whole)


def amounts(draw: st.DrawFn, gpus: int) -> dict[str, int | str]:
    if draw(st.integers(0, 5)) == 0:
        return {"gpu": gpus}
    asked: dict[str, int | str] = {"gpu_mem": gpus * SLICE_MIB * draw(st.integers(1, 4)), "gpu": gpus}
    if draw(st.booleans()):
        asked["gpu_cores"] = gpus * draw(st.sampled_from([20, 50, 60]))
    return asked


@st.composite
def pods(draw: st.DrawFn) -> dict[str, Any]:
    """Pods of up to four containers that choose cards, with at most one init container."""
    apps = [container(f"a{n}", **amounts(draw, draw(st.integers(1, 2)))) for n in range(draw(st.integers(1, 3)))]
    sidecars = [
        container(f"s{n}", **amounts(draw, 1)) | {"restartPolicy": "Always"} for n in range(draw(st.integers(0, 1)))
    ]
    first = apps[0]["resources"]["limits"]
    init = []
    if names.GPU_MEM in first and draw(st.booleans()):
        cores = {names.GPU_CORES: str(int(first[names.GPU]) * draw(st.sampled_from([10, 90])))}
        init = [{"name": "i", "resources": {"limits": {**first, **cores}}}]
    return pod(*apps, init=(*sidecars, *init))


@st.composite
def nodes(draw: st.DrawFn) -> NodeState:
    held = draw(st.lists(st.integers(0, 3), min_size=1, max_size=3))
    cards = [card(n, 4 * SLICE_MIB, held_slices=slices) for n, slices in enumerate(held)]
    node = node_state(*cards)
    shared = draw(st.lists(st.sampled_from([0, 0, 1]), min_size=len(held), max_size=len(held)))
    usages = [Usage(slices, slices * SLICE_MIB, 40 * slices, shares=slices) for slices in shared]
    return replace(node, cards=tuple(s.with_usage(u) for s, u in zip(node.cards, usages, strict=True)))


@pytest.mark.heavy
@settings(max_examples=400)
@given(pods(), nodes(), st.sampled_from(PackingPolicy))
def test_no_pod_of_few_containers_is_refused_where_any_choice_fits(
    obj: dict[str, Any], node: NodeState, policy: PackingPolicy
) -> None:
    parsed = request.parse(obj)
    wanted = parsed.request
    assert wanted is not None
    assert not parsed.problems
    chosen = choose.place(wanted, node, policy)
    if isinstance(chosen, Assignment):
        assert chosen.answers(wanted)
        assert fit.has_room_for(node, chosen, wanted)
    else:
        fitting = (choice for choice in every_choice(wanted, node) if fit.has_room_for(node, choice, wanted))
        assert next(fitting, None) is None


def gib(*amounts: int) -> PodRequest:
    wanted = request.parse(pod(*(container(f"c{n}", gpu_mem=1024 * gib) for n, gib in enumerate(amounts)))).request
    assert wanted is not None
    return wanted


def cards_of(wanted: PodRequest, node: NodeState, policy: PackingPolicy) -> list[str]:
    chosen = choose.place(wanted, node, policy)
    assert isinstance(chosen, Assignment), chosen
    return [grants[0].gpu for grants in chosen.containers.values()]


def test_the_search_takes_the_policys_cards_where_they_leave_room() -> None:
    two = node_state(card(0, 80 * 1024), card(1, 80 * 1024))
    assert cards_of(gib(40, 40, 80), two, SPREAD) == ["GPU-0", "GPU-0", "GPU-1"]
    assert cards_of(gib(40, 40), two, SPREAD) == ["GPU-0", "GPU-1"]
    mixed = node_state(card(0, 80 * 1024), card(1, 90 * 1024))
    assert cards_of(gib(5, 80), mixed, BINPACK) == ["GPU-0", "GPU-1"]
    assert cards_of(gib(5, 85, 80), mixed, BINPACK) == ["GPU-1", "GPU-1", "GPU-0"]


def test_many_containers_are_placed_largest_first() -> None:
    two = node_state(card(0, 80 * 1024), card(1, 80 * 1024))
    assert cards_of(gib(20, 20, 20, 20, 80), two, SPREAD) == ["GPU-1"] * 4 + ["GPU-0"]


def test_the_work_for_one_node_is_bounded() -> None:
    two = node_state(card(0, 80 * 1024), card(1, 80 * 1024))
    assert packing.pack(gib(40, 40, 80), two, by_index) is not None
    assert packing.pack(gib(40, 40, 80), two, by_index, max_steps=1) is None


def test_what_the_kubelet_holds_and_what_a_pod_takes_add_up() -> None:
    """The accounts do not know the holder of four slices: two containers of three slices do not fit beside it."""
    node = node_state(card(0, 8 * SLICE_MIB, held_slices=4))
    wanted = request.parse(pod(container("a", gpu_mem=3 * SLICE_MIB), container("b", gpu_mem=3 * SLICE_MIB))).request
    assert wanted is not None
    assert isinstance(choose.place(wanted, node, BINPACK), NodeRefusal)
