"""Nodes, cards, pods and the summary, as lists and one by one."""

from datetime import UTC, datetime

import msgspec
import pytest

from extender.admin.answers import findings, wrong_values
from extender.state.objects import WatchedPod
from tests import strategies
from tests.extender.admin.conftest import Admin
from tests.extender.conftest import PODS
from vgpu.domain import names
from vgpu.domain.cards import measured_use
from vgpu.domain.cards.measured_use import MeasuredUse
from vgpu.domain.identifiers import ContainerName, NodeName


async def test_a_bound_pod_is_on_its_card_node_and_in_the_summary(admin: Admin) -> None:
    pod = await admin.world.create_pod(gpu_mem=1024, gpu_cores=30)
    assert await admin.world.bind(pod, "n2") == ""
    await admin.world.until_bound_is_watched(pod)
    row = await admin.get(f"/pods/default/{pod['metadata']['name']}")
    assert (row["status"], row["node"], row["requested"]) == ("Starting", "n2", "1 GiB, 30 %")
    (grant,) = row["gpus"]
    assert (grant["memoryMiB"], grant["cores"], grant["container"]) == (1024, 30, "main")
    gpu = await admin.get(f"/gpus/{grant['uuid']}")
    assert (gpu["allocatedMiB"], gpu["freeMiB"], gpu["freeCores"], gpu["podCount"]) == (1024, 1024, 70, 1)
    assert [row["pod"] for row in gpu["pods"]] == [pod["metadata"]["name"]]
    node = await admin.get("/nodes/n2")
    assert (node["usable"], node["gpus"], node["allocatedMiB"], node["pods"]) == (True, 2, 1024, 1)
    summary = await admin.get("/summary")
    assert (summary["nodes"], summary["gpus"], summary["allocatedMiB"], summary["pods"]["Starting"]) == (3, 6, 1024, 1)


async def test_how_long_a_pod_has_been_idle(admin: Admin) -> None:
    pod = await admin.world.create_pod(gpu_mem=1024)
    assert await admin.world.bind(pod, "n2") == ""
    await admin.world.until_bound_is_watched(pod)
    name, uid = pod["metadata"]["name"], pod["metadata"]["uid"]
    row = await admin.get(f"/pods/default/{name}")
    assert (row["idleSeconds"], row["gpus"][0]["idleSeconds"]) == (None, None)
    now_ms = int(datetime.now(UTC).timestamp() * 1000)
    used = MeasuredUse(uid, ContainerName("main"), row["gpus"][0]["uuid"], now_ms - 1000, now_ms, 0, idle_ms=1_860_000)
    status = {"status": {"usage": [measured_use.as_json(used)]}}
    await admin.world.client.patch(f"{names.GPUNODES_PATH}/n2/status", status)
    running = {"name": "main", "state": {"running": {"startedAt": "2020-01-01T00:00:00Z"}}}
    path = f"/api/v1/namespaces/default/pods/{name}/status"
    await admin.world.client.patch(path, {"status": {"containerStatuses": [running]}})
    await admin.world.until(lambda: admin.world.cluster.objects.pods[uid].lifecycle.runs)
    await admin.fresh()
    row = await admin.get(f"/pods/default/{name}")
    assert (row["idleSeconds"], row["gpus"][0]["idleSeconds"]) == (1860, 1860)


async def test_an_init_container_has_its_cards_until_it_has_ended(admin: Admin) -> None:
    pod = strategies.pod(strategies.container(gpu_mem=1024), init=(strategies.container("init", gpu_mem=1024),))
    pod["metadata"] = {"name": "p", "namespace": "default"}
    del pod["spec"]["nodeName"]
    created = msgspec.json.decode(await admin.world.client.post(PODS, strategies.admit(pod)))
    pods, uid = admin.world.cluster.objects.pods, created["metadata"]["uid"]
    await admin.world.until(lambda: uid in pods)
    assert await admin.world.bind(created, "n2") == ""
    await admin.world.until_bound_is_watched(created)
    assert [grant["container"] for grant in (await admin.get("/pods/default/p"))["gpus"]] == ["init", "main"]
    for code, shown in ((1, ["init", "main"]), (0, ["main"])):
        ended = {"exitCode": code, "finishedAt": "2026-01-01T00:00:00Z"}
        status = {"initContainerStatuses": [{"name": "init", "state": {"terminated": ended}}]}
        await admin.world.client.patch(f"{PODS}/p/status", {"status": status})
        await admin.world.until(lambda code=code: has_exited(pods[uid], code))
        await admin.fresh()
        (grant, *_) = grants = (await admin.get("/pods/default/p"))["gpus"]
        assert [grant["container"] for grant in grants] == shown
        assert [tenant["container"] for tenant in (await admin.get(f"/gpus/{grant['uuid']}"))["pods"]] == shown


def has_exited(pod: WatchedPod, code: int) -> bool:
    run = (pod.lifecycle.runs or {}).get(ContainerName("init"))
    return run is not None and run.exit is not None and run.exit.code == code


async def test_lists_filter_sort_page_and_choose_fields(admin: Admin) -> None:
    pod = await admin.world.create_pod(gpu_mem=1024)
    await admin.world.bind(pod, "n2")
    await admin.world.until_bound_is_watched(pod)
    rows = (await admin.get("/gpus", sort="-freeMiB,-node", fields="node,index,freeMiB"))["items"]
    assert [(row["node"], row["freeMiB"]) for row in rows][:2] == [("n3", 2048), ("n3", 2048)]
    assert rows[-1] == {"node": "n2", "index": 0, "freeMiB": 1024}
    assert {row["node"] for row in (await admin.get("/gpus", node=["n1", "n3"]))["items"]} == {"n1", "n3"}
    assert len((await admin.get("/gpus", minFreeMiB=2048))["items"]) == 5
    seen, cursor = [], ""
    while True:
        page = await admin.get("/gpus", limit=4, sort="-index", cursor=cursor)
        seen += [(row["index"], row["node"]) for row in page["items"]]
        cursor = page["nextCursor"]
        if not cursor:
            break
    assert seen == [(1, "n1"), (1, "n2"), (1, "n3"), (0, "n1"), (0, "n2"), (0, "n3")]


async def test_what_cannot_be_read_is_a_problem_that_names_the_parameter(admin: Admin) -> None:
    for query, field in (
        ({"namepsace": "x"}, "namepsace"),
        ({"limit": 0}, "limit"),
        ({"sort": "size"}, "sort"),
        ({"fields": "size"}, "fields"),
        ({"cursor": "W10"}, "cursor"),
        ({"cursor": "%%%"}, "cursor"),
        ({"node": "../x"}, "node[0]"),
    ):
        answer = await admin.http.get("/api/v1/pods", params=query)
        assert answer.status_code == 422
        assert answer.headers["content-type"] == "application/problem+json"
        problem = answer.json()
        assert [error["field"] for error in problem["errors"]] == [field]
        assert (problem["status"], problem["instance"]) == (422, "/api/v1/pods")


@pytest.mark.parametrize(
    ("path", "query", "said"),
    [
        ("/pods", {"namespace": "a/b"}, "namespace[0]: 'a/b' is no name: letters, digits, -, _ and . only"),
        ("/pods/default/A B/explain", {}, "name: 'A B' is no name: letters"),
        ("/gpus/A B", {}, "uuid: 'A B' is no UUID of a card: letters"),
        ("/pods", {"status": "Gone"}, "status[0]: 'Gone' is not one of Pending, Starting, Running"),
    ],
)
async def test_a_value_of_the_wrong_form_is_told_in_words(
    admin: Admin, path: str, query: dict[str, str], said: str
) -> None:
    answer = await admin.http.get(f"/api/v1{path}", params=query)
    assert answer.status_code == 422
    assert answer.json()["detail"].startswith(said)


@pytest.mark.heavy
async def test_every_pattern_of_a_parameter_has_words(admin: Admin) -> None:
    document = await admin.get("/openapi.json")
    operations = [operation for path in document["paths"].values() for operation in path.values()]
    schemas = [parameter["schema"] for operation in operations for parameter in operation.get("parameters", ())]
    patterns = {
        found for schema in schemas for found in (schema.get("pattern"), schema.get("items", {}).get("pattern"))
    }
    assert len(patterns - {None}) > 3
    for pattern in patterns - {None}:
        error = {"type": "string_pattern_mismatch", "msg": "raw", "input": "A B", "ctx": {"pattern": pattern}}
        assert wrong_values.words(error).startswith("'A B' is no"), pattern


async def test_a_forged_cursor_of_other_types_is_refused(admin: Admin) -> None:
    page = await admin.get("/gpus", limit=1, sort="index")
    real = page["nextCursor"]
    import base64  # noqa: PLC0415

    text = base64.urlsafe_b64decode(real + "=" * (-len(real) % 4)).decode()
    forged = base64.urlsafe_b64encode(text.replace(",0,", ',"x",', 1).encode()).decode().rstrip("=")
    assert forged != real
    problem = await admin.get("/gpus", 422, limit=1, sort="index", cursor=forged)
    assert problem["errors"][0]["field"] == "cursor"


async def test_an_unchanged_answer_is_304(admin: Admin) -> None:
    first = await admin.http.get("/api/v1/nodes")
    again = await admin.http.get("/api/v1/nodes", headers={"If-None-Match": first.headers["etag"]})
    assert (again.status_code, again.content, again.headers["etag"]) == (304, b"", first.headers["etag"])
    await admin.world.bind(await admin.world.create_pod(gpu_mem=512), "n1")
    await admin.fresh()
    changed = await admin.http.get("/api/v1/nodes", headers={"If-None-Match": first.headers["etag"]})
    assert changed.status_code == 200


@pytest.mark.heavy
async def test_a_long_answer_is_packed_for_a_client_that_accepts_it(admin: Admin) -> None:
    for _ in range(90):
        await admin.world.create_pod(gpu_mem=512)
    path = "/api/v1/pods"
    plain = await admin.http.get(path, headers={"Accept-Encoding": "identity"})
    packed = await admin.http.get(path, headers={"Accept-Encoding": "gzip, br"})
    assert "content-encoding" not in plain.headers
    assert packed.headers["content-encoding"] == "gzip"
    assert int(packed.headers["content-length"]) * 5 < int(plain.headers["content-length"])
    assert packed.content == plain.content, "httpx unpacks"
    assert packed.headers["etag"] != plain.headers["etag"], "two codings are two representations"
    assert "Accept-Encoding" in packed.headers["vary"]
    again = await admin.http.get(path, headers={"If-None-Match": packed.headers["etag"]})
    assert again.status_code == 304
    assert "content-encoding" not in (await admin.http.get(f"{path}?limit=1")).headers, "a short answer gains nothing"


async def test_unknown_objects_and_paths_are_404(admin: Admin) -> None:
    for path in ("/nodes/n9", "/gpus/GPU-9", "/pods/default/none", "/pods/default/none/explain", "/nothing"):
        assert (await admin.get(path, 404))["status"] == 404


@pytest.mark.heavy
async def test_findings_name_what_does_not_heal_by_itself(admin: Admin) -> None:
    status = {"status": {"cards": [{**_card("n1", 0), "healthy": False, "reason": "XID 79"}, _card("n1", 1)]}}
    status["status"]["cards"][1]["exclusiveProcess"] = True
    await admin.world.client.patch(f"{names.GPUNODES_PATH}/n1/status", status)
    await admin.world.client.delete(f"/apis/coordination.k8s.io/v1/namespaces/{names.NAMESPACE}/leases/vgpu-node-n2")
    await admin.world.create_pod(admitted=False, gpu_mem=256)
    await admin.world.until(lambda: admin.world.cluster.states.is_plugin_away(NodeName("n2")))
    await admin.world.until(lambda: not admin.world.cluster.states.of(NodeName("n1")).cards[0].card.healthy)
    await admin.fresh()
    found = (await admin.get("/summary"))["findings"]
    assert [finding["reason"] for finding in found] == ["PluginAway", "CardUnhealthy", "CardExclusive", "NotAdmitted"]
    assert found[1]["detail"] == "XID 79"
    assert "EXCLUSIVE_PROCESS" in found[2]["detail"]
    assert (await admin.get("/gpus/GPU-n1-1"))["mode"] == "exclusive"


def _card(node: str, index: int) -> dict[str, object]:
    return {"uuid": f"GPU-{node}-{index}", "index": index, "model": "NVIDIA H100", "memoryMiB": 2048, "healthy": True}


@pytest.mark.heavy
async def test_the_page_about_the_api_needs_nothing_from_elsewhere(admin: Admin) -> None:
    page = (await admin.http.get("/api/v1/docs")).text
    assert "/api/v1/gpus/{uuid}/cordon" in page
    assert "src=" not in page
    assert "<script" not in page
    document = await admin.get("/openapi.json")
    assert {path.removeprefix("/api/v1") for path in document["paths"]} >= {
        "/nodes", "/nodes/{name}", "/gpus", "/gpus/{uuid}", "/pods", "/pods/{namespace}/{name}",
        "/pods/{namespace}/{name}/explain", "/pending", "/summary", "/simulate", "/events",
        "/gpus/{uuid}/cordon", "/gpus/{uuid}/uncordon",
    }  # fmt: skip


async def test_pods_are_selected_by_labels(admin: Admin) -> None:
    for labels in ({"app": "a"}, {"app": "b", "old": ""}):
        pod = await admin.world.create_pod(gpu_mem=256)
        path = f"/api/v1/namespaces/default/pods/{pod['metadata']['name']}"
        await admin.world.client.patch(path, {"metadata": {"labels": labels}})
        uid = pod["metadata"]["uid"]
        await admin.world.until(lambda uid=uid: bool(admin.world.cluster.objects.pods[uid].scheduling.labels))
    await admin.fresh()
    for selector, found in (
        ("app=a", ["pod-1"]), ("app!=a", ["pod-2"]), ("old", ["pod-2"]), ("!old", ["pod-1"]),
        ("app==b, old=", ["pod-2"]),
        ("app=a,old", []), ("", ["pod-1", "pod-2"]),
    ):  # fmt: skip
        rows = (await admin.get("/pods", selector=selector))["items"]
        assert [row["name"] for row in rows] == found, selector
    assert (await admin.get("/pods", 422, selector="a in (b)"))["errors"][0]["field"] == "selector"


@pytest.mark.heavy
async def test_bad_pods_of_one_namespace_hide_no_finding_about_another(admin: Admin) -> None:
    async def create(namespace: str, name: str) -> None:
        pod = strategies.pod(strategies.container(gpu_mem="none"))
        pod["metadata"] = {"name": name, "namespace": namespace}
        del pod["spec"]["nodeName"]
        await admin.world.client.post(f"/api/v1/namespaces/{namespace}/pods", strategies.admit(pod))

    crowd = findings.MAX_FINDINGS + 20
    for number in range(crowd):
        await create("crowd", f"bad-{number}")
    await create("neighbour", "wrong")
    await admin.world.until(lambda: len(admin.world.cluster.objects.pods) == crowd + 1)
    await admin.fresh()
    found = (await admin.get("/summary"))["findings"]
    assert len(found) == findings.MAX_FINDINGS
    assert "pod neighbour/wrong" in [row["about"] for row in found[:2]]
    assert (found[-1]["about"], found[-1]["reason"]) == ("findings", "NotAllShown")
