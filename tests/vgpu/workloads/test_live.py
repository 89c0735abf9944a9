"""What two readings of a region say about a running program."""

from dataclasses import replace
from typing import Any

import pytest

from vgpu.region import Activity, CardUse, Wait
from vgpu.workloads.diagnose import live
from vgpu.workloads.diagnose.catalogue import Code
from vgpu.workloads.diagnose.live import Period

S = 1_000_000_000
BUSY = Period(10 * S, 8 * S, Activity(last_launch_at_ns=1), has_launched=True, cores=30)


def codes(gpu_s: float = 8, *, has_launched: bool = True, **activity: Any) -> list[Code]:
    made = Activity(last_launch_at_ns=1, **activity)
    return [
        each.code for each in live.check(replace(BUSY, gpu_ns=int(gpu_s * S), activity=made, has_launched=has_launched))
    ]


def test_a_busy_program_has_no_finding() -> None:
    assert codes() == []
    assert codes(share=Wait(S // 2, 9), turn=Wait(S // 2, 9), host_gaps=9_000, host_gap_ns=S) == []


def test_a_program_without_a_launch_is_idle() -> None:
    assert codes(0, has_launched=False) == [Code.IDLE]


def test_waits_are_told_apart_and_the_longest_comes_first() -> None:
    (finding,) = live.check(replace(BUSY, gpu_ns=3 * S, activity=Activity(share=Wait(7 * S, 500))))
    assert finding.code is Code.SHARE_USED_UP
    assert finding.seen == "launches waited 70% of the time for the own share of 30 %; it used 30% of the card's time"
    assert codes(4, share=Wait(2 * S, 9), turn=Wait(4 * S, 9)) == [Code.WAITS_FOR_TURNS, Code.SHARE_USED_UP]
    assert codes(1, turn=Wait(90 * S, 9)) == [Code.WAITS_FOR_TURNS]  # of nine threads


@pytest.mark.parametrize(
    ("gaps", "gap_s", "synchronizes", "code"),
    [
        (30_000, 4, 0, Code.LAUNCH_BOUND),
        (30_000, 4, 190, Code.LAUNCH_BOUND),
        (2_000, 4, 2_000, Code.SYNC_BOUND),
        (40, 4, 400, Code.HOST_BOUND),
    ],
)
def test_gaps_are_told_apart_by_their_length_and_by_waits(gaps: int, gap_s: int, synchronizes: int, code: Code) -> None:
    assert codes(5, host_gaps=gaps, host_gap_ns=gap_s * S, synchronizes=synchronizes) == [code]


def card(gpu_ns: int = 0, **activity: Any) -> CardUse:
    return CardUse("GPU-a", 0, None, 0, 0, 0, gpu_ns=gpu_ns, activity=Activity(**activity))


def test_a_period_is_the_difference_of_two_readings() -> None:
    before = card(S, last_launch_at_ns=5, share=Wait(1, 1), host_gaps=7, host_gap_ns=70)
    after = card(3 * S, last_launch_at_ns=9, share=Wait(11, 4), host_gaps=9, host_gap_ns=90, synchronizes=2)
    seen = live.period(before, after, 10 * S, 30)
    assert seen is not None
    assert (seen.gpu_ns, seen.activity.share, seen.activity.host_gaps, seen.activity.synchronizes) == (
        2 * S,
        Wait(10, 3),
        2,
        2,
    )
    assert (seen.has_launched, seen.cores) == (True, 30)


def test_readings_that_are_too_close_or_of_two_regions_say_nothing() -> None:
    assert live.period(card(), card(S), S, 0) is None
    assert live.period(card(3 * S), card(S), 10 * S, 0) is None
    assert not live.is_measured(card(S))
