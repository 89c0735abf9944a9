"""Slices, MiB and percent of a card: N shares of 100 / N percent fit N times on a card of any size."""

from itertools import chain

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from vgpu.domain import slices

# MiB of cards as NVML reports them, of which the driver reserves a part
SIZES = (
    81_559, 81_008, 143_771, 24_564, 15_360, 81_920, 40_960, 46_068, 183_359, 11_264, 16_376, 32_607, 97_887, 81_289,
    23_028,
)  # fmt: skip
SLICE_MIB = 256
card_sizes = st.one_of(st.sampled_from(SIZES), st.integers(1, 3000), st.integers(1, 200_000))
slice_sizes = st.one_of(st.just(SLICE_MIB), st.sampled_from([1, 3, 64, 100, 1024]))


@pytest.mark.parametrize("card_mib", SIZES)
@pytest.mark.parametrize("count", [1, 2, 3, 4, 5, 7, 10, 20])
def test_equal_shares_of_a_real_card_fit_and_use_it(card_mib: int, count: int) -> None:
    part = slices.percent_of(card_mib, 100 // count, SLICE_MIB)
    assert part is not None
    assert count * part.slices <= slices.holding(card_mib, SLICE_MIB)
    assert count * part.memory_mib <= card_mib
    lost = card_mib * (100 // count) // 100 - part.memory_mib
    assert 0 <= lost <= SLICE_MIB


@given(card_sizes, st.integers(1, 100), slice_sizes)
@example(81_008, 50, 256)
@example(24_564, 10, 256)
def test_shares_of_a_percent_fit_as_often_as_it_says(card_mib: int, percent: int, slice_mib: int) -> None:
    part = slices.percent_of(card_mib, percent, slice_mib)
    if part is None:
        assert percent < slices.least_percent(card_mib, slice_mib)
        return
    assert percent >= slices.least_percent(card_mib, slice_mib)
    assert 100 // percent * part.slices <= slices.holding(card_mib, slice_mib)
    assert 100 // percent * part.memory_mib <= card_mib
    assert part.memory_mib >= 1


@given(card_sizes, st.lists(st.integers(1, 100), max_size=20), slice_sizes)
def test_different_percents_that_add_up_to_a_card_fit_together(
    card_mib: int, percents: list[int], slice_mib: int
) -> None:
    parts, left = [], 100
    for percent in chain(percents, range(100, 0, -1)):
        if percent <= left and (part := slices.percent_of(card_mib, percent, slice_mib)):
            parts.append(part)
            left -= percent
    assert sum(part.slices for part in parts) <= slices.holding(card_mib, slice_mib)
    assert sum(part.memory_mib for part in parts) <= card_mib


@given(card_sizes, st.integers(1, 100), slice_sizes)
def test_the_mib_of_a_percent_take_exactly_its_slices(card_mib: int, percent: int, slice_mib: int) -> None:
    """Everything after admission counts slices from MiB, so the two roundings must agree."""
    part = slices.percent_of(card_mib, percent, slice_mib)
    assert part is None or slices.holding(part.memory_mib, slice_mib) == part.slices


@given(card_sizes, slice_sizes)
def test_all_of_a_card_is_all_of_a_card(card_mib: int, slice_mib: int) -> None:
    assert slices.percent_of(card_mib, 100, slice_mib) == slices.CardPart(slices.holding(card_mib, slice_mib), card_mib)


@given(card_sizes, st.integers(1, 99), slice_sizes)
def test_a_larger_percent_and_a_larger_card_are_not_less(card_mib: int, percent: int, slice_mib: int) -> None:
    part = slices.percent_of(card_mib, percent, slice_mib)
    if part is not None:
        for other in (
            slices.percent_of(card_mib, percent + 1, slice_mib), slices.percent_of(card_mib + 1, percent, slice_mib),
        ):  # fmt: skip
            assert other is not None
            assert (other.slices >= part.slices, other.memory_mib >= part.memory_mib) == (True, True)
