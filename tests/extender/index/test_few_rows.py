"""The room of few rows, as one array of all cards, gives the numbers of the room that goes from card to card."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from extender.index.copies import copies
from extender.index.few_rows import FewRows
from vgpu.placement.room import CardRoom, NodeRoom, PodAsk, after

SLICES = 6
FIELDS = ("free_slices", "total_slices", "free_cores", "model")

shares = st.builds(
    PodAsk,
    gpus=st.integers(0, 3),
    slices=st.integers(0, SLICES),
    cores=st.sampled_from([0, 10, 50]),
    whole=st.just(0),
    cpu_milli=st.integers(0, 3),
    memory_mib=st.integers(0, 3),
    models=st.integers(1, 3),
)
wholes = st.builds(
    PodAsk, st.integers(1, 3), st.just(0), st.just(0), st.just(1), st.integers(0, 3), st.just(0), st.integers(1, 3)
)
asks = st.one_of(shares, wholes)


@st.composite
def rooms(draw: st.DrawFn) -> tuple[NodeRoom, FewRows]:
    rows, columns = draw(st.integers(1, 4)), draw(st.integers(1, 4))

    def numbers(of: st.SearchStrategy[int], count: int) -> np.ndarray:
        return np.array(draw(st.lists(of, min_size=count, max_size=count)), np.int64)

    total = numbers(st.sampled_from([0, SLICES, SLICES]), columns * rows)
    free = np.minimum(total, numbers(st.integers(0, SLICES), columns * rows))
    cores = numbers(st.sampled_from([0, 10, 60, 100, 100]), columns * rows) * (total > 0)
    models = numbers(st.sampled_from([1, 2]), columns * rows)
    stacked = CardRoom(*(amounts.reshape(columns, 1, rows) for amounts in (free, total, cores, models)))
    cards = [CardRoom(*(getattr(stacked, field)[n, 0] for field in FIELDS)) for n in range(columns)]
    host = numbers(st.integers(0, 9), rows), numbers(st.integers(0, 9), rows)
    return NodeRoom(*host, cards), FewRows(*host, [stacked])


@pytest.mark.heavy
@given(rooms(), asks, st.lists(asks, min_size=1, max_size=3))
def test_both_forms_give_the_same_numbers(both: tuple[NodeRoom, FewRows], ask: PodAsk, typical: list[PodAsk]) -> None:
    rows = len(both[0].cpu_milli)
    for by_card, at_once in (both, tuple(after(room, ask) for room in both)):
        np.testing.assert_array_equal(by_card.share, at_once.share)
        np.testing.assert_array_equal(copies(by_card, typical, rows), copies(at_once, typical, rows))


@given(rooms(), asks)
def test_a_pod_takes_the_same_cards_in_both_forms(both: tuple[NodeRoom, FewRows], ask: PodAsk) -> None:
    by_card, at_once = (after(room, ask).cards for room in both)
    for field in FIELDS:
        expected = np.stack([getattr(card, field) for card in by_card])
        np.testing.assert_array_equal(expected, getattr(at_once[0], field)[:, 0])
