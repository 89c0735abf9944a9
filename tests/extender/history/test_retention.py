"""What is deleted of the history, and what a clock that was wrong leaves, on SQLite and on PostgreSQL."""

from collections.abc import Callable, Iterable

import pytest
from sqlalchemy import Engine, select

from extender.history.recording.events import Decision, End, Event, Listed, Record, Restart, Start, Used, Watched
from extender.history.reporting.prices import Prices
from extender.history.reporting.sql_reports import SqlReports
from extender.history.storage import database, ingest, retention, rollup
from extender.history.storage.retention import Retention
from extender.history.storage.tables import Progress, WorkloadRow
from tests.extender.history import make
from tests.extender.history.make import HOUR, MONDAY
from vgpu.domain.identifiers import CardUuid, ContainerName, NodeName, PodUid

DAY = 24 * HOUR
NODE = NodeName("n1")
LIMIT = 300_000
KEPT = Retention(90, 1000, 1 << 30)
SMALL = Retention(90, 1000, LIMIT)


def store(engine: Engine, records: Iterable[Record]) -> None:
    with database.writing(engine) as connection:
        ingest.ingest(connection, list(records))


def maintain(engine: Engine, now_ms: int, kept: Retention = KEPT) -> None:
    """Do what the drain does in an hour."""
    while rollup.roll_up(engine, now_ms):
        pass
    retention.purge(engine, kept, now_ms)


def events(engine: Engine) -> list[Event]:
    entries = SqlReports(engine, Prices(), lambda: 0).history(limit=1000).entries
    return [entry.event for entry in reversed(entries)]


def share_seconds(engine: Engine, now_ms: int) -> float:
    return sum(row.share_seconds for row in SqlReports(engine, Prices(), lambda: now_ms).usage([], 0, now_ms))


def ended_pods() -> Iterable[Record]:
    """Four days of pods."""
    for number in range(2, 402):
        yield make.decision(number, MONDAY + number * DAY // 100)
        yield make.end(number, MONDAY + number * DAY // 100 + 1000)


def restarts() -> Iterable[Record]:
    """Four days of restarts of a pod that runs."""
    for number in range(800):
        yield Restart(make.pod(), NODE, ContainerName("main"), MONDAY + number * DAY // 200, number)


def measured() -> Iterable[Record]:
    """Four days of measured hours of a pod that runs, of 20 containers."""
    for number in range(96 * 20):
        begin = MONDAY + number // 20 * HOUR
        yield Used(
            PodUid("uid-1"),
            NODE,
            ContainerName(f"container-{number % 20}"),
            CardUuid("GPU-a"),
            begin,
            begin + HOUR,
            1000,
        )


def workloads() -> Iterable[Record]:
    """Four days of pods that nothing owns."""
    for number in range(2, 402):
        yield make.decision(number, MONDAY + number * DAY // 100, owner=f"pod-{number}")
        yield make.end(number, MONDAY + number * DAY // 100 + 1000)


@pytest.mark.heavy
@pytest.mark.parametrize("written", [ended_pods, restarts, measured, workloads])
def test_the_largest_size_holds_while_an_old_pod_runs(engine: Engine, written: Callable[[], Iterable[Record]]) -> None:
    old = make.decision(1, MONDAY - 10 * DAY)
    now = MONDAY + 5 * DAY
    store(engine, [old, *written(), Watched("replica", now)])
    assert retention.size(engine) > LIMIT
    maintain(engine, now, SMALL)
    assert retention.size(engine) <= LIMIT
    assert old in events(engine)


def test_usage_by_the_hour_gives_way_where_there_are_no_events_left(engine: Engine) -> None:
    store(engine, [*(make.decision(n, MONDAY, owner=f"web-{n}") for n in range(50)), Watched("r", MONDAY + 5 * DAY)])
    maintain(engine, MONDAY + 5 * DAY)
    limit = retention.size(engine) - 100_000
    maintain(engine, MONDAY + 5 * DAY, Retention(90, 1000, limit))
    assert retention.size(engine) <= limit
    assert len(events(engine)) == 50


def test_a_pod_that_lost_its_restarts_to_the_largest_size_is_used_until_its_end(engine: Engine) -> None:
    now = MONDAY + 5 * DAY
    store(engine, [make.decision(1), *restarts(), Watched("replica", now)])
    maintain(engine, now, SMALL)
    store(engine, [make.end(1, now)])
    assert share_seconds(engine, now) == pytest.approx(5 * 24 * 900)


def test_workloads_of_which_nothing_is_known_are_deleted(engine: Engine) -> None:
    kept = Retention(1, 2, 1 << 30)
    store(engine, [make.decision(1, owner="gone"), make.end(1), make.decision(2, owner="stays")])
    store(engine, [Watched("replica", MONDAY + 5 * DAY)])
    for _ in range(5):
        maintain(engine, MONDAY + 5 * DAY, kept)
    with database.reading(engine) as connection:
        assert list(connection.scalars(select(WorkloadRow.owner))) == ["Deployment/stays"]


def test_a_clock_that_is_ahead_while_nothing_is_stored_changes_nothing(engine: Engine) -> None:
    now = MONDAY + 3 * HOUR
    store(
        engine,
        [make.decision(1), make.end(1), Start(make.pod(2), NODE, ContainerName("main"), MONDAY), Watched("r", now)],
    )
    maintain(engine, now + 100 * DAY)
    assert len(events(engine)) == 3
    with database.reading(engine) as connection:
        progress = connection.execute(select(Progress.rolled_until_hour, Progress.purged_until_hour)).one()
    assert progress == (now // HOUR - 1, 0)


@pytest.mark.heavy
@pytest.mark.parametrize("marks_are_ahead", [False, True])
def test_usage_of_pods_after_a_clock_that_was_ahead(engine: Engine, *, marks_are_ahead: bool) -> None:
    """The mark is that of the extender, on the machine of which the clock was wrong."""
    now = MONDAY + 30 * HOUR
    ahead = now + 100 * DAY
    store(engine, [make.decision(1), make.end(1), Watched("replica", now)])
    maintain(engine, now)
    store(engine, [Watched("replica", ahead)] if marks_are_ahead else [])
    maintain(engine, ahead)
    store(engine, [make.decision(2, now), make.end(2, now + 2 * HOUR), Watched("replica", now + 4 * HOUR)])
    maintain(engine, now + 4 * HOUR)
    assert share_seconds(engine, now + 4 * HOUR) == 3 * 900


@pytest.mark.heavy
def test_a_clock_that_is_ahead_for_one_purge_costs_a_day_of_events(engine: Engine) -> None:
    now = MONDAY + 5 * DAY
    store(engine, [*ended_pods(), Watched("replica", now), Watched("replica", now + 100 * DAY)])
    before = len(events(engine))
    maintain(engine, now + 100 * DAY)
    assert before - 210 < len(events(engine)) < before


def test_a_mark_of_a_clock_that_was_ahead_is_replaced(engine: Engine) -> None:
    """A pod whose end was not seen has ended after the last mark, not when the next list lacks it."""
    store(engine, [make.decision(1), Watched("replica", MONDAY + 100 * DAY), Watched("gone", MONDAY + 100 * DAY)])
    store(engine, [Watched("replica", MONDAY + HOUR)])
    store(engine, [Listed("replica", MONDAY + 2 * HOUR, MONDAY + 3 * HOUR, frozenset())])
    (end,) = (event for event in events(engine) if isinstance(event, End))
    assert end.after_ms == MONDAY + HOUR


@pytest.mark.heavy
def test_the_decision_of_a_running_pod_stays_and_its_other_events_go(engine: Engine) -> None:
    now = MONDAY + 100 * DAY
    store(engine, [make.decision(1), Start(make.pod(), NODE, ContainerName("main"), MONDAY), Watched("replica", now)])
    maintain(engine, now)
    assert [type(event) for event in events(engine)] == [Decision]


@pytest.mark.heavy
def test_one_purge_by_age_takes_one_day(engine: Engine) -> None:
    now = MONDAY + 100 * DAY
    store(engine, [*ended_pods(), Watched("replica", now)])
    counts = []
    for _ in range(5):
        maintain(engine, now)
        counts.append(len(events(engine)))
    assert counts[0] in range(550, 650)
    assert counts[-1] == 0
