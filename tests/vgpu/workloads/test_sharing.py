"""Beside what a program fits."""

from vgpu.region import Activity
from vgpu.workloads.diagnose import sharing
from vgpu.workloads.diagnose.catalogue import Code
from vgpu.workloads.diagnose.period import CardSeen, Period


def seen(busy: float | None) -> Period:
    card = None if busy is None else CardSeen(busy)
    return Period(10**10, 0, Activity(), has_launched=False, card=card)


def test_a_program_that_keeps_its_card_busy_should_not_share_it() -> None:
    assert "do not share" in sharing.advice(seen(0.8))
    assert "programs of up to 15% together" in sharing.advice(seen(0.79999))


def test_what_is_left_fits_beside_it() -> None:
    assert sharing.advice(seen(0.37)).endswith("programs of up to 58% together fit beside it")
    assert sharing.advice(seen(0.0)).endswith("programs of up to 95% together fit beside it")


def test_nothing_is_said_where_the_use_is_limited_or_unknown() -> None:
    assert sharing.advice(seen(None)) == ""
    assert sharing.advice(seen(0.2), frozenset({Code.SHARE_USED_UP})) == ""
    assert sharing.advice(seen(0.2), frozenset({Code.WAITS_FOR_TURNS})) == ""


def test_small_kernels_take_the_time_and_not_the_card() -> None:
    assert "few multiprocessors" in sharing.advice(seen(1.0), frozenset({Code.ONE_KERNEL}))
