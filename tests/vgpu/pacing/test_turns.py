"""Owners have turns in a bounded list."""

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from vgpu.pacing import turns

LISTS = st.lists(st.tuples(st.sampled_from("abcd"), st.integers()), max_size=40)


def first(value: tuple[str, int]) -> str:
    return value[0]


@given(LISTS, st.integers(1, 12))
def test_values_keep_their_order_and_none_is_left_out_for_one_of_a_larger_crowd(
    values: list[tuple[str, int]], most: int
) -> None:
    numbered = [(owner, place) for place, (owner, _) in enumerate(values)]
    kept = turns.taken(numbered, first, most)
    assert len(kept) == min(most, len(values))
    assert kept == [value for value in numbered if value in kept]
    counts, wanted = Counter(map(first, kept)), Counter(map(first, numbered))
    for owner, count in counts.items():
        assert [value for value in numbered if first(value) == owner][:count] == [v for v in kept if first(v) == owner]
    for owner, count in wanted.items():
        assert counts[owner] == count or counts[owner] >= max(counts.values()) - 1


def test_a_list_with_room_is_whole() -> None:
    assert turns.taken(["b1", "a1", "b2"], lambda value: value[0], 3) == ["b1", "a1", "b2"]
