"""How well cards are packed: what is free, and what of it the pods to come cannot use."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from tests.vgpu.placement.test_costs import columns, demands, rooms
from vgpu.placement import packed
from vgpu.placement.demand import EMPTY, Demand, Typical
from vgpu.placement.models import ALL
from vgpu.placement.packed import Packed
from vgpu.placement.room import CardRoom, NodeRoom, PodAsk


def node(*free_slices: int) -> NodeRoom:
    """A node whose cards have 8 slices."""
    return NodeRoom(1 << 40, 1 << 40, tuple(CardRoom(free, 8, 100 * free // 8, 1) for free in free_slices))


def pods(slices: int, popularity: int) -> Typical:
    return Typical(PodAsk(1, slices, 0, 0, 0, 0, ALL), popularity)


@given(st.lists(rooms, min_size=1, max_size=4), demands)
def test_arrays_and_ints_give_equal_sums(many: list[NodeRoom], demand: Demand) -> None:
    together = packed.of_rooms([columns(many)], demand, lambda numbers: int(np.sum(numbers)))
    assert together == packed.of_rooms(many, demand)


def test_what_typical_pods_cannot_use_is_fragmented() -> None:
    rooms, demand = [node(8, 0), node(2, 2)], Demand((pods(4, 750_000), pods(2, 250_000)))
    found = packed.of_rooms(rooms, demand)
    assert (found.cards, found.empty, found.free) == (4, 1, 1500)
    assert found.allocated_percent == 62.5
    assert found.stranded == 375  # pods of 4 slices, three of four, cannot use 500
    assert found.fragmented_percent == 25


def test_closed_cards_are_in_no_figure() -> None:
    """A room does not tell a closed card from a full one: of two cards without room one may be closed."""
    found = packed.of_rooms([node(8, 0), node(2, 0)], EMPTY, closed=1)
    assert (found.cards, found.empty, round(found.allocated_percent, 1)) == (3, 1, 58.3)


def test_where_no_pod_was_seen_nothing_is_fragmented_and_no_cards_divide_nothing() -> None:
    assert packed.of_rooms([node(2)], EMPTY).fragmented_percent == 0
    assert (Packed().allocated_percent, Packed().fragmented_percent) == (0, 0)
