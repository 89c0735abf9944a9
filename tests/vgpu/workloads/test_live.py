"""What two readings of a region say about a running program."""

from dataclasses import replace
from typing import Any

import pytest

from vgpu.domain.formats.region import Activity, CardUse, Wait
from vgpu.domain.identifiers import CardUuid
from vgpu.workloads.diagnose import live, period
from vgpu.workloads.diagnose.catalogue import FindingCode
from vgpu.workloads.diagnose.period import CardSeen, HostSeen, Period

S = 1_000_000_000
BUSY = Period(10 * S, 8 * S, Activity(last_launch_at_ns=1), has_launched=True, cores=30)


def codes(gpu_s: float = 8, *, has_launched: bool = True, **activity: Any) -> list[FindingCode]:
    made = Activity(last_launch_at_ns=1, **activity)
    return [
        finding.code
        for finding in live.check(replace(BUSY, gpu_ns=int(gpu_s * S), activity=made, has_launched=has_launched))
    ]


def test_a_busy_program_has_no_finding() -> None:
    assert codes() == []
    assert codes(share=Wait(S // 2, 9), turn=Wait(S // 2, 9), host_gaps=9_000, host_gap_ns=S) == []


def test_a_program_without_a_launch_is_idle() -> None:
    assert codes(0, has_launched=False) == [FindingCode.IDLE]


def test_long_kernels_are_told_last_because_only_others_wait_for_them() -> None:
    activity = Activity(turn=Wait(2 * S, 9), long_kernels=10, long_kernel_ns=7 * S)
    wait, long = live.check(replace(BUSY, activity=activity))
    assert (wait.code, long.code) == (FindingCode.WAITS_FOR_TURNS, FindingCode.LONG_KERNELS)
    assert long.seen == "it ran 10 kernels or graphs of 50 ms or more, 0.7 s each: other containers wait for each"


def test_waits_are_told_apart_and_the_longest_comes_first() -> None:
    (finding,) = live.check(replace(BUSY, gpu_ns=3 * S, activity=Activity(share=Wait(7 * S, 500))))
    assert finding.code is FindingCode.SHARE_USED_UP
    assert finding.seen == "launches waited 70% of the time for the own share of 30 %; it used 30% of the card's time"
    assert codes(4, share=Wait(2 * S, 9), turn=Wait(4 * S, 9)) == [
        FindingCode.WAITS_FOR_TURNS,
        FindingCode.SHARE_USED_UP,
    ]
    assert codes(1, turn=Wait(90 * S, 9)) == [FindingCode.WAITS_FOR_TURNS]  # of nine threads


@pytest.mark.parametrize(
    ("gaps", "synchronizes", "awaited_s", "code"),
    [
        (30_000, 0, 0, FindingCode.LAUNCH_BOUND),
        (30_000, 190, 2, FindingCode.LAUNCH_BOUND),
        (2_000, 2_000, 3, FindingCode.SYNC_BOUND),
        (2_000, 2_000, 1, FindingCode.LAUNCH_BOUND),  # the host was late with its launches, and then waited shortly
        (40, 400, 3, FindingCode.HOST_BOUND),
    ],
)
def test_gaps_are_told_apart_by_their_length_and_by_waits(
    gaps: int, synchronizes: int, awaited_s: int, code: FindingCode
) -> None:
    counted: dict[str, Any] = {
        "host_gaps": gaps,
        "host_gap_ns": 4 * S,
        "synchronizes": synchronizes,
        "synchronize_ns": awaited_s * S,
    }
    assert codes(5, **counted) == [code]


@pytest.mark.parametrize(("awaited_s", "times"), [(3, 1 / 0.7), (6, 1 / 0.6)])
def test_without_its_waits_a_program_needs_the_host_s_time_or_the_card_s(awaited_s: int, times: float) -> None:
    activity = Activity(host_gaps=2_000, host_gap_ns=4 * S, synchronizes=2_000, synchronize_ns=awaited_s * S)
    (finding,) = live.check(replace(BUSY, gpu_ns=5 * S, activity=activity))
    assert finding.bound == pytest.approx(times)
    assert finding.seen.endswith(f"; the program waited for it 200 times a second, {awaited_s * 10}% of the time")


def card(gpu_ns: int = 0, **activity: Any) -> CardUse:
    return CardUse(CardUuid("GPU-a"), 0, None, 0, 0, 0, gpu_ns=gpu_ns, activity=Activity(**activity))


def test_a_period_is_the_difference_of_two_readings() -> None:
    before = card(S, last_launch_at_ns=5, share=Wait(1, 1), host_gaps=7, host_gap_ns=70, pageable_bytes=100)
    after = card(
        3 * S,
        last_launch_at_ns=9,
        share=Wait(11, 4),
        host_gaps=9,
        host_gap_ns=90,
        synchronizes=2,
        pageable_copies=3,
        pageable_bytes=400,
    )
    seen = period.between(before, after, 10 * S, 30)
    assert seen is not None
    assert (seen.activity.pageable_copies, seen.activity.pageable_bytes) == (3, 300)
    assert (seen.gpu_ns, seen.activity.share, seen.activity.host_gaps, seen.activity.synchronizes) == (
        2 * S,
        Wait(10, 3),
        2,
        2,
    )
    assert (seen.has_launched, seen.cores) == (True, 30)


def test_readings_that_are_too_close_or_of_two_regions_say_nothing() -> None:
    assert period.between(card(), card(S), S, 0) is None
    assert period.between(card(3 * S), card(S), 10 * S, 0) is None


def test_without_nvml_a_program_is_known_by_its_share_or_its_launches() -> None:
    assert not replace(BUSY, has_launched=False, cores=0).is_known
    assert replace(BUSY, has_launched=False).is_known
    assert replace(BUSY, has_launched=False, cores=0, card=CardSeen(0.0)).is_known
    assert codes(0, has_launched=True) == []


# What was measured on an H200: share of the time, bytes a second, CPUs.
GPT = CardSeen(0.93, 0.75, 6e7, 0.98, power=1.0)
LSTM = CardSeen(0.37, 0.11, 2.7e8, 1.0)
MLP = CardSeen(0.51, 0.38, 7.5e7, 1.0)
WAIT_NS = 250_000  # assumed, not measured: how long one wait for the card takes


def judged(
    card: CardSeen, host: HostSeen | None = None, gaps: int = 0, syncs: int = 0, share_s: float = 0
) -> list[FindingCode]:
    activity = Activity(
        last_launch_at_ns=1,
        host_gaps=gaps,
        host_gap_ns=0,
        synchronizes=syncs,
        synchronize_ns=syncs * WAIT_NS,
        share=Wait(int(share_s * S), 9),
    )
    seen = Period(10 * S, 9 * S, activity, has_launched=bool(gaps), cores=95 if gaps else 0, card=card, host=host)
    return [finding.code for finding in live.check(seen)]


@pytest.mark.parametrize(
    ("card", "host", "gaps", "syncs", "code"),
    [
        (LSTM, HostSeen(1.0, 16, 0, 0), 114_000, 73, FindingCode.LAUNCH_BOUND),
        (MLP, HostSeen(1.0, 16, 0, 0), 16_000, 12_000, FindingCode.SYNC_BOUND),
        (CardSeen(0.06, 0.05, 1.5e8, 1.0), HostSeen(5.2, 32, 0, 0), 90, 0, FindingCode.DATA_BOUND),
        (CardSeen(0.06, 0.05, 1.5e8, 1.0), HostSeen(1.0, 32, 0, 0), 90, 0, FindingCode.DATA_BOUND),
        (CardSeen(0.08, 0.07, 6.5e8, 1.0), HostSeen(1.0, 16, 4.5e9, 0), 190, 350, FindingCode.DATA_BOUND),
        (CardSeen(0.06, 0.05, 1.5e8, 1.0), HostSeen(0.1, 32, 0, 0), 90, 0, FindingCode.HOST_BOUND),
        (CardSeen(0.50, 0.48, 5.2e9, 1.0), HostSeen(1.0, 16, 0, 0), 0, 0, FindingCode.COPY_BOUND),
        (CardSeen(0.50, 0.48, 5.0e8, 1.0), HostSeen(1.0, 16, 1e6, 3e8), 130, 300, FindingCode.CHECKPOINT_DIPS),
        (CardSeen(0.50), HostSeen(1.0, 16, 0, 0), 0, 0, FindingCode.HOST_BOUND),
        (CardSeen(1.0, 0.03, 5e6, 1.0), None, 0, 0, FindingCode.ONE_KERNEL),
        (CardSeen(1.0, 0.98, 1.6e7, 0.72, power=1.0), None, 0, 0, FindingCode.POWER_LIMIT),
        (CardSeen(1.0, 0.98, 1.6e7, 0.72, power=1.0, heat=1.0), None, 0, 0, FindingCode.HEAT_LIMIT),
        (CardSeen(0.0), None, 0, 0, FindingCode.IDLE),
    ],
)
def test_what_nvml_and_the_host_say_names_the_cause(
    card: CardSeen, host: HostSeen | None, gaps: int, syncs: int, code: FindingCode
) -> None:
    assert judged(card, host, gaps, syncs) == [code]


@pytest.mark.parametrize(
    ("card", "gib", "code"),
    [
        (CardSeen(0.50), 20, FindingCode.COPY_BOUND),
        (CardSeen(0.50), 5, FindingCode.LAUNCH_BOUND),
        (
            CardSeen(0.50, 0.48, 5.0e8),
            20,
            FindingCode.LAUNCH_BOUND,
        ),  # NVML counts every copy, and says that they are few
        (None, 20, FindingCode.COPY_BOUND),
    ],
)
def test_where_nvml_does_not_count_copies_those_of_pageable_memory_are_the_cause(
    card: CardSeen | None, gib: int, code: FindingCode
) -> None:
    activity = Activity(host_gaps=10_000, host_gap_ns=5 * S, pageable_copies=80, pageable_bytes=gib << 30)
    (finding,) = live.check(replace(BUSY, gpu_ns=5 * S, activity=activity, card=card))
    assert finding.code is code
    if code is FindingCode.COPY_BOUND:
        assert finding.seen.endswith(", while 2.1 GB/s were copied between the card and pageable memory")


def test_a_busy_card_with_a_nearly_full_clock_has_no_finding() -> None:
    assert judged(GPT) == []
    assert judged(GPT, HostSeen(4.0, 16, 1e9, 1e9), 2_800, 29) == []
    assert judged(replace(GPT, clock=None, multiprocessors=None)) == []


def test_a_program_that_waits_for_its_share_has_no_gaps_by_that() -> None:
    assert judged(CardSeen(0.2), gaps=9, share_s=6) == [FindingCode.SHARE_USED_UP]


def test_the_bound_is_that_of_the_card_or_of_free_processors() -> None:
    (finding,) = live.check(replace(BUSY, card=LSTM, activity=Activity(host_gaps=9_000)))
    assert finding.bound == pytest.approx(1 / 0.37)
    (finding,) = live.check(replace(BUSY, card=CardSeen(0.05), host=HostSeen(2.0, 16, 0, 0)))
    assert (finding.code, finding.bound) == (FindingCode.DATA_BOUND, 8.0)
    assert finding.as_json()["at_most_times_as_fast"] == 8.0


def test_the_text_says_how_the_host_works_and_what_came_from_storage() -> None:
    host = HostSeen(1.2, 16, 4e8, 0, storage_per_s=1e8, threads=9)
    (finding,) = live.check(replace(BUSY, card=CardSeen(0.05), host=host))
    assert finding.seen.endswith(", while 400 MB/s were read, 25% of it from storage, by 1.2 CPUs in 9 threads")
    (finding,) = live.check(replace(BUSY, card=CardSeen(0.05), host=replace(host, cpus=3, read_per_s=0)))
    assert finding.seen.endswith(", while data were prepared by 3.0 CPUs in 9 threads")
    (finding,) = live.check(replace(BUSY, card=CardSeen(0.05), host=None))
    assert finding.seen.endswith(": it launches, waits for results, or does something else")
