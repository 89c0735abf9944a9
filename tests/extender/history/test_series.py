"""Five-minute series of containers and cards, on SQLite and on PostgreSQL."""

import random
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from sqlalchemy import Engine, func, select, text

from extender.history.recording import lines
from extender.history.recording.events import CardMeasured, Record, Used, Watched
from extender.history.recording.spill import Spill
from extender.history.recording.spill_reader import SpillReader
from extender.history.reporting.prices import Prices
from extender.history.reporting.reports import CardSeries, MeasuredFigure, PodSeries
from extender.history.reporting.sql_reports import SqlReports
from extender.history.storage import database, ingest, retention
from extender.history.storage.retention import Retention
from extender.history.storage.tables import PointRow, SeriesRow
from tests.extender.history import make
from tests.extender.history.make import HOUR, MONDAY
from vgpu.domain.identifiers import CardUuid, ContainerName, Namespace, NodeName, PodUid

MINUTE = 60_000
GPU, NODE = CardUuid("GPU-a"), NodeName("n1")
TEAM = Namespace("team")


def store(engine: Engine, records: Sequence[Record]) -> None:
    with database.writing(engine) as connection:
        ingest.ingest(connection, records)


def reports(minutes: int, begin: int = MONDAY, node: NodeName = NODE) -> list[Record]:
    """A report each minute of a container and its card; the GPU time of each minute is another one."""
    found: list[Record] = []
    for minute in range(1, minutes + 1):
        until = begin + minute * MINUTE
        from_ms = begin + (minute - 1) // 60 * HOUR
        lasted = (until - from_ms) // MINUTE
        used = 100 * lasted * lasted
        waits = (10 * lasted, 5 * lasted, 0, lasted)
        found.append(
            Used(PodUid("uid-1"), node, ContainerName("main"), GPU, from_ms, until, used, 900, (), minute, waits)
        )
        found.append(CardMeasured(node, GPU, from_ms, until, 2 * used, 2 * minute, 40 + minute % 10, 100 + minute))
    return found


def of_pod(engine: Engine, since: int = MONDAY, until: int = MONDAY + 100 * HOUR) -> PodSeries:
    return SqlReports(engine, Prices(), lambda: until).pod_series(TEAM, "p1", since, until)


def of_card(engine: Engine, namespaces: frozenset[Namespace] | None = None) -> CardSeries:
    until = MONDAY + 100 * HOUR
    return SqlReports(engine, Prices(), lambda: until).card_series(NODE, GPU, MONDAY, until, namespaces)


def figures(engine: Engine) -> tuple[MeasuredFigure, ...]:
    (series,) = of_pod(engine).containers
    return series.figures


def test_figures_are_the_differences_between_reports(engine: Engine) -> None:
    store(engine, [make.decision(), *reports(11)])
    assert figures(engine) == (
        MeasuredFigure(MONDAY, MONDAY + 4 * MINUTE, 1600, 4, (40, 20, 0, 4)),
        MeasuredFigure(MONDAY + 4 * MINUTE, MONDAY + 9 * MINUTE, 8100 - 1600, 9, (50, 25, 0, 5)),
        MeasuredFigure(MONDAY + 9 * MINUTE, MONDAY + 11 * MINUTE, 12100 - 8100, 11, (20, 10, 0, 2)),
    )
    card = of_card(engine)
    assert card.figures[1] == MeasuredFigure(MONDAY + 4 * MINUTE, MONDAY + 9 * MINUTE, 13000, 18, (), 49, 109)
    assert card.containers == of_pod(engine)


@pytest.mark.heavy
def test_the_sum_of_the_figures_is_what_the_reports_say(engine: Engine) -> None:
    store(engine, [make.decision(), *reports(150)])
    found = figures(engine)
    assert sum(figure.used_ms for figure in found) == 2 * 100 * 60 * 60 + 100 * 30 * 30
    assert sum(figure.wait_ms[0] for figure in found) == 10 * 150
    assert [figure.until_ms for figure in found[:-1]] == [figure.from_ms for figure in found[1:]]


@pytest.mark.heavy
def test_reports_that_come_again_late_and_in_any_order_change_nothing(engine: Engine) -> None:
    """Two replicas write them, and a drain that was killed takes a batch again."""
    written = [make.decision(), *reports(70)]
    store(engine, written)
    before = of_card(engine)
    again = [*written, *written]
    random.Random(1).shuffle(again)
    for some in range(0, len(again), 50):
        store(engine, again[some : some + 50])
    assert of_card(engine) == before


def test_a_time_without_reports_is_one_figure(engine: Engine) -> None:
    """The extender did not run for twenty minutes, and the next report has what was used meanwhile."""
    all_reports = reports(30)
    store(engine, [make.decision(), *all_reports[:10], *all_reports[50:]])
    found = figures(engine)
    assert (
        MeasuredFigure(MONDAY + 5 * MINUTE, MONDAY + 29 * MINUTE, 100 * (29**2 - 5**2), 29, (240, 120, 0, 24)) in found
    )
    assert sum(figure.used_ms for figure in found) == 100 * 30 * 30


def test_two_periods_that_end_in_the_same_five_minutes_both_count(engine: Engine) -> None:
    """The device plugin was restarted."""
    first, second = reports(2), reports(2, MONDAY + 2 * MINUTE)
    store(engine, [make.decision(), *first, *second])
    assert sum(figure.used_ms for figure in figures(engine)) == 800


def test_who_sees_what_of_a_card(engine: Engine) -> None:
    store(engine, [make.decision(), *reports(6)])
    assert of_card(engine, frozenset({TEAM})).containers == of_pod(engine)
    hidden = of_card(engine, frozenset({Namespace("other")}))
    assert hidden.containers.containers == ()
    assert hidden.figures == of_card(engine).figures


def test_a_report_of_a_node_that_the_pod_is_not_on_counts_nothing(engine: Engine) -> None:
    store(engine, [make.decision(), *reports(6, node=NodeName("n2"))])
    assert of_pod(engine).containers == ()
    assert of_card(engine) == CardSeries((), PodSeries(()))


def test_a_later_pod_of_the_name_has_series_of_its_own(engine: Engine) -> None:
    later = make.decision(1, MONDAY + HOUR)
    store(engine, [make.decision(), *reports(6)])
    store(engine, [replace(later, pod=replace(later.pod, uid=PodUid("uid-9")))])
    assert of_pod(engine).containers == ()


@pytest.mark.heavy
def test_beyond_the_hours_that_are_kept_figures_are_hourly(engine: Engine) -> None:
    store(engine, [make.decision(), *reports(50 * 60), Watched("r", MONDAY + 50 * HOUR)])
    retention.purge(engine, Retention(90, 1000, 1 << 30, 48), MONDAY + 50 * HOUR)
    found = figures(engine)
    assert [figure.until_ms - figure.from_ms for figure in found[:3]] == [HOUR, HOUR, 4 * MINUTE]
    assert [figure.wait_ms for figure in found[:3]] == [(), (600, 300, 0, 60), (40, 20, 0, 4)]
    card = of_card(engine).figures
    assert [figure.used_ms for figure in card[:2]] == [360_000, 720_000]
    assert sum(figure.used_ms for figure in found) == 50 * 360_000


def test_series_without_points_are_deleted(engine: Engine) -> None:
    store(engine, [make.decision(), *reports(6), Watched("r", MONDAY + 60 * HOUR)])
    retention.purge(engine, Retention(90, 1000, 1 << 30, 48), MONDAY + 60 * HOUR)
    with database.reading(engine) as connection:
        assert [connection.scalar(select(func.count()).select_from(table)) for table in (PointRow, SeriesRow)] == [0, 0]


@pytest.mark.heavy
def test_a_point_takes_no_more_than_is_said(engine: Engine) -> None:
    """Retention counts with this size, and docs/history.md says with it what a day takes: 288 points of a series."""
    many = [
        CardMeasured(NODE, CardUuid(f"GPU-{n}"), MONDAY, MONDAY + slot * 5 * MINUTE, slot * MINUTE, 40_000, 61, 350)
        for slot in range(1, 13)
        for n in range(500)
    ]
    store(engine, [make.decision(), *many])
    size = "SELECT sum(pgsize) FROM dbstat WHERE name IN ('points', 'ix_points_slot')"
    if engine.dialect.name != database.SQLITE:
        size = "SELECT pg_total_relation_size('points')"
    with database.reading(engine) as connection:
        points = connection.scalar(select(func.count()).select_from(PointRow))
        assert connection.scalar(text(size)) / len(many) <= retention.POINT_BYTES
    assert points == len(many)


def test_points_are_deleted_first_where_they_take_too_much(engine: Engine) -> None:
    many = [
        CardMeasured(NODE, CardUuid(f"GPU-{n}"), MONDAY, MONDAY + slot * 5 * MINUTE, 0)
        for n in range(20)
        for slot in range(1, 13)
    ]
    store(engine, [make.decision(), *many, Watched("r", MONDAY + HOUR)])
    limit = retention.size(engine) - 4096
    retention.purge(
        engine, Retention(90, 1000, min(limit, 4 * retention.POINT_BYTES * len(many) - 1), 48), MONDAY + HOUR
    )
    with database.reading(engine) as connection:
        assert connection.scalar(select(func.count()).select_from(PointRow)) == 0


def test_nothing_is_lost_over_a_restart(engine: Engine, tmp_path: Path) -> None:
    """The extender is killed with reports in its spill; what starts next stores them, and those after them."""
    written = [make.decision(), *reports(20)]
    spill = Spill(tmp_path, max_bytes=1 << 20)
    spill.append([lines.encode(record) for record in written[:25]])
    spill.close()
    again = Spill(tmp_path, max_bytes=1 << 20)
    again.append([lines.encode(record) for record in written[15:]])
    store(engine, SpillReader(tmp_path).read(1000))
    assert sum(figure.used_ms for figure in figures(engine)) == 100 * 20 * 20


@pytest.mark.heavy
@pytest.mark.parametrize("since", [MONDAY + 7 * MINUTE, MONDAY + 61 * MINUTE])
def test_a_time_begins_with_the_figure_that_ends_in_it(engine: Engine, since: int) -> None:
    store(engine, [make.decision(), *reports(90)])
    (series,) = of_pod(engine, since).containers
    assert series.figures == tuple(figure for figure in figures(engine) if figure.until_ms > since)
