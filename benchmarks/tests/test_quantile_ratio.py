"""The interval of a ratio is wide where rounds differ, and has the true ratio."""

import random

import pytest

from benchmarks.calls import quantile_ratio
from benchmarks.calls.quantile_ratio import CallRound, Ratio

pytestmark = pytest.mark.heavy


def rounds(count: int, factor: float) -> list[CallRound]:
    """Return rounds on a machine whose other load differs by round; failing calls take `factor` times as long."""
    made = random.Random(7)
    loads = [made.uniform(1, 3) for _ in range(count)]
    calls = [
        [(load * made.uniform(0.8, 1.2), load * factor * made.uniform(0.8, 1.2)) for _ in range(100)] for load in loads
    ]
    return [CallRound(*zip(*call, strict=True)) for call in calls]


def test_times_that_are_alike_have_a_ratio_of_about_one() -> None:
    found = quantile_ratio.of(rounds(20, 1.0))
    assert 0.95 < found.low <= found.value <= found.high < 1.05
    assert found.verdict(1.1) == "held"


def test_times_that_are_twice_as_long_miss_the_goal() -> None:
    found = quantile_ratio.of(rounds(20, 2.0))
    assert 1.9 < found.low <= found.value <= found.high < 2.1
    assert found.verdict(1.1) == "missed"


def test_rounds_that_do_not_meet_the_same_load_decide_less() -> None:
    together = rounds(8, 1.0)
    apart = [
        CallRound(one.healthy, other.failing) for one, other in zip(together, together[1:] + together[:1], strict=True)
    ]
    narrow, wide = quantile_ratio.of(together), quantile_ratio.of(apart)
    assert narrow.high - narrow.low < wide.high - wide.low


def test_an_interval_on_both_sides_of_the_goal_decides_nothing() -> None:
    assert Ratio(1.05, 0.9, 1.2).verdict(1.1) == "not decided"
