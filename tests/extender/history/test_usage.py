"""Usage reports, on SQLite and on PostgreSQL; each with and without complete hours rolled up."""

import shutil
import tempfile
from functools import partial
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sqlalchemy import Engine, event

from extender.history.recording.events import DecisionSource, Record, Resize, Used
from extender.history.reporting.prices import Prices
from extender.history.reporting.reports import Dimension, UsageFilters, UsageGroup, UsageRow
from extender.history.reporting.sql_reports import SqlReports
from extender.history.storage import database, ingest, rollup
from tests.extender.history import make
from tests.extender.history.make import HOUR, MONDAY
from vgpu.domain import names
from vgpu.domain.identifiers import CardUuid, ContainerName, Namespace, NodeName, PodUid

UID_1 = PodUid("uid-1")

N1 = NodeName("n1")

NOW = MONDAY + 60 * HOUR
NAMESPACE = [UsageGroup(Dimension.NAMESPACE)]
PRICES = Prices("EUR", {"L4": 2.0})


def store(engine: Engine, *records: Record) -> None:
    with database.writing(engine) as connection:
        ingest.ingest(connection, records)


def roll_up(engine: Engine) -> None:
    while rollup.roll_up(engine, NOW):
        pass


def usage(
    engine: Engine, *by: UsageGroup, since: int = MONDAY, until: int = NOW, filters: UsageFilters | None = None
) -> list[UsageRow]:
    return SqlReports(engine, PRICES, lambda: NOW).usage(by, since, until, filters or UsageFilters())


@pytest.fixture(params=["holdings", "hours"])
def rolled(request: pytest.FixtureRequest) -> bool:
    return bool(request.param == "hours")


def test_four_quarters_of_a_card_for_an_hour_cost_one_card_hour(engine: Engine, rolled: bool) -> None:
    quarters = [make.decision(n, MONDAY, make.card(memory_mib=4096, cores=10)) for n in range(4)]
    store(engine, *quarters, *(make.end(n) for n in range(4)))
    if rolled:
        roll_up(engine)
    (row,) = usage(engine)
    assert row == UsageRow((), 3600.0, 1440.0, None, 16384.0, 0.0, 4, 2.0)


def test_the_larger_of_memory_and_time_counts(engine: Engine) -> None:
    store(engine, make.decision(1, MONDAY, make.card(memory_mib=4096, cores=50)), make.end())
    (row,) = usage(engine)
    assert (row.share_seconds, row.gpu_seconds_asked) == (1800.0, 1800.0)


def test_a_whole_card_counts_fully(engine: Engine) -> None:
    store(engine, make.decision(1, MONDAY, make.card(memory_mib=16384, whole=True)), make.end())
    (row,) = usage(engine)
    assert (row.share_seconds, row.gpu_seconds_asked) == (3600.0, 3600.0)


@pytest.mark.heavy
def test_every_dimension(engine: Engine, rolled: bool) -> None:
    two_days = make.end(1, MONDAY + 36 * HOUR)
    store(engine, make.decision(1, MONDAY + 12 * HOUR, labels={"team": "vision"}), two_days)
    store(
        engine,
        make.decision(2, MONDAY, make.card("GPU-b"), namespace="other", owner="api"),
        make.end(2, namespace="other"),
    )
    if rolled:
        roll_up(engine)
    by = {
        UsageGroup(Dimension.NAMESPACE): ["team", "other"],
        UsageGroup(Dimension.OWNER): ["Deployment/web", "Deployment/api"],
        UsageGroup(Dimension.LABEL, "team"): ["vision", ""],
        UsageGroup(Dimension.CARD): ["GPU-a", "GPU-b"],
        UsageGroup(Dimension.NODE): ["n1"],
        UsageGroup(Dimension.MODEL): ["L4"],
        UsageGroup(Dimension.DAY): ["2024-10-04", "2024-10-05"],
    }
    assert {group: [row.group[0] for row in usage(engine, group)] for group in by} == by
    both = usage(engine, UsageGroup(Dimension.DAY), UsageGroup(Dimension.NAMESPACE))
    hours = {row.group: row.share_seconds / 900 for row in both}
    assert hours == {("2024-10-04", "team"): 12, ("2024-10-05", "team"): 12, ("2024-10-04", "other"): 1}


@pytest.mark.heavy
def test_filters(engine: Engine) -> None:
    store(engine, make.decision(1, labels={"team": "a"}), make.end(1))
    store(engine, make.decision(2, MONDAY, make.card("GPU-b"), namespace="other"), make.end(2, namespace="other"))
    for filters in (
        UsageFilters(namespaces=frozenset({Namespace("team")})),
        UsageFilters(cards=frozenset({CardUuid("GPU-a")})),
        UsageFilters(labels={"team": "a"}),
    ):
        assert [row.group for row in usage(engine, *NAMESPACE, filters=filters)] == [("team",)]
    assert usage(engine, filters=UsageFilters(namespaces=frozenset())) == []
    assert len(usage(engine, *NAMESPACE, filters=UsageFilters(nodes=frozenset({N1}), owner="Deployment/web"))) == 2


def test_only_the_part_inside_the_period_counts(engine: Engine, rolled: bool) -> None:
    store(engine, make.decision(1, MONDAY), make.end(1, MONDAY + 10 * HOUR))
    if rolled:
        roll_up(engine)
    (row,) = usage(engine, since=MONDAY + HOUR // 2, until=MONDAY + 3 * HOUR + HOUR // 4)
    assert row.share_seconds == 2.75 * 900
    assert row.bound == 0


def test_what_still_runs_counts_until_now(engine: Engine, rolled: bool) -> None:
    store(engine, make.decision(1, NOW - 5 * HOUR))
    if rolled:
        roll_up(engine)
    (row,) = usage(engine, until=NOW + 10 * HOUR)
    assert row.share_seconds == 5 * 900


def test_an_end_that_nobody_saw_counts_from_its_earliest_time(engine: Engine) -> None:
    store(engine, make.decision(), make.end(1, MONDAY + 4 * HOUR, after_ms=MONDAY + HOUR))
    assert usage(engine)[0].share_seconds == 900
    store(engine, make.end(1, MONDAY + 2 * HOUR))  # another replica saw it
    assert usage(engine)[0].share_seconds == 1800


def test_a_resize_changes_the_share_from_then_on(engine: Engine) -> None:
    share = make.decision().containers[0]
    resize = Resize(make.pod(), N1, MONDAY + HOUR, share, make.card(memory_mib=8192))
    store(engine, make.decision(), make.end(1, MONDAY + 2 * HOUR), resize)
    (row,) = usage(engine)
    assert (row.share_seconds, row.bound) == (900 + 1800, 1)


def test_waiting_time_counts_each_pod_once(engine: Engine, rolled: bool) -> None:
    cards = (make.card("GPU-a"), make.card("GPU-b"))
    store(engine, make.decision(1, MONDAY, *cards, waited_ms=5000), make.end())
    if rolled:
        roll_up(engine)
    (row,) = usage(engine)
    assert (row.waiting_seconds, row.bound) == (5.0, 1)


def test_measured_time(engine: Engine, rolled: bool) -> None:
    """Measured time arrives before the decision does, from another replica."""
    used = Used(UID_1, N1, ContainerName("main"), CardUuid("GPU-a"), MONDAY, MONDAY + 2 * HOUR, 600_000)
    store(engine, used)
    store(engine, make.decision(), make.end(), used)
    if rolled:
        roll_up(engine)
    assert usage(engine)[0].gpu_seconds_used == 600.0
    assert usage(engine, until=MONDAY + HOUR)[0].gpu_seconds_used == 300.0


def test_the_time_of_a_synthetic_load_is_no_use_and_its_share_costs(engine: Engine, rolled: bool) -> None:
    load = make.decision(1, MONDAY, make.card(memory_mib=4096, cores=50), labels={names.SYNTHETIC: "true"})
    store(
        engine,
        load,
        make.end(),
        Used(UID_1, N1, ContainerName("main"), CardUuid("GPU-a"), MONDAY, MONDAY + HOUR, 300_000, 10, (60,)),
    )
    if rolled:
        roll_up(engine)
    (row,) = usage(engine)
    assert (row.share_seconds, row.gpu_seconds_used, row.cost) == (1800.0, 0.0, 1.0)


def test_a_model_without_a_price_has_no_cost(engine: Engine) -> None:
    store(engine, make.decision(), make.end())
    rows = SqlReports(engine, Prices(), lambda: NOW).usage([], MONDAY, NOW)
    assert rows[0].cost is None


def test_a_late_event_has_its_hours_rolled_up_again(engine: Engine) -> None:
    store(engine, make.decision())
    roll_up(engine)
    assert usage(engine)[0].share_seconds == 900 * 60
    store(engine, make.end())
    assert usage(engine)[0].share_seconds == 900
    roll_up(engine)
    assert usage(engine)[0].share_seconds == 900


def test_what_bind_knows_replaces_what_a_watch_showed(engine: Engine) -> None:
    store(engine, make.decision(1, MONDAY + 1000, source=DecisionSource.WATCH))
    store(engine, make.decision(1, MONDAY, waited_ms=3000), make.end())
    store(engine, make.decision(1, MONDAY + 1000, source=DecisionSource.WATCH))
    (row,) = usage(engine)
    assert (row.share_seconds, row.waiting_seconds, row.bound) == (900.0, 3.0, 1)


RECORDS: list[Record] = [
    make.decision(1, MONDAY + 500, source=DecisionSource.WATCH),
    make.decision(1, MONDAY, waited_ms=1000),
    make.end(1, MONDAY + 5 * HOUR, after_ms=MONDAY + HOUR),
    make.end(1, MONDAY + 3 * HOUR),
    make.decision(2, MONDAY + HOUR, make.card("GPU-a"), make.card("GPU-b", whole=True), namespace="other"),
    Resize(make.pod(1), N1, MONDAY + HOUR, make.decision().containers[0], make.card(memory_mib=8192)),
    Used(UID_1, N1, ContainerName("main"), CardUuid("GPU-a"), MONDAY, MONDAY + HOUR // 2, 400, 100, (30,)),
    Used(UID_1, N1, ContainerName("main"), CardUuid("GPU-a"), MONDAY, MONDAY + HOUR, 1000, 200, (59, 1)),
    make.end(2, MONDAY + 2 * HOUR, namespace="other"),
]


@pytest.mark.slow
@settings(max_examples=30, deadline=None)
@given(
    order=st.permutations(RECORDS),
    twice=st.lists(st.sampled_from(RECORDS), max_size=4),
    rolls=st.sets(st.integers(0, 11)),
)
def test_order_repetition_and_roll_ups_change_nothing(
    empty: Path, order: list[Record], twice: list[Record], rolls: set[int]
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder) / "history.db"
        shutil.copy(empty, copy)
        engine = database.engine(database.sqlite_url(copy))
        take_all(engine, order, twice, rolls)
        engine.dispose()


def take_all(engine: Engine, order: list[Record], twice: list[Record], rolls: set[int]) -> None:
    for number, record in enumerate([*order, *twice]):
        store(engine, record)
        if number in rolls:
            roll_up(engine)
    by = [UsageGroup(Dimension.NAMESPACE), UsageGroup(Dimension.CARD)]
    found = {
        row.group: (row.share_seconds, row.gpu_seconds_used, row.waiting_seconds, row.bound)
        for row in usage(engine, *by)
    }
    assert found == {
        ("team", "GPU-a"): (900.0 + 2 * 1800.0, 1.0, 1.0, 1),
        ("other", "GPU-a"): (900.0, None, 0.0, 1),
        ("other", "GPU-b"): (3600.0, None, 0.0, 0),
    }


@pytest.mark.heavy
def test_the_text_of_a_report_depends_on_neither_time_nor_data(engine: Engine) -> None:
    """SQLAlchemy keeps hundreds of texts with what it made of them, about 200 KB each."""
    texts: set[str] = set()
    event.listen(engine, "before_cursor_execute", lambda *args: texts.add(args[2]))
    counts = []
    for step in range(36):
        now = MONDAY + step * (HOUR * 7 // 4) + step * 1001
        store(engine, make.decision(step, now - 1000), make.end(max(step - 2, 0), now))
        while rollup.roll_up(engine, now):
            pass
        reports = SqlReports(engine, PRICES, partial(int, now))
        for since in (MONDAY, now - 5_000, now - 3 * HOUR, now - 40 * HOUR):
            reports.usage(NAMESPACE, since, now)
            reports.usage([UsageGroup(Dimension.DAY)], since, now)
        counts.append(len(texts))
    assert counts[-1] == counts[len(counts) // 2]
