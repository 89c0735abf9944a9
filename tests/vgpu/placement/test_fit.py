"""Whether a share fits on a card."""

import pytest

from tests.strategies import SLICE_MIB, card
from vgpu.domain.cards.reasons import Reason
from vgpu.domain.cards.share import CardState, Usage
from vgpu.placement import fit

EMPTY = Usage()
HALF = Usage(slices=4, memory_mib=1024, cores=50, shares=1)
WHOLE = Usage(slices=8, memory_mib=2048, cores=100, wholes=1)


@pytest.mark.parametrize(
    ("taken", "need", "reason"),
    [
        (EMPTY, HALF, None),
        (HALF, HALF, None),
        (HALF, Usage(slices=5, memory_mib=1, shares=1), Reason.CARD_INSUFFICIENT_MEMORY),
        (HALF, Usage(slices=4, memory_mib=1025, shares=1), Reason.CARD_INSUFFICIENT_MEMORY),
        (HALF, Usage(slices=1, memory_mib=1, cores=51, shares=1), Reason.CARD_INSUFFICIENT_CORES),
        (WHOLE, Usage(slices=1, memory_mib=1, shares=1), Reason.CARD_HELD_WHOLE),
        (EMPTY, WHOLE, None),
        (HALF, WHOLE, Reason.CARD_IN_USE),
        (WHOLE, WHOLE, Reason.CARD_IN_USE),
        (EMPTY, WHOLE + WHOLE, Reason.CARD_IN_USE),
        (EMPTY, WHOLE + HALF, Reason.CARD_IN_USE),
    ],
)
def test_a_share_fits_or_has_a_reason(taken: Usage, need: Usage, reason: Reason | None) -> None:
    assert fit.usage_refusal(CardState(card(0), SLICE_MIB, taken), need) is reason


def test_slices_that_the_kubelet_reports_as_held_count() -> None:
    held = CardState(card(0, held_slices=7), SLICE_MIB)
    assert fit.usage_refusal(held, Usage(slices=1, memory_mib=256, shares=1)) is None
    assert fit.usage_refusal(held, HALF) is Reason.CARD_INSUFFICIENT_MEMORY
    assert fit.usage_refusal(held, WHOLE) is Reason.CARD_IN_USE
    assert fit.usage_refusal(CardState(card(0, held_whole=True), SLICE_MIB), HALF) is Reason.CARD_HELD_WHOLE
