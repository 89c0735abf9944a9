"""What containers used beside what they asked for, on SQLite and on PostgreSQL."""

from sqlalchemy import Engine

from extender.history.recording.events import Record, Used
from extender.history.reporting.prices import Prices
from extender.history.reporting.reports import RightSizeRow, UsageFilters
from extender.history.reporting.sql_reports import SqlReports
from extender.history.storage import database, ingest
from tests.extender.history import make
from tests.extender.history.make import HOUR, MONDAY
from vgpu.domain import names
from vgpu.domain.identifiers import CardUuid, ContainerName, Namespace, NodeName, PodUid

NOW = MONDAY + 48 * HOUR


def store(engine: Engine, *records: Record) -> None:
    with database.writing(engine) as connection:
        ingest.ingest(connection, records)


def rows(engine: Engine, filters: UsageFilters | None = None, pod: str = "") -> list[RightSizeRow]:
    found = SqlReports(engine, Prices(), lambda: NOW).right_sizes(MONDAY, NOW, filters or UsageFilters(), pod)
    assert found.is_complete
    return list(found.rows)


def used(number: int, hour: int, percent: int, *, peak: int = 1000, node: str = "n1", gpu: str = "GPU-a") -> Used:
    """An hour in which each minute had a percentage of the card's time."""
    begin = MONDAY + hour * HOUR
    levels = (*[0] * (percent // 5), 60)
    return Used(
        PodUid(f"uid-{number}"),
        NodeName(node),
        ContainerName("main"),
        CardUuid(gpu),
        begin,
        begin + HOUR,
        percent * HOUR // 100,
        peak,
        levels,
    )


def decided(number: int, cores: int = 60, namespace: str = "team", owner: str = "web") -> Record:
    return make.decision(number, MONDAY, make.card(memory_mib=4096, cores=cores), namespace=namespace, owner=owner)


def test_the_pods_of_a_workload_are_added_up(engine: Engine) -> None:
    store(engine, decided(1), decided(2), used(1, 0, 20), used(2, 1, 10, peak=1500), used(1, 0, 20))
    (row,) = rows(engine)
    assert (row.namespace, row.owner, row.container, row.pods) == ("team", "Deployment/web", "main", 2)
    assert (row.measured_s, row.found.mean_cores, row.found.peak_mib) == (7200, 15, 1500)
    assert (row.asked.cores, row.asked.memory_mib) == (60, 4096)
    assert (row.found.p95_cores, row.found.cores, row.found.memory_mib) == (24.5, 30, 1792)


def test_a_period_that_has_grown_counts_once(engine: Engine) -> None:
    begin = MONDAY
    half = Used(
        PodUid("uid-1"),
        NodeName("n1"),
        ContainerName("main"),
        CardUuid("GPU-a"),
        begin,
        begin + HOUR // 2,
        1000,
        10,
        (30,),
    )
    store(engine, decided(1), half, used(1, 0, 20), half)
    (row,) = rows(engine)
    assert (row.measured_s, row.found.mean_cores) == (3600, 20)


def test_what_a_pod_asks_for_now_counts(engine: Engine) -> None:
    store(engine, decided(1, cores=60), decided(2, cores=30), used(2, 1, 20), used(1, 0, 20))
    assert [row.asked.cores for row in rows(engine)] == [30]


def test_a_report_of_another_node_or_card_counts_nothing(engine: Engine) -> None:
    store(engine, decided(1), used(1, 0, 20, node="n2"), used(1, 1, 20, gpu="GPU-b"), used(9, 0, 20))
    assert rows(engine) == []


def test_filters(engine: Engine) -> None:
    store(engine, decided(1), decided(2, namespace="other", owner="api"), used(1, 0, 20), used(2, 0, 20))
    assert [row.owner for row in rows(engine, UsageFilters(namespaces=frozenset({Namespace("other")})))] == [
        "Deployment/api"
    ]
    assert [row.owner for row in rows(engine, UsageFilters(owner="Deployment/web"))] == ["Deployment/web"]
    assert [row.owner for row in rows(engine, pod="p1")] == ["Deployment/web"]
    assert rows(engine, pod="none") == []


def test_synthetic_loads_are_left_out(engine: Engine) -> None:
    share = make.card(memory_mib=4096, cores=60)
    load = make.decision(2, MONDAY, share, owner="load", labels={names.SYNTHETIC: "true"})
    store(engine, decided(1), load, used(1, 0, 20), used(2, 0, 50))
    (row,) = rows(engine)
    assert (row.owner, row.unused_s) == ("Deployment/web", 1440)
