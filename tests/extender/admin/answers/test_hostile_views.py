"""What tenants write into pods and requests fails no answer of the REST, and changes nothing that others are told."""

import json
from collections.abc import Iterator
from typing import Any

import pytest

from extender.history.reporting.prices import Prices
from extender.history.reporting.sql_reports import SqlReports
from extender.history.storage import database
from tests.extender.admin.conftest import Admin, Opened
from tests.hostile_pods import tenants
from vgpu.domain import names

pytestmark = pytest.mark.heavy

UNPAIRED = "\ud800"  # written as \ud800 in JSON; it cannot be encoded
TEXTS = [*tenants.ESCAPES[:4], *tenants.MARKUP[:3], tenants.FORMULAS[0], "x" * 10_000]
ODD = [UNPAIRED, "a\0b", *tenants.ESCAPES[:3], "x" * 100_000]
QUOTED = ["%ED%A0%80", "%00", "%1B%5B2J", "%0A", "%27%22", "%E2%80%AE", "%F0%9F%92%A9", "x" * 10_000]
LISTS = ("/pods", "/pending", "/nodes", "/gpus", "/summary")
MAX_TEXT = 12_000  # the problems of one pod, beside each other


def texts_in(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for key, part in value.items():
            yield key
            yield from texts_in(part)
    elif isinstance(value, list):
        for part in value:
            yield from texts_in(part)


async def of_neighbour(admin: Admin, name: str) -> list[Any]:
    """What the REST says of a pod, without the numbers of the pods and the time that pass."""
    await admin.fresh()
    rows = [row for path in ("/pods", "/pending") for row in (await admin.get(path))["items"] if row["name"] == name]
    explained = await admin.get(f"/pods/default/{name}/explain")
    return [[{**row, "waitingSeconds": 0} for row in rows], {**explained, "waitingSeconds": 0, "at": ""}]


@pytest.mark.parametrize("text", TEXTS, ids=range(len(TEXTS)))
async def test_a_pod_of_hostile_texts_changes_nothing_that_others_are_told(admin: Admin, text: str) -> None:
    neighbour = await admin.world.create_pod(gpu_mem=4096)
    await admin.world.filter(neighbour)
    before = await of_neighbour(admin, neighbour["metadata"]["name"])
    owner = {"apiVersion": "v1", "kind": text, "name": text, "uid": "o", "controller": True}
    annotations = dict.fromkeys((*names.USER_ANNOTATIONS, *names.LIVE_ANNOTATIONS, "example.com/note"), text)
    hostile = {"name": "hostile", "annotations": annotations, "ownerReferences": [owner]}
    pod = await admin.world.create_pod(metadata=hostile, gpu_mem=4096)
    await admin.world.filter(pod)
    assert await of_neighbour(admin, neighbour["metadata"]["name"]) == before
    for path in (*LISTS, "/pods/default/hostile", "/pods/default/hostile/explain"):
        found = await admin.get(path)
        assert [part[:80] for part in texts_in(found) if not part.isprintable() or len(part) > MAX_TEXT] == [], path
    events = await admin.world.events(count=2)
    assert [event["message"] for event in events if not event["message"].isprintable()] == []


@pytest.mark.parametrize("text", ODD, ids=range(len(ODD)))
async def test_a_simulation_of_any_texts_is_answered(admin: Admin, text: str) -> None:
    limits = {"vgpu.io/gpu-mem": text, text: "1"}
    container = {"name": text, "image": text, "resources": {"limits": limits}}
    pod = {"metadata": {"name": text, "namespace": text, "annotations": {"vgpu.io/gang": text, text: text}}}
    for wrong in (pod | {"spec": {"containers": [container]}}, pod, {text: text}, {"spec": text}):
        body = json.dumps({"pods": [{"pod": wrong, "count": 1}], text: text}).encode()
        for sent in (body, json.dumps({"pods": [{"pod": wrong, "count": 1}]}).encode()):
            answer = await admin.http.post(
                "/api/v1/simulate", content=sent, headers={"Content-Type": "application/json"}
            )
            assert answer.status_code < 500, answer.text
            assert len(answer.content) < 5 * MAX_TEXT


@pytest.mark.parametrize("text", QUOTED, ids=range(len(QUOTED)))
async def test_a_request_of_any_texts_is_answered(opened: Opened, tmp_path: Any, text: str) -> None:
    engine = database.engine(database.sqlite_url(tmp_path / "history.db"))
    database.migrate(engine)
    parameters = (
        "namespace", "name", "sort", "selector", "cursor", "limit", "by", "label", "since", "until", "kind", "owner",
        "model", "node", "gpu", "status", "pod", "user",
    )  # fmt: skip
    async with opened(reports=SqlReports(engine, Prices(), lambda: 1_700_000_000_000)) as admin:
        for path in (*LISTS, "/usage", "/history", "/rightsize"):
            for parameter in parameters:
                answer = await admin.http.get(f"/api/v1{path}?{parameter}={text}")
                assert answer.status_code < 500, (path, parameter, answer.text[:300])
                assert len(answer.content) < 5 * MAX_TEXT
        paths = (
            f"/pods/{text}/{text}",
            f"/pods/default/{text}/explain",
            f"/gpus/{text}",
            f"/nodes/{text}",
            f"/gpus/{text}/series",
        )
        for path in paths:
            answer = await admin.http.get(f"/api/v1{path}")
            assert answer.status_code < 500, (path, answer.text[:300])
    engine.dispose()
