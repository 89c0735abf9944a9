"""Which cards are of one job."""

from hypothesis import given
from hypothesis import strategies as st

from vgpu.domain.identifiers import CardUuid
from vgpu.workloads.hold.linked_cards import linked_with

A, B, C, D = (CardUuid(f"GPU-{letter}") for letter in "abcd")
SETS = st.lists(st.frozensets(st.sampled_from([A, B, C, D])))


def test_sets_with_a_card_in_common_are_one() -> None:
    assert linked_with(A, [{C, D}, {A, B}, {B, C}]) == {B, C, D}
    assert linked_with(A, [{B, C}, {A}]) == set()
    assert linked_with(A, []) == set()


@given(SETS)
def test_cards_are_of_the_same_job_both_ways(joined: list[frozenset[CardUuid]]) -> None:
    every = [A, B, C, D]
    found = {gpu: linked_with(gpu, joined) for gpu in every}
    assert all((gpu in found[other]) == (other in found[gpu]) for gpu in every for other in every)
    assert all(cards - {gpu} <= found[gpu] for cards in joined for gpu in cards)
