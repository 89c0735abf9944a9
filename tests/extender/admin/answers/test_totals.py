"""Every total that the product shows of a cluster, beside its sum by hand.

Six cards of 2,048 MiB (8 slices) on three nodes:

| card | state | pods: MiB, percent |
|---|---|---|
| n1/0 | held whole | whole: 2048, 100 |
| n1/1 | open | a: 512, 30; b: 256, none; pull: 256, none, its image cannot be pulled |
| n2/0 | cordoned | c: 1024, 50 |
| n2/1 | unhealthy | d: 512, 20 |
| n3/0, n3/1 | open | two: 768 and 40 on each |

`big` asks for 2,048 MiB and waits. `a` uses 400 MiB and 25 %, `two` 700 MiB and 15 % of each card.
"""

import csv
import json
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

import extender.web
from extender.history.recording.events import CardMeasured, CardShare, Record, Used
from extender.history.reporting.prices import Prices
from extender.history.reporting.sql_reports import SqlReports
from extender.history.storage import database, ingest
from tests.extender.admin.conftest import Admin, Opened
from tests.extender.conftest import PODS, gpu_node
from tests.extender.history import make
from tests.extender.test_metrics import text as extender_metrics
from tests.vgpu.cli.cluster.conftest import Server, run, server
from vgpu.domain import names
from vgpu.domain.cards import measured_use, summary
from vgpu.domain.cards.measured_use import MeasuredUse
from vgpu.domain.identifiers import CardUuid, ContainerName, NodeName, PodUid

pytestmark = pytest.mark.heavy

__all__ = ["server"]  # a fixture

BOUND: Mapping[str, tuple[str, str, dict[str, Any]]] = {  # by pod: node, cards, request
    "whole": ("n1", "GPU-n1-0", {"gpu": 1}),
    "a": ("n1", "GPU-n1-1", {"gpu_mem": 512, "gpu_cores": 30}),
    "b": ("n1", "GPU-n1-1", {"gpu_mem": 256}),
    "pull": ("n1", "GPU-n1-1", {"gpu_mem": 256}),
    "c": ("n2", "GPU-n2-0", {"gpu_mem": 1024, "gpu_cores": 50}),
    "d": ("n2", "GPU-n2-1", {"gpu_mem": 512, "gpu_cores": 20}),
    "two": ("n3", "GPU-n3-0,GPU-n3-1", {"gpu": 2, "gpu_mem": 1536, "gpu_cores": 80}),
}
USED = {"a": (400, 25), "two": (700, 15)}

SCRIPTS = Path(__file__).parents[2] / "web"
MEMORY = 6 * 2048
ALLOCATED = 2048 + (512 + 256 + 256) + 1024 + 512 + 2 * 768
FREE = (2048 - 1024) + 2 * (2048 - 768)  # of n1/1, n3/0 and n3/1, which take new containers
GUARANTEED = 100 + 30 + 50 + 20 + 2 * 40
FREE_TIME = (100 - 30) + 2 * (100 - 40)
CLOSED = (2048 - 1024) + (2048 - 512)  # free on n2/0 and n2/1, and not to be had


@pytest.fixture
async def cluster(admin: Admin) -> Admin:
    for name, (node, cards, amounts) in BOUND.items():
        metadata = {"name": name, "annotations": {names.USE_GPU_UUID: cards}}
        pod = await admin.world.create_pod(metadata=metadata, **amounts)
        assert await admin.world.bind(pod, node) == ""
        await admin.world.until_bound_is_watched(pod)
        waits = {"waiting": {"reason": "ImagePullBackOff"}}
        state = waits if name == "pull" else {"running": {"startedAt": "2026-01-01T00:00:00Z"}}
        status = {
            "phase": "Pending" if name == "pull" else "Running",
            "containerStatuses": [{"name": "main", "state": state}],
        }
        await admin.world.client.patch(f"{PODS}/{name}/status", {"status": status})
    await admin.world.create_pod(metadata={"name": "big"}, gpu_mem=2048)
    for node in ("n1", "n3"):
        await admin.world.client.patch(f"{names.GPUNODES_PATH}/{node}/status", {"status": {"usage": used(admin, node)}})
    await admin.world.client.patch(
        f"{names.GPUNODES_PATH}/n2", {"spec": {"cards": [{"uuid": "GPU-n2-0", "cordoned": True}]}}
    )
    reported = gpu_node("n2")["status"]["cards"]
    reported[1] |= {"healthy": False, "reason": "XID 79"}
    await admin.world.client.patch(f"{names.GPUNODES_PATH}/n2/status", {"status": {"cards": reported}})
    known = admin.world.cluster
    await admin.world.until(lambda: [c.card.healthy for c in known.states.of(NodeName("n2")).cards] == [True, False])
    await admin.world.until(lambda: known.objects.gpunodes[NodeName("n3")].usage)
    await admin.world.until(lambda: all(pod.lifecycle.runs for pod in known.objects.pods.values() if pod.node))
    await run_device_plugin(admin)
    await admin.fresh()
    return admin


async def run_device_plugin(admin: Admin) -> None:
    """Run a pod that names our domain and asks for no card: it is watched, and part of no total of pods."""
    spec = {"nodeName": "n1", "nodeSelector": {"vgpu.io/enabled": "true"}, "containers": [{"name": "plugin"}]}
    await admin.world.client.post(PODS, {"metadata": {"name": "plugin", "namespace": "default"}, "spec": spec})
    await admin.world.until(lambda: any(pod.name == "plugin" for pod in admin.world.cluster.objects.pods.values()))


def used(admin: Admin, node: str) -> list[dict[str, Any]]:
    now_ms = int(datetime.now(UTC).timestamp() * 1000)
    uids = {pod.name: uid for uid, pod in admin.world.cluster.objects.pods.items()}
    return [
        measured_use.as_json(
            MeasuredUse(
                uids[name],
                ContainerName("main"),
                CardUuid(uuid),
                now_ms - 60_000,
                now_ms,
                0,
                percent=percent,
                used_mib=mib,
            )
        )
        for name, (mib, percent) in USED.items()
        if BOUND[name][0] == node
        for uuid in BOUND[name][1].split(",")
    ]


Total = tuple[str, str, object, object]  # what, where, value, by hand


async def totals(admin: Admin, server: Server, folder: Path) -> Iterator[Total]:
    answers = {path: await admin.get(path) for path in ("/summary", "/nodes", "/gpus", "/pods", "/pending")}
    simulated = await admin.post("/simulate", {"pods": [{"pod": MANIFEST}]})
    server.answers |= {f"GET /api/v1{path}": (200, answer) for path, answer in answers.items()}
    return iter(
        [
            *of_rest(answers),
            ("allocated, in %", "POST /simulate before", simulated["before"]["allocatedPercent"],
             100 - 100 * (0 + 500 + 600 + 600) / 4000),
            ("cards that take new shares", "POST /simulate before", simulated["before"]["gpus"], 4),
            *of_commands(server),
            *of_metrics(admin),
            *of_gpunodes(admin),
            *of_dashboard(answers["/summary"], folder),
        ]
    )  # fmt: skip


MANIFEST = {"spec": {"containers": [{"name": "main", "resources": {"limits": {"vgpu.io/gpu-mem": 256}}}]}}


def of_rest(answers: Mapping[str, Any]) -> Iterator[Total]:
    found, nodes, gpus = answers["/summary"], answers["/nodes"]["items"], answers["/gpus"]["items"]
    for name, by_hand in {
        "memoryMiB": MEMORY, "allocatedMiB": ALLOCATED, "freeMiB": FREE, "allocatedCores": GUARANTEED,
        "freeCores": FREE_TIME,
    }.items():  # fmt: skip
        yield name, "GET /summary", found[name], by_hand
        yield name, "GET /nodes, added up", sum(row[name] for row in nodes), by_hand
        yield name, "GET /gpus, added up", sum(row[name] for row in gpus), by_hand
    for name, by_hand in {"gpus": 6, "healthyGpus": 5, "cordonedGpus": 1}.items():
        yield name, "GET /summary", found[name], by_hand
        yield name, "GET /nodes, added up", sum(row[name] for row in nodes), by_hand
    yield "nodes, usable", "GET /summary", (found["nodes"], found["usableNodes"]), (3, 3)
    yield "pods by status", "GET /summary", {k: v for k, v in found["pods"].items() if v}, {
        "Pending": 1, "Starting": 1, "Running": 6,
    }  # fmt: skip
    yield "pods that wait", "GET /pending, counted", len(answers["/pending"]["items"]), 1
    closed = [entry["reason"] for entry in found["findings"] if entry["reason"] in ("CardCordoned", "CardUnhealthy")]
    yield "findings on cards", "GET /summary", sorted(closed), ["CardCordoned", "CardUnhealthy"]
    yield "pods", "GET /nodes, added up", sum(row["pods"] for row in nodes), 7
    yield "podCount", "GET /gpus, added up", sum(row["podCount"] for row in gpus), 8  # `two` is on two
    yield "shares", "GET /gpus, added up", sum(row["shares"] for row in gpus), 7
    for where, rows in (("GET /nodes, added up", nodes), ("GET /gpus, added up", gpus)):
        yield "usedMiB", where, sum(row["usedMiB"] or 0 for row in rows), 400 + 2 * 700
        yield "usedCores", where, sum(row["usedCores"] or 0 for row in rows), 25 + 2 * 15
    grants = [grant for row in answers["/pods"]["items"] for grant in row["gpus"]]
    yield "memoryMiB of grants", "GET /pods, added up", sum(grant["memoryMiB"] for grant in grants), ALLOCATED
    yield "cores of grants", "GET /pods, added up", sum(grant["cores"] for grant in grants), GUARANTEED


def of_commands(server: Server) -> Iterator[Total]:
    said = dict(line.split(":", 1) for line in run("doctor", "--server", server.url)[1].splitlines() if ":" in line)
    shown = {name: " ".join(text.split()) for name, text in said.items()}
    memory = "6Gi of 12Gi allocated, 3.5Gi free, 2.5Gi on GPUs that are closed"
    yield "memory", "vgpu doctor", shown["Memory"], memory
    yield "closed memory", "vgpu doctor", MEMORY - ALLOCATED - FREE, CLOSED
    yield "time", "vgpu doctor", shown["Time"], "2.8 of 6 GPUs guaranteed, 1.9 of 6 free"
    yield "GPUs", "vgpu doctor", shown["GPUs"], "6, 5 healthy, 1 cordoned"
    yield "pods", "vgpu doctor", shown["Pods"], "1 Pending, 1 Starting, 6 Running"
    rows = [line.split() for line in run("get", "nodes", "--server", server.url)[1].splitlines()[1:]]
    free, busy = (sum(float(row[at]) for row in rows if row[at] != "-") for at in (8, 11))
    yield "FREE-CORES", "vgpu get nodes, added up", round(free, 2), FREE_TIME / 100
    yield "BUSY", "vgpu get nodes, added up", round(busy, 2), 0.55
    yield "memory", "vgpu inspect", run("inspect", "--server", server.url)[1].splitlines()[-1], "6/12 (50%)"
    waiting = run("get", "pending", "-A", "-o", "name", "--server", server.url)[1].split()
    yield "pods that wait", "vgpu get pending", len(waiting), 1
    listed = {line.split()[1]: line for line in run("get", "pods", "-A", "--server", server.url)[1].splitlines()}
    yield "status of pull", "vgpu get pods", "Starting (ImagePullBackOff)" in listed["pull"], True
    yield "used of two, per card", "vgpu get pods", "0: 700Mi 15%, 1: 700Mi 15%" in listed["two"], True


def of_metrics(admin: Admin) -> Iterator[Total]:
    lines = dict(
        line.rsplit(" ", 1) for line in extender_metrics(admin.world).splitlines() if line[:1] not in ("", "#")
    )
    for kind, by_hand in {"pods": 8 + 1, "nodes": 3, "gpunodes": 3}.items():
        value = float(lines[f'vgpu_extender_objects{{kind="{kind}"}}'])
        yield f"objects, {kind}", "extender's metrics", value, by_hand
    yield "reservations", "extender's metrics", float(lines["vgpu_extender_reservations"]), 0


def of_gpunodes(admin: Admin) -> Iterator[Total]:
    """The columns of `kubectl get gpunodes`, from what a device plugin knows: what the kubelet says is held."""
    by_hand = {
        "n1": ("1 GiB", "0.7 of 2 cards", "3 GiB"),
        "n2": ("0 MiB", "0 of 2 cards", "1.5 GiB"),
        "n3": ("2.5 GiB", "1.2 of 2 cards", "1.5 GiB"),
    }
    for node, expected in by_hand.items():
        states = [
            replace(state, card=replace(
                state.card, held_slices=0 if state.usage.wholes else state.usage.slices,
                held_whole=state.usage.wholes > 0,
            ))
            for state in admin.world.cluster.states.of(NodeName(node)).cards
        ]  # fmt: skip
        shown = summary.summary_of(states, is_ready=True)
        yield f"{node}: free, free time, held", "kubectl get gpunodes", (
            shown["freeMemory"], shown["freeCompute"], shown["held"],
        ), expected  # fmt: skip


def of_dashboard(found: Mapping[str, Any], folder: Path) -> Iterator[Total]:
    """The tiles above the cards."""
    said = of_page("dashboard_text.mjs", found, folder)
    if said is None:
        return
    yield "all tiles", "dashboard", said.splitlines(), [
        "Nodes usable 3 of 3",
        "Cards healthy 5 of 6",
        "Memory allocated 6 GiB of 12 GiB",
        "Time guaranteed 2.8 of 6 cards",
        "Pods 6 running, 1 starting, 1 waiting",
    ]  # fmt: skip


def of_page(script: str, given: object, folder: Path) -> str | None:
    """Return what the page's own scripts make of answers; None where no Node.js is installed to run them."""
    node = shutil.which("node")
    if node is None:
        return None
    files = shutil.copytree(Path(extender.web.__file__).parent / "files", folder / "web")
    (files / "package.json").write_text('{"type": "module"}')
    run_it: list[str | Path] = [node, SCRIPTS / script, files]
    return subprocess.run(
        run_it, input=json.dumps(given), capture_output=True, text=True, timeout=120, check=True
    ).stdout


async def test_every_total_is_the_sum_by_hand(cluster: Admin, server: Server, tmp_path: Path) -> None:
    assert MEMORY == ALLOCATED + FREE + CLOSED
    rows = list(await totals(cluster, server, tmp_path))
    for what, where, value, by_hand in rows:
        print(f"| {what} | {where} | {value} | {by_hand} |")  # noqa: T201 - the table, for people: pytest -s
    assert [row for row in rows if row[2] != row[3]] == []
    assert len(rows) > 40


# The history: an hour of the pods above, each of which waited for 2 s; a card costs 2 EUR an hour.
HOUR_S = 3600
PARTS = {"whole": 1.0, "a": 0.3, "b": 0.125, "pull": 0.125, "c": 0.5, "d": 0.25, "two": 0.4}  # of each card: the larger
CARDS = {"two": 2}  # one, of the others
SHARES_S = HOUR_S * sum(part * CARDS.get(name, 1) for name, part in PARTS.items())
USED_S = HOUR_S * (25 + 2 * 15) // 100
PERIOD: dict[str, Any] = {"since": "2024-10-04T00:00:00Z", "until": "2024-10-04T01:00:00Z"}
MINUTE_MS = 60_000
GROUPS: tuple[list[str], ...] = (
    [], ["namespace"], ["owner"], ["label:team"], ["model"], ["node"], ["card"], ["day"], ["day", "namespace"],
    ["namespace", "card"],
)  # fmt: skip
PAGE_GROUPS = ("namespace", "owner", "model", "node", "card", "day")


@pytest.fixture
def reports(tmp_path: Path) -> SqlReports:
    engine = database.engine(database.sqlite_url(tmp_path / "history.db"))
    database.migrate(engine)
    with database.writing(engine) as connection:
        ingest.ingest(connection, list(records()))
    return SqlReports(engine, Prices("EUR", {"L4": 2.0}), lambda: make.MONDAY + make.HOUR)


def records() -> Iterator[Record]:
    for number, (name, (node, cards, amounts)) in enumerate(BOUND.items()):
        uuids = [CardUuid(uuid) for uuid in cards.split(",")]
        mib = 2048 if name == "whole" else amounts["gpu_mem"] // len(uuids)
        cores = amounts.get("gpu_cores", 0) // len(uuids)
        held = [CardShare(uuid, 0, "L4", 2048, mib, cores, name == "whole") for uuid in uuids]
        labels = {"team": "vision"} if number % 2 else {}
        made = make.decision(
            number, make.MONDAY, *held, namespace=NAMESPACES[number % 2], owner=name, labels=labels, waited_ms=2000
        )
        yield replace(made, node=NodeName(node))
        if name in USED:
            yield from measured(made.pod.uid, NodeName(node), uuids, *USED[name])


NAMESPACES = ("default", "other")


def measured(uid: PodUid, node: NodeName, uuids: list[CardUuid], mib: int, percent: int) -> Iterator[Record]:
    """What a node reports of a container each minute of the hour, and of its cards, which no other container uses."""
    for until in range(make.MONDAY + MINUTE_MS, make.MONDAY + make.HOUR + 1, MINUTE_MS):
        used_ms = (until - make.MONDAY) * percent // 100
        for uuid in uuids:
            since = make.MONDAY
            yield Used(uid, node, ContainerName("main"), uuid, since, until, used_ms, mib, (), mib, (0, 0, 0, 0))
            yield CardMeasured(node, uuid, since, until, used_ms, mib, 50, 100)


async def of_history(admin: Admin, server: Server, folder: Path) -> Iterator[Total]:
    found: list[Total] = []
    for by in GROUPS:
        answer = await admin.get("/usage", **(PERIOD | ({"by": by} if by else {})))
        found += of_usage(", ".join(by) or "default", answer)
        if by == ["namespace"]:
            server.answers["GET /api/v1/usage"] = (200, answer)
    decided = await admin.get("/history", kind="decision", **PERIOD)
    found.append(("pods bound", "GET /history, counted", len(decided["items"]), len(BOUND)))
    sizes = (await admin.get("/rightsize", **PERIOD))["items"]
    unused_s = HOUR_S * ((30 - 25) + 2 * (40 - 15)) / 100
    found.append(("unusedGpuSeconds", "GET /rightsize, added up", sum(r["unusedGpuSeconds"] for r in sizes), unused_s))
    return iter([*found, *of_usage_command(server), *await of_usage_page(admin, folder), *await of_series(admin)])


def of_usage(by: str, answer: Mapping[str, Any]) -> Iterator[Total]:
    """A pod on two cards counts once, also by card."""
    for name, by_hand in {
        "shareSeconds": SHARES_S, "gpuSecondsAsked": HOUR_S * GUARANTEED / 100, "gpuSecondsUsed": USED_S,
        "mibHours": ALLOCATED, "waitingSeconds": 2 * len(BOUND), "bound": len(BOUND), "cost": 2 * SHARES_S / HOUR_S,
    }.items():  # fmt: skip
        value = round(sum(row[name] or 0 for row in answer["items"]), 6)
        yield name, f"GET /usage by {by}, added up", value, round(by_hand, 6)


def of_usage_command(server: Server) -> Iterator[Total]:
    head, *lines = run("usage", "--server", server.url)[1].splitlines()
    for column, by_hand in {
        "GPU-HOURS": SHARES_S / HOUR_S, "ASKED": GUARANTEED / 100, "USED": USED_S / HOUR_S,
        "GIB-HOURS": ALLOCATED / 1024, "PODS": len(BOUND), "COST": 2 * SHARES_S / HOUR_S,
    }.items():  # fmt: skip
        added = sum(float(line.split()[head.split().index(column)]) for line in lines)
        yield column, "vgpu usage, added up", round(added, 2), round(by_hand, 2)


async def of_usage_page(admin: Admin, folder: Path) -> list[Total]:
    """The file that the page saves, by each of its groups, and the chart by day: of all, and of one namespace."""
    reports = {by: await admin.get("/usage", by=by, **PERIOD) for by in PAGE_GROUPS}
    parts = await admin.get("/usage", by=["day", "namespace"], namespace="other", **PERIOD)
    given = {"reports": reports, "total": reports["day"], "parts": parts, "namespaces": ["other"]}
    said = of_page("usage_figures.mjs", given, folder)
    if said is None:
        return []
    made = json.loads(said)
    found: list[Total] = []
    for by, text in made["files"].items():
        rows = list(csv.DictReader(text.splitlines()))
        for column, by_hand in {
            "card-hours": SHARES_S / HOUR_S, "gpu-hours-asked": GUARANTEED / 100, "gpu-hours-used": USED_S / HOUR_S,
            "gib-hours": ALLOCATED / 1024, "waited-seconds-of-all-pods": 2 * len(BOUND), "pods": len(BOUND),
            "cost-EUR": 2 * SHARES_S / HOUR_S,
        }.items():  # fmt: skip
            value = round(sum(float(row[column] or 0) for row in rows), 6)
            found.append((column, f"page, CSV by {by}, added up", value, round(by_hand, 6)))
    of_all, of_one = (sum(line["values"]) for line in made["chart"]["lines"])
    in_one = sum(part * CARDS.get(name, 1) for name, part in list(PARTS.items())[1::2])
    found.append(("card-hours of all", "page, chart by day, added up", round(of_all, 6), round(SHARES_S / HOUR_S, 6)))
    found.append(("card-hours of a namespace", "page, chart by day", round(of_one, 6), round(in_one, 6)))
    return found


async def of_series(admin: Admin) -> list[Total]:
    """Five-minute figures: those of the containers of a card, and of all cards, added up."""
    found: list[Total] = []
    used_ms = 0
    for name, (mib, percent) in USED.items():
        for uuid in BOUND[name][1].split(","):
            answer = await admin.get(f"/gpus/{uuid}/series", **PERIOD)
            card, containers = answer["card"], answer["containers"]
            used_ms += sum(card["usedMs"])
            where = f"GET /gpus/{uuid}/series"
            found.append(("usedCores", where, set(card["usedCores"]), {float(percent)}))
            for field in ("usedMs", "usedMiB"):
                added = [sum(values) for values in zip(*(series[field] for series in containers), strict=True)]
                found.append((f"{field}, containers added up", where, added, card[field]))
            found.append(("usedMiB, last", where, card["usedMiB"][-1], mib))
    found.append(("usedMs, all cards and figures", "GET /gpus/UUID/series", used_ms, USED_S * 1000))
    return found


async def test_every_total_of_the_history_is_the_sum_by_hand(
    opened: Opened, server: Server, reports: SqlReports, tmp_path: Path
) -> None:
    async with opened(reports=reports) as admin:
        rows = list(await of_history(admin, server, tmp_path))
    for what, where, value, by_hand in rows:
        print(f"| {what} | {where} | {value} | {by_hand} |")  # noqa: T201 - the table, for people: pytest -s
    assert [row for row in rows if row[2] != row[3]] == []
    assert len(rows) > 80
