"""The list of events: filters, pages, cursors."""

import pytest
from sqlalchemy import Engine

from extender.history.recording.events import AdminAction, CardChange, CardEvent, Event, EventKind, Refusals, Start
from extender.history.reporting.prices import Prices
from extender.history.reporting.reports import HistoryFilters
from extender.history.reporting.sql_reports import SqlReports
from extender.history.storage import database, ingest
from tests.extender.history import make
from tests.extender.history.make import HOUR, MONDAY
from vgpu.domain.errors import MalformedCursor
from vgpu.domain.identifiers import CardUuid, ContainerName, Namespace, NodeName, PodUid

N1 = NodeName("n1")

EVENTS: list[Event] = [
    Refusals(make.pod(1), MONDAY - 5000, MONDAY - 1000, 3, {"CardInsufficientMemory": 4}),
    make.decision(1, MONDAY),
    Start(make.pod(1), N1, ContainerName("main"), MONDAY + 1000),
    make.decision(2, MONDAY + 2000, make.card("GPU-b"), namespace="other"),
    CardEvent(N1, CardUuid("GPU-b"), 1, "L4", MONDAY + 3000, CardChange.UNHEALTHY, "XID 79", 7),
    AdminAction("request-1", MONDAY + 4000, "admin", "cordon", N1, CardUuid("GPU-b")),
    make.end(1, MONDAY + HOUR),
]


@pytest.fixture
def reports(engine: Engine) -> SqlReports:
    with database.writing(engine) as connection:
        ingest.ingest(connection, EVENTS)
    return SqlReports(engine, Prices(), lambda: 0)


def listed(reports: SqlReports, filters: HistoryFilters) -> list[int]:
    """Return the positions in EVENTS of what is listed, oldest first."""
    return [EVENTS.index(entry.event) for entry in reversed(reports.history(filters).entries)]


@pytest.mark.parametrize(
    ("filters", "expected"),
    [
        (HistoryFilters(), [0, 1, 2, 3, 4, 5, 6]),
        (HistoryFilters(kinds=frozenset({EventKind.DECISION, EventKind.END})), [1, 3, 6]),
        (HistoryFilters(namespaces=frozenset({Namespace("team")})), [0, 1, 2, 6]),
        (HistoryFilters(namespaces=frozenset({Namespace("other"), Namespace("")})), [3, 4, 5]),
        (HistoryFilters(namespaces=frozenset()), []),
        (HistoryFilters(pod="p1"), [0, 1, 2, 6]),
        (HistoryFilters(pod_uid=PodUid("uid-2")), [3]),
        (HistoryFilters(node=N1, kinds=frozenset({EventKind.CARD, EventKind.ADMIN})), [4, 5]),
        (HistoryFilters(gpu=CardUuid("GPU-b")), [3, 4, 5]),
        (HistoryFilters(gpu=CardUuid("GPU-a")), [0, 1, 2, 6]),
        (HistoryFilters(since_ms=MONDAY, until_ms=MONDAY + 2000), [1, 2]),
    ],
)
def test_filters(reports: SqlReports, filters: HistoryFilters, expected: list[int]) -> None:
    assert listed(reports, filters) == expected


def test_pages_continue_where_the_last_one_ended_also_when_events_arrive(reports: SqlReports, engine: Engine) -> None:
    first = reports.history(limit=3)
    with database.writing(engine) as connection:
        ingest.ingest(connection, [Start(make.pod(9), N1, ContainerName("main"), MONDAY + 2 * HOUR)])
    second = reports.history(cursor=first.cursor, limit=3)
    third = reports.history(cursor=second.cursor, limit=3)
    found = [entry.event for page in (first, second, third) for entry in page.entries]
    assert found == EVENTS[::-1]
    assert third.cursor == ""


@pytest.mark.parametrize("cursor", ["x", "1", "1.", ".1", "1.2.3", "-1.2", "1." + "9" * 40, "\u0661.\u0662"])
def test_a_cursor_that_no_page_returned_is_malformed(reports: SqlReports, cursor: str) -> None:
    with pytest.raises(MalformedCursor, match="cursor"):
        reports.history(cursor=cursor)
