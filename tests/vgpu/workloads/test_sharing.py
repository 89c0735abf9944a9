"""Beside what a program fits."""

from vgpu.domain.formats.region import Activity
from vgpu.workloads.diagnose import sharing
from vgpu.workloads.diagnose.catalogue import FindingCode
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
    assert sharing.advice(seen(0.2), frozenset({FindingCode.SHARE_USED_UP})) == ""
    assert sharing.advice(seen(0.2), frozenset({FindingCode.WAITS_FOR_TURNS})) == ""


def test_small_kernels_take_the_time_and_not_the_card() -> None:
    assert "few multiprocessors" in sharing.advice(seen(1.0), frozenset({FindingCode.ONE_KERNEL}))


def test_programs_that_fit_together() -> None:
    fit = sharing.together({"a": 0.6, "b": 0.35, "c": 0.3, "d": 0.7})
    assert fit == {"a": ["b", "c"], "b": ["a", "c"], "c": ["a", "b"], "d": []}
    assert sharing.advice(seen(0.35), beside=fit["b"]).endswith("up to 60% together fit beside it, such as a, c")
    assert sharing.advice(seen(0.1), beside="abcde").endswith("such as a, b, c")


def test_a_program_that_is_busy_or_limited_is_nobodys_neighbour() -> None:
    assert sharing.may_share(seen(0.7), frozenset({FindingCode.DATA_BOUND}))
    for code in (FindingCode.ONE_KERNEL, FindingCode.SHARE_USED_UP, FindingCode.WAITS_FOR_TURNS):
        assert not sharing.may_share(seen(0.1), frozenset({code}))
    assert not sharing.may_share(seen(0.8), frozenset())
    assert not sharing.may_share(seen(None), frozenset())
