"""What the node measures of each container for the history."""

import asyncio

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vgpu.domain.cards import measured_use
from vgpu.domain.cards.measured_use import MeasuredUse
from vgpu.domain.identifiers import CardUuid, ContainerName, Namespace, PodUid
from vgpu.domain.quantity import MIB
from vgpu.node.usage.meter import HOUR_MS, KEPT_MS, MINUTE_MS, MemoryUse, UsageMeter
from vgpu.node.usage.reporter import UsageReporter

NINE = 500_000 * HOUR_MS
MAIN = (PodUid("uid-1"), ContainerName("main"), CardUuid("GPU-a"))


def run(meter: UsageMeter, begin_ms: int, percents: list[int], seconds: float = 0.0) -> tuple[int, float]:
    """Use a percent of the card in each minute, second by second; return the time and the seconds used."""
    now = begin_ms
    meter.add({MAIN: seconds}, {}, now)
    for percent in percents:
        for _ in range(60):
            now += 1000
            seconds += percent / 100
            meter.add({MAIN: seconds}, {MAIN: MemoryUse(percent * MIB, 100 * MIB)}, now)
    return now, seconds


def test_the_minutes_of_an_hour_by_percent() -> None:
    meter = UsageMeter()
    run(meter, NINE, [2, 2, 7, 100])
    expected = (2, 1, *[0] * 18, 1)
    assert meter.report() == [
        MeasuredUse(*MAIN, NINE, NINE + 4 * MINUTE_MS, 66_600, 100, 100, 100, expected),
    ]


def test_a_period_ends_with_the_hour_and_stays_in_the_report_for_a_while() -> None:
    meter = UsageMeter()
    begin = NINE + 59 * MINUTE_MS
    now, seconds = run(meter, begin, [50, 10])
    running, ended = meter.report()
    assert (running.from_ms, running.until_ms, running.gpu_ms) == (NINE + HOUR_MS - 1000, now, 6100 - 100 + 500)
    assert (running.percent, ended.percent) == (11, 50)
    assert (ended.from_ms, ended.until_ms, ended.gpu_ms) == (begin, NINE + HOUR_MS - 1000, 29_500)
    for _ in range(KEPT_MS // 30_000):
        now += 30_000
        meter.add({MAIN: seconds}, {}, now)
    assert len(meter.report()) == 1


def test_a_crowd_of_short_pods_leaves_out_no_period_of_another_namespace() -> None:
    meter, now, crowd = UsageMeter(), NINE, Namespace("crowd")
    meter.add({MAIN: 0.0}, {}, now, namespaces={MAIN[0]: Namespace("mine")})
    meter.add({MAIN: 0.5}, {}, now + 1000)
    for number in range(measured_use.MAX_ENTRIES + 1):
        now += 1000
        uid = PodUid(f"crowd-{number}")
        meter.add({(uid, *MAIN[1:]): 0.1}, {}, now + 1000, namespaces={uid: crowd})
    told = meter.report()
    assert len(told) == measured_use.MAX_ENTRIES
    assert (told[0].pod_uid, told[-1].pod_uid, told[-1].gpu_ms) == (uid, MAIN[0], 500)


def test_the_percentage_is_that_of_the_last_minute_also_when_an_hour_begins() -> None:
    meter = UsageMeter()
    now, seconds = run(meter, NINE + 58 * MINUTE_MS, [50])
    meter.add({MAIN: seconds + 0.1}, {}, now + 1000)
    assert meter.report()[0].percent == 50
    meter.add({MAIN: seconds + 0.2}, {}, NINE + HOUR_MS)
    assert [entry.percent for entry in meter.report()] == [50, 50]
    first = UsageMeter()
    first.add({MAIN: 0.0}, {}, NINE)
    first.add({MAIN: 0.2}, {}, NINE + 1000)
    assert first.report()[0].percent == 20


def test_a_container_that_ends_keeps_its_entry() -> None:
    meter = UsageMeter()
    now, _ = run(meter, NINE, [40])
    meter.add({}, {}, now + 1000)
    (entry,) = meter.report()
    assert (entry.until_ms, entry.gpu_ms, entry.levels) == (now, 24_000, (*[0] * 8, 1))


def test_a_container_that_has_ended_uses_nothing_and_keeps_its_peak() -> None:
    meter = UsageMeter()
    now, _ = run(meter, NINE, [40])
    meter.add({}, {}, now + 1000)
    (entry,) = meter.report()
    assert (entry.used_mib, entry.percent, entry.peak_mib, entry.gpu_ms) == (0, 0, 100, 24_000)


def test_a_clock_that_was_months_ahead_leaves_no_period_of_months_and_none_in_the_future() -> None:
    meter = UsageMeter()
    now, seconds = run(meter, NINE, [40])
    run(meter, now + 2400 * HOUR_MS, [10], seconds)
    assert max(entry.until_ms - entry.from_ms for entry in meter.report()) == MINUTE_MS
    now, _ = run(meter, now + 5 * MINUTE_MS, [10], seconds)
    assert [entry.until_ms for entry in meter.report()] == [now]


def test_a_clock_that_is_set_back_begins_another_period() -> None:
    meter = UsageMeter()
    now, seconds = run(meter, NINE, [40])
    run(meter, now - 10_000, [10], seconds)
    assert [(entry.from_ms, entry.gpu_ms) for entry in meter.report()] == [(now - 10_000, 6_000), (NINE, 24_000)]


@given(st.lists(st.lists(st.integers(0, 1000), max_size=3), min_size=1, max_size=20))
def test_no_time_is_lost_and_no_two_periods_of_a_container_begin_at_once(steps: list[list[int]]) -> None:
    """Containers come and go at random; their periods add up to what was used."""
    meter, now = UsageMeter(), NINE
    uses = [(PodUid(f"uid-{n}"), ContainerName("main"), CardUuid("GPU-a")) for n in range(3)]
    seconds = dict.fromkeys(uses, 0.0)
    meter.add({}, {}, now)
    for used in steps:
        now += 1000
        seconds = {use: seconds.get(use, 0.0) + ms / 1000 for use, ms in zip(uses, used, strict=False)}
        meter.add(seconds, {}, now)
    entries = meter.report()
    assert len({(entry.pod_uid, entry.from_ms) for entry in entries}) == len(entries)
    assert abs(sum(entry.gpu_ms for entry in entries) - sum(map(sum, steps))) <= len(entries)


@given(st.lists(st.integers(0, 5), max_size=measured_use.LEVELS), st.floats(0.01, 1.0))
def test_a_percentile_lies_in_the_level_that_holds_it(levels: list[int], fraction: float) -> None:
    found = measured_use.percentile(levels, fraction)
    minutes = [level for level, count in enumerate(levels) for _ in range(count)]
    if not minutes:
        assert found is None
        return
    assert found is not None
    rank = min(len(minutes) - 1, max(0, -int(-fraction * len(minutes) // 1) - 1))
    assert minutes[rank] * 5 <= found + 5e-9
    assert found <= min(100, (minutes[rank] + 1) * 5)


async def test_the_report_changes_once_in_a_period_and_less_often_in_large_clusters() -> None:
    slept: list[float] = []
    woken: list[int] = []
    entry = MeasuredUse(*MAIN, NINE, NINE + 1000, 10)

    async def sleep(seconds: float) -> None:
        slept.append(seconds)
        if len(slept) == 3:
            raise asyncio.CancelledError
        reporter.nodes = 5000

    reporter = UsageReporter(lambda: [entry], 60.0, sleep)
    reporter.on_change = lambda: woken.append(len(reporter.entries()))
    with pytest.raises(asyncio.CancelledError):
        await reporter.run()
    assert (slept, woken) == ([60.0, 500.0, 500.0], [1])


def test_the_idle_time_is_that_of_the_last_look_and_is_missing_where_it_is_unknown_or_the_period_has_ended() -> None:
    meter = UsageMeter()
    begin = NINE + HOUR_MS - MINUTE_MS
    meter.add({MAIN: 1.0}, {}, begin)
    meter.add({MAIN: 1.0}, {}, begin + 1000, {MAIN: 61_000})
    (entry,) = meter.report()
    assert (entry.idle_ms, measured_use.as_json(entry)["idleMs"]) == (61_000, 61_000)
    meter.add({MAIN: 1.0}, {}, NINE + HOUR_MS, {MAIN: 62_000})
    assert [reported.idle_ms for reported in meter.report()] == [62_000, None]
    meter.add({MAIN: 1.0}, {}, NINE + HOUR_MS + 1000, {})
    assert "idleMs" not in measured_use.as_json(meter.report()[0])


def test_waits_count_from_the_beginning_of_the_period_and_in_the_next_hour_from_there() -> None:
    meter, begin = UsageMeter(), NINE + HOUR_MS - 3000
    waits = {MAIN: (100.0, 50.0, 0.0, 7.0)}  # before the device plugin began
    meter.add({MAIN: 1.0}, {}, begin, {}, waits)
    meter.add({MAIN: 1.0}, {}, begin + 1000, {}, {MAIN: (130.4, 50.0, 0.0, 7.0)})
    meter.add({MAIN: 1.0}, {}, begin + 2000, {}, {})  # the region could not be read
    (entry,) = meter.report()
    assert entry.wait_ms == (30, 0, 0, 0)
    meter.add({MAIN: 1.0}, {}, begin + 3000, {}, {MAIN: (131.0, 60.0, 0.0, 7.0)})
    assert {(use.from_ms, use.wait_ms) for use in meter.report()} == {
        (begin, (30, 0, 0, 0)),
        (begin + 2000, (1, 10, 0, 0)),
    }
