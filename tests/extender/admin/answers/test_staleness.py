"""Every answer that shows data says since when it is old, and `/summary` names every alarm."""

from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from extender.admin.exchange.part_alarms import PartAlarm, PartHealth
from extender.history.recording.events import Watched
from extender.history.reporting.prices import Prices
from extender.history.reporting.sql_reports import SqlReports
from extender.history.storage import database, ingest
from extender.state.fields import api_times
from tests.extender.admin.conftest import Admin, CopiedSnapshots, Opened, shown
from tests.extender.admin.routes.test_history import Asked
from tests.extender.conftest import gpu_node
from vgpu.domain import names
from vgpu.domain.identifiers import NodeName

SINCE_MS = 1_795_000_000_000
SINCE = "2026-11-18T11:06:40+00:00"
MANIFEST = {"spec": {"containers": [{"name": "main", "resources": {"limits": {"vgpu.io/gpu-mem": 256}}}]}}


async def answers(admin: Admin) -> dict[str, Any]:
    """Return the answer of every route that shows data of the cluster."""
    pod = (await admin.world.create_pod(gpu_mem=256))["metadata"]["name"]
    await admin.fresh()
    paths = (
        "/nodes", "/nodes/n1", "/gpus", "/gpus/GPU-n1-0", "/pods", f"/pods/default/{pod}", "/pending", "/summary",
        "/versions",
    )  # fmt: skip
    found = {path: await admin.get(path) for path in (*paths, f"/pods/default/{pod}/explain")}
    return found | {"/simulate": await admin.post("/simulate", {"pods": [{"pod": MANIFEST}]})}


@pytest.mark.heavy
async def test_every_route_says_since_when_the_extender_hears_nothing(opened: Opened, admin: Admin) -> None:
    assert {answer["staleSince"] for answer in (await answers(admin)).values()} == {""}
    alarm = PartAlarm("error", "extender", "WatchSilent", "the API server has sent nothing", SINCE_MS)
    health = PartHealth((alarm,), SINCE_MS)
    source = CopiedSnapshots(replace(shown(admin.world), health=lambda: health))
    async with opened(source=source) as stale:
        found = await answers(stale)
        assert {path: answer["staleSince"] for path, answer in found.items()} == dict.fromkeys(found, SINCE)
        assert found["/summary"]["findings"][0] == {
            "severity": "error", "about": "extender", "reason": "WatchSilent",
            "detail": "the API server has sent nothing", "since": SINCE,
        }  # fmt: skip


async def test_every_route_of_data_is_looked_at(admin: Admin) -> None:
    """A new route that answers with data must say how old they are: its schema has the field, or is named here."""
    document = await admin.get("/openapi.json")
    silent = {
        path
        for path, verbs in document["paths"].items()
        for verb in verbs.values()
        if "staleSince" not in str(_schema(verb, document))
    }
    assert silent == {"/api/v1/events"}  # a stream of changes; its client reads the lists again at each heartbeat


def _schema(verb: dict[str, Any], document: dict[str, Any]) -> Any:
    content = verb["responses"]["200"].get("content", {}).get("application/json", {}).get("schema", {})
    name = content.get("$ref", "").rpartition("/")[2]
    return document["components"]["schemas"].get(name, {}).get("properties", {})


async def test_figures_of_a_silent_node_say_of_when_they_are(admin: Admin) -> None:
    pod = await admin.world.create_pod(gpu_mem=256)
    assert await admin.world.bind(pod) == ""
    await admin.world.until_bound_is_watched(pod)
    before = (await admin.get("/gpus"))["items"]
    assert {row["staleSince"] for row in before} == {""}
    renewed = admin.world.cluster.leases.get(names.node_lease(NodeName("n1")))
    assert renewed is not None
    admin.world.clock.seconds += 10
    for path in ("/nodes", "/gpus", "/pods"):
        rows = (await admin.get(path))["items"]
        since = {
            row["staleSince"] for row in rows if "n1" in (row.get("node"), row["name"] if path == "/nodes" else "")
        }
        assert since == {renewed.renewed}
    assert {row["nodeReason"] for row in (await admin.get("/gpus"))["items"]} == {"PluginAway"}
    finding = next(row for row in (await admin.get("/summary"))["findings"] if row["about"] == "n1")
    assert (finding["reason"], finding["since"]) == ("PluginAway", renewed.renewed)


@pytest.mark.parametrize("path", ["/usage", "/rightsize", "/history"])
async def test_the_history_says_until_when_it_is_stored(opened: Opened, path: str) -> None:
    reports = Asked()
    now = datetime(2026, 11, 22, 12, tzinfo=UTC)
    async with opened(reports=reports) as admin:
        period: dict[str, Any] = {"since": "2026-11-15T00:00:00Z", "until": now.isoformat()}
        for stored_ms, expected in (
            (SINCE_MS, SINCE),
            (int(now.timestamp() * 1000) - 30_000, ""),
            (0, "2026-11-15T00"),
        ):
            reports.stored_ms = stored_ms
            assert (await admin.get(path, **period))["staleSince"].startswith(expected)
        reports.stored_ms = SINCE_MS
        past: dict[str, Any] = {"since": "2026-11-15T00:00:00Z", "until": "2026-11-16T00:00:00Z"}
        assert (await admin.get(path, **past))["staleSince"] == ""


async def test_the_time_until_which_a_database_is_stored(tmp_path: Any) -> None:
    engine = database.engine(database.sqlite_url(tmp_path / "history.db"))
    database.migrate(engine)
    assert SqlReports(engine, Prices(), lambda: SINCE_MS).stored_until_ms() == 0
    engine.dispose()


async def test_doctor_names_pods_that_never_fit_and_cards_that_are_gone(admin: Admin) -> None:
    never = await admin.world.create_pod(gpu_mem=4096)
    await admin.world.filter(never)
    full = await admin.world.create_pod(gpu_mem=2048)
    assert await admin.world.bind(full) == ""
    await admin.world.until_bound_is_watched(full)
    other = gpu_node("n1")["status"]["cards"]
    other[0]["uuid"] = "GPU-new"
    await admin.world.client.patch(f"{names.GPUNODES_PATH}/n1/status", {"status": {"cards": other}})
    await admin.world.until(
        lambda: admin.world.cluster.objects.gpunodes[NodeName("n1")].node.cards[0].uuid == "GPU-new"
    )
    await admin.fresh()
    found = {finding["about"]: finding for finding in (await admin.get("/summary"))["findings"]}
    name = never["metadata"]["name"]
    assert found[f"pod default/{name}"]["reason"] == "NeverFits"
    assert "CardTooSmall" in found[f"pod default/{name}"]["detail"]
    gone = found[f"pod default/{full['metadata']['name']}"]
    assert (gone["reason"], "GPU-n1-0" in gone["detail"]) == ("CardGone", True)


async def test_a_pod_that_waits_for_others_to_end_is_no_finding(admin: Admin) -> None:
    for _ in range(6):
        pod = await admin.world.create_pod(gpu_mem=2048)
        node = (await admin.world.filter(pod))["NodeNames"][0]
        assert await admin.world.bind(pod, node) == ""
        await admin.world.until_bound_is_watched(pod)
    waits = await admin.world.create_pod(gpu_mem=2048)
    assert (await admin.world.filter(waits))["NodeNames"] == []
    await admin.fresh()
    assert (await admin.get("/summary"))["findings"] == []


async def test_doctor_shows_what_a_device_plugin_says_of_its_node(admin: Admin) -> None:
    def condition(kind: str, status: str, reason: str) -> dict[str, str]:
        return {
            "type": kind, "status": status, "reason": reason, "message": f"about {kind}", "lastTransitionTime": SINCE,
        }  # fmt: skip

    conditions = [
        condition("LimitsEnforced", "False", "LimiterNotLoaded"),
        condition("NoUninvitedProcesses", "Unknown", "CannotSee"),
        condition("ArbiterRuns", "True", "Running"),
        condition("NoConflicts", "False", "DuplicateUUID"),  # the extender derives this by itself
        {"type": 5},
    ]
    await admin.world.client.patch(f"{names.GPUNODES_PATH}/n1/status", {"status": {"conditions": conditions}})
    await admin.world.until(lambda: admin.world.cluster.objects.gpunodes[NodeName("n1")].problems)
    await admin.fresh()
    found = [
        (row["severity"], row["about"], row["reason"], row["detail"], row["since"])
        for row in (await admin.get("/summary"))["findings"]
    ]
    assert found == [
        ("error", "n1", "LimiterNotLoaded", "about LimitsEnforced", SINCE),
        ("warning", "n1", "CannotSee", "about NoUninvitedProcesses", SINCE),
    ]


@pytest.mark.heavy
@pytest.mark.parametrize(
    "path", ["/usage", "/rightsize", "/history", "/gpus/GPU-n1-0/series", "/pods/default/p/series"]
)
async def test_a_history_that_begins_in_the_period_says_when(opened: Opened, path: str, tmp_path: Path) -> None:
    engine = database.engine(database.sqlite_url(tmp_path / "history.db"))
    database.migrate(engine)
    day_ms = 86_400_000
    now_ms = int(datetime.now(UTC).timestamp() * 1000)
    with database.writing(engine) as connection:
        ingest.ingest(connection, [Watched("a", now_ms - 3 * day_ms)])
        ingest.ingest(connection, [Watched("a", now_ms), Watched("b", now_ms)])
    async with opened(reports=SqlReports(engine, Prices(), lambda: now_ms)) as admin:
        assert (await admin.get(path, since="7d"))["storedSince"] == api_times.text(now_ms - 3 * day_ms)
        assert (await admin.get(path, since="2d"))["storedSince"] == ""
