"""Usage and events of the history, for those who may see them."""

import re
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from extender.admin.answers import periods
from extender.admin.problems import AdminProblem
from extender.admin.routes import history_routes
from extender.history.reporting.prices import Prices
from extender.history.reporting.reports import (
    Dimension,
    EntryPage,
    HistoryFilters,
    RightSizeRow,
    RightSizes,
    UsageFilters,
    UsageRow,
)
from extender.history.reporting.sql_reports import SqlReports
from extender.history.storage import database
from tests.extender.admin.conftest import Admin, Opened
from tests.extender.admin.security.test_access import Reviewer, bearer, reviewer
from vgpu.domain.asks import right_size
from vgpu.domain.errors import HistoryUnavailable
from vgpu.domain.identifiers import ContainerName, Namespace

__all__ = ["reviewer"]  # a fixture
NOW = datetime(2026, 11, 22, 12, tzinfo=UTC)


WANTED = right_size.AskedShare(16384, 60)


class Asked:
    """Reports that remember what was asked."""

    def __init__(self) -> None:
        self.filters: list[Any] = []
        self.periods: list[tuple[int, int]] = []
        self.is_down = False
        self.failures = 0  # that come before the next answer
        self.stored_ms = 1 << 50

    def stored_until_ms(self) -> int:
        return self.stored_ms

    began_ms = 0

    def stored_since_ms(self) -> int:
        return self.began_ms

    currency = "EUR"

    def usage(self, by: Any, since_ms: int, until_ms: int, filters: UsageFilters = UsageFilters()) -> list[UsageRow]:  # noqa: B008
        if self.is_down or self.failures:
            self.failures -= not self.is_down
            raise HistoryUnavailable("down")
        self.filters.append(filters)
        self.periods.append((since_ms, until_ms))
        return [
            UsageRow(tuple(str(group.label or group.dimension) for group in by), 3600.0, 1.0, None, 2.0, 3.0, 4, None)
        ] * 3

    def right_sizes(
        self,
        since_ms: int,
        until_ms: int,
        filters: UsageFilters = UsageFilters(),  # noqa: B008
        pod: str = "",  # noqa: ARG002
    ) -> RightSizes:
        self.filters.append(filters)
        self.periods.append((since_ms, until_ms))
        used = right_size.right_size(WANTED, [0, 0, 0, 0, 60], 13_000, 60_000, 5120)
        return RightSizes(
            (RightSizeRow(Namespace("default"), "Deployment/train", ContainerName("main"), 2, 3600.0, WANTED, used),)
            * 3
        )

    def history(self, filters: HistoryFilters = HistoryFilters(), cursor: str = "", limit: int = 100) -> EntryPage:  # noqa: ARG002, B008
        self.filters.append(filters)
        return EntryPage((), "")


class Worst(Asked):
    """Workloads that asked for 60, 90 and no percent of a card for an hour, and used some of it."""

    def right_sizes(self, *_: Any) -> RightSizes:
        found = []
        for owner, cores, used_s in (("a", 60, 660), ("b", 90, 180), ("c", None, 1800)):
            asked = right_size.AskedShare(1024, cores)
            used = right_size.right_size(asked, [], used_s * 1000, 3_600_000, 5120)
            found.append(RightSizeRow(Namespace("default"), owner, ContainerName("main"), 1, 3600.0, asked, used))
        return RightSizes(tuple(found))


async def test_usage_by_groups_of_a_period(opened: Opened) -> None:
    reports = Asked()
    async with opened(reports=reports) as admin:
        found = await admin.get("/usage", by=["owner", "label:team", "day"], since="7d", label="a=b", limit=2)
        assert found["items"][0]["group"] == {"owner": "owner", "label:team": "team", "day": "day"}
        assert (len(found["items"]), found["itemsLeftOut"]) == (2, 1)
        assert reports.filters[0].labels == {"a": "b"}
        since, until = reports.periods[0]
        assert until - since == 7 * 86400 * 1000
        for query, field in (
            ({"by": "size"}, "by"),
            ({"since": "soon"}, "since"),
            ({"label": "x"}, "label"),
            ({"until": "9d"}, "since"),
        ):
            assert (await admin.get("/usage", 422, **query))["errors"][0]["field"] == field


async def test_a_database_that_does_not_answer_is_asked_again_for_a_while(
    opened: Opened, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(history_routes, "WAIT_S", 0.3)
    monkeypatch.setattr(history_routes, "RETRY_S", 0.01)
    reports = Asked()
    async with opened(reports=reports) as admin:
        reports.failures = 3  # its tables are being made
        await admin.get("/usage")
        reports.is_down = True
        assert "does not answer" in (await admin.get("/usage", 503))["detail"]


async def test_a_tenant_gets_usage_and_events_of_its_namespaces_only(opened: Opened, reviewer: Reviewer) -> None:
    reports = Asked()
    async with opened(reports=reports, client=reviewer, has_reviews=True) as admin:
        await admin.world.create_pod(gpu_mem=256)
        await admin.fresh()
        for token, expected in (("ann", {"default"}), ("bob", set()), ("admin", None)):
            for path in ("/usage", "/rightsize", "/history"):
                assert (await admin.http.get(f"/api/v1{path}", headers=bearer(token))).status_code == 200
                assert reports.filters[-1].namespaces == expected
        refused = await admin.http.get("/api/v1/usage?namespace=other", headers=bearer("ann"))
        assert refused.status_code == 403


async def test_what_containers_should_ask_for(opened: Opened) -> None:
    async with opened(reports=Asked()) as admin:
        found = await admin.get("/rightsize", since="7d", limit=2)
        assert (len(found["items"]), found["itemsLeftOut"], found["complete"]) == (2, 1, True)
        row = found["items"][0]
        assert (row["askedCores"], row["p95Cores"], row["adviceCores"]) == (60, 24.8, 30)
        assert row["advice"] == [
            "ask for less time: vgpu.io/gpu-cores: 30 (asked 60 %, used 25 % at p95)",
            "ask for less memory: vgpu.io/gpu-mem: 5888 (asked 16384, peak 5120)",
        ]


async def test_the_worst_come_first_and_only_those_that_leave_time_unused(opened: Opened) -> None:
    async with opened(reports=Worst()) as admin:
        assert [item["owner"] for item in (await admin.get("/rightsize"))["items"]] == ["a", "b", "c"]
        found = await admin.get("/rightsize", worst="true")
        assert [(item["owner"], item["unusedGpuSeconds"]) for item in found["items"]] == [("b", 3060.0), ("a", 1500.0)]


class Several(Asked):
    """Usage of three namespaces, of which one has a price."""

    def usage(self, *_: Any) -> list[UsageRow]:
        return [
            UsageRow((name,), seconds, 1.0, None, 2.0, 3.0, 4, cost)
            for name, seconds, cost in (("a", 3600.0, None), ("b", 1800.5, 1.5), ("c", 60.0, 4.5))
        ]


@pytest.mark.heavy
@pytest.mark.parametrize(
    ("query", "names"),
    [
        ({}, ["a", "b", "c"]),
        ({"sort": "shareSeconds"}, ["c", "b", "a"]),
        ({"sort": "-cost"}, ["c", "b", "a"]),  # a cost that is not known is the smallest
        ({"sort": "-cost", "minShareSeconds": 1800}, ["b", "a"]),
    ],
)
async def test_usage_is_ordered_and_filtered_by_its_fields(
    opened: Opened, query: dict[str, Any], names: list[str]
) -> None:
    async with opened(reports=Several()) as admin:
        found = await admin.get("/usage", fields="group,cost", limit=2, **query)
        assert [item["group"]["namespace"] for item in found["items"]] == names[:2]
        assert set(found["items"][0]) == {"group", "cost"}
        assert found["itemsLeftOut"] == len(names[2:])


async def test_right_sizes_are_ordered_and_filtered_by_their_fields(opened: Opened) -> None:
    async with opened(reports=Worst()) as admin:
        found = await admin.get("/rightsize", fields="owner", sort="-owner", minUnusedGpuSeconds=1)
        assert found["items"] == [{"owner": "b"}, {"owner": "a"}]
        assert (await admin.get("/rightsize", container="other"))["items"] == []
        unknown = await admin.get("/rightsize", 422, sort="advice")
        assert unknown["errors"][0]["field"] == "sort"


@pytest.mark.heavy
@pytest.mark.parametrize(("path", "schema"), [("usage", "UsageItemSchema"), ("rightsize", "RightSizeItemSchema")])
async def test_rows_of_reports_have_the_fields_of_the_document(opened: Opened, path: str, schema: str) -> None:
    async with opened(reports=Asked()) as admin:
        row = (await admin.get(f"/{path}"))["items"][0]
        document = await admin.get("/openapi.json")
        assert set(row) == set(document["components"]["schemas"][schema]["properties"])


async def test_without_a_history_it_is_said_how_to_keep_one(admin: Admin) -> None:
    assert "--history-dir" in (await admin.get("/history", 503))["detail"]


async def test_the_database_answers(opened: Opened, tmp_path: Path) -> None:
    engine = database.engine(database.sqlite_url(tmp_path / "h.db"))
    database.migrate(engine)
    reports = SqlReports(engine, Prices(), lambda: 0)
    async with opened(reports=reports) as admin:
        assert (await admin.get("/usage", by=[str(dimension) for dimension in Dimension if dimension != "label"][:4]))[
            "items"
        ] == []
        assert (await admin.get("/history"))["items"] == []
        assert (await admin.get("/history", 422, cursor="x"))["errors"][0]["field"] == "cursor"
    engine.dispose()


def test_periods() -> None:
    assert periods.read("36h", "", NOW) == (NOW - timedelta(hours=36), NOW)
    assert periods.read("2026-11-01", "2d", NOW) == (datetime(2026, 11, 1, tzinfo=UTC), NOW - timedelta(days=2))
    for since, until in (("1d", "2d"), ("99999w", ""), ("0001-01-01T00:00:00Z", ""), ("-1d", ""), ("1d", "9999-12-31")):
        with pytest.raises(AdminProblem):
            periods.read(since, until, NOW)


@pytest.mark.parametrize(
    ("since", "until", "said"),
    [
        ("9999999d", "", "since: must be at most 3660 days ago"),
        ("99999999999999d", "", "since: must be at most 3660 days ago"),
        ("9999999999999999999s", "", f"since: {periods.FORM}"),
        ("3661d", "", "since: must be at most 3660 days ago"),
        ("1999-01-01", "", "since: must be at most 3660 days ago"),
        ("2999-01-01", "", "since: must be before now"),
        ("2027-01-01", "", "since: must be before now"),
        ("2027-01-01", "2028-01-01", "since: must be before now"),
        ("0s", "", "since: must be before now"),
        ("1h", "2h", "since: must be before until"),
        ("1h", "2999-01-01", "until: must be at most 3660 days after now"),
        ("1h", "99999d", "until: must be at most 3660 days ago"),
        ("soon", "", f"since: {periods.FORM}"),
    ],
)  # fmt: skip
def test_a_period_that_is_none_is_refused_with_what_is_wrong(since: str, until: str, said: str) -> None:
    with pytest.raises(AdminProblem, match=f"^{re.escape(said)}$"):
        periods.read(since, until, datetime(2026, 11, 29, tzinfo=UTC))


async def test_usage_names_the_currency_of_its_costs(opened: Opened) -> None:
    async with opened(reports=Asked()) as admin:
        assert (await admin.get("/usage"))["currency"] == "EUR"
