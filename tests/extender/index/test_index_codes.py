"""Reasons as numbers."""

from hypothesis import given
from hypothesis import strategies as st

from extender.index.codes import CODES, FITS, UNDECIDED, membership
from vgpu.domain.cards.reasons import Reason


@given(st.sets(st.none() | st.sampled_from(Reason)))
def test_a_table_has_exactly_the_codes_of_its_reasons(chosen: set[Reason | None]) -> None:
    expected = {CODES[reason] if reason else FITS for reason in chosen}
    assert {code for code, is_member in enumerate(membership(chosen).tolist()) if is_member} == expected
    assert len(membership(chosen)) == UNDECIDED + 1
