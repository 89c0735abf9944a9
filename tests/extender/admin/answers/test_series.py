"""Series of cards and pods over HTTP, and the rights that a caller needs for them."""

from pathlib import Path
from typing import Any

import pytest

from extender.history.recording.events import CardMeasured, Used
from extender.history.reporting.prices import Prices
from extender.history.reporting.sql_reports import SqlReports
from extender.history.storage import database, ingest
from tests.extender.admin.conftest import Admin, Opened
from tests.extender.admin.security.test_access import Reviewer, bearer, reviewer
from tests.extender.history import make
from vgpu.domain.identifiers import CardUuid, ContainerName, NodeName, PodUid

__all__ = ["reviewer"]  # a fixture
MINUTE = 60_000


@pytest.fixture
def reports(tmp_path: Path) -> SqlReports:
    """Ten minutes of a card with a container of the namespace default and one of the namespace other."""
    engine = database.engine(database.sqlite_url(tmp_path / "history.db"))
    database.migrate(engine)
    node, gpu, now_ms = NodeName("n1"), CardUuid("GPU-n1-0"), make.MONDAY + 10 * MINUTE
    records: list[Any] = [make.decision(1, namespace="default"), make.decision(2, namespace="other")]
    for until in range(make.MONDAY + MINUTE, now_ms + 1, MINUTE):
        lasted = until - make.MONDAY
        records.append(CardMeasured(node, gpu, make.MONDAY, until, lasted // 2, 4096, 61, 250))
        for uid in ("uid-1", "uid-2"):
            waits = (lasted // 10, 0, 0, 0)
            records.append(
                Used(PodUid(uid), node, ContainerName("main"), gpu, make.MONDAY, until, lasted // 4, 0, (), 2048, waits)
            )
    with database.writing(engine) as connection:
        ingest.ingest(connection, records)
    return SqlReports(engine, Prices(), lambda: now_ms)


PERIOD: dict[str, Any] = {"since": "2024-10-04T00:00:00Z", "until": "2024-10-04T01:00:00Z"}


async def test_a_card_and_its_containers(opened: Opened, reports: SqlReports) -> None:
    async with opened(reports=reports) as admin:
        found = await admin.get("/gpus/GPU-n1-0/series", **PERIOD)
    card = found["card"]
    assert (card["usedCores"], card["usedMiB"], card["celsius"], card["watts"]) == (
        [50.0] * 3, [4096] * 3, [61] * 3, [250] * 3,
    )  # fmt: skip
    assert card["fromMs"][1:] == card["untilMs"][:-1]
    assert [(series["namespace"], series["pod"]) for series in found["containers"]] == [
        ("default", "p1"),
        ("other", "p2"),
    ]
    series = found["containers"][0]
    assert (series["usedCores"], series["usedMiB"]) == ([25.0] * 3, [2048] * 3)
    assert series["waitMs"]["turn"] == [24_000, 30_000, 6_000]


async def test_a_pod(opened: Opened, reports: SqlReports) -> None:
    async with opened(reports=reports) as admin:
        found = await admin.get("/pods/default/p1/series", **PERIOD)
        assert [series["uuid"] for series in found["containers"]] == ["GPU-n1-0"]
        assert (await admin.get("/pods/default/none/series", **PERIOD))["containers"] == []


@pytest.mark.heavy
async def test_a_tenant_sees_its_own_containers_only(opened: Opened, reports: SqlReports, reviewer: Reviewer) -> None:
    async with opened(reports=reports, client=reviewer, has_reviews=True) as admin:
        await admin.world.create_pod(gpu_mem=256)
        await admin.fresh()
        assert (await admin.http.get("/api/v1/gpus/GPU-n1-0/series", headers=bearer("bob"))).status_code == 403
        reviewer.rights.add(("ann", "list", "gpunodes", ""))

        async def asked(path: str, token: str) -> Any:
            return await admin.http.get(f"/api/v1{path}", params=PERIOD, headers=bearer(token))

        for token, pods in (("admin", ["p1", "p2"]), ("ann", ["p1"])):
            found = (await asked("/gpus/GPU-n1-0/series", token)).json()
            assert [series["pod"] for series in found["containers"]] == pods
        assert (await asked("/gpus/GPU-n1-0/series", "nobody")).status_code in (401, 403)
        assert (await asked("/pods/other/p2/series", "ann")).status_code == 403
        assert (await asked("/pods/default/p1/series", "ann")).status_code == 200


async def test_what_is_refused(admin: Admin, opened: Opened, reports: SqlReports) -> None:
    assert "keeps no history" in (await admin.get("/gpus/GPU-n1-0/series", 503))["detail"]
    async with opened(reports=reports) as with_history:
        assert "GPU-none" in (await with_history.get("/gpus/GPU-none/series", 404))["detail"]
        assert "31 days" in (await with_history.get("/pods/default/p1/series", 422, since="32d"))["detail"]
