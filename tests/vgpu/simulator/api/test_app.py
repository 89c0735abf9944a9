"""The REST interface of the simulated API server."""

from typing import Any

import httpx
import pytest

from vgpu.simulator.api.cluster import InMemoryCluster

NAMESPACES = "/api/v1/namespaces"
PODS = f"{NAMESPACES}/default/pods"
GPUNODES = "/apis/vgpu.io/v1alpha1/gpunodes"


def pod(name: str, **spec: Any) -> dict[str, Any]:
    return {"metadata": {"name": name}, "spec": {"containers": [{"name": "main"}], **spec}}


async def refused(response: httpx.Response, code: int, reason: str) -> str:
    status = response.json()
    assert (response.status_code, status["kind"], status["code"], status["reason"]) == (code, "Status", code, reason)
    return str(status["message"])


async def test_create_sets_metadata_and_defaults(http: httpx.AsyncClient) -> None:
    body = {"metadata": {"generateName": "p-"}, "spec": {"containers": [{"name": "main", "resources": {
        "limits": {"vgpu.io/gpu-mem": 18000, "cpu": "500m"}}}]}, "status": {"phase": "Running"}}  # fmt: skip
    made = (await http.post(PODS, json=body)).json()
    assert made["metadata"]["name"].startswith("p-")
    assert made["metadata"]["namespace"] == "default"
    assert made["metadata"]["creationTimestamp"] == "2026-01-01T00:00:00Z"
    assert made["status"] == {"phase": "Pending"}
    assert made["spec"]["schedulerName"] == "default-scheduler"
    amounts = {"vgpu.io/gpu-mem": "18k", "cpu": "500m"}
    assert made["spec"]["containers"][0]["resources"] == {"limits": amounts, "requests": amounts}


@pytest.mark.parametrize("amount", ["1500m", "-1m"])
async def test_extended_resources_are_whole_numbers(http: httpx.AsyncClient, amount: str) -> None:
    body = pod("a", containers=[{"name": "main", "resources": {"limits": {"vgpu.io/gpu-mem": amount}}}])
    assert "must be an integer" in await refused(await http.post(PODS, json=body), 422, "Invalid")


@pytest.mark.parametrize("amount", ["9" * 5000, "٣"])
async def test_an_amount_that_is_no_integer_for_us_stays_as_it_was_written(
    http: httpx.AsyncClient, amount: str
) -> None:
    """So the webhook refuses it by its name. 5,000 digits ended the request with 500, and an Arabic 3 became 3."""
    body = pod("a", containers=[{"name": "main", "resources": {"limits": {"vgpu.io/gpu-mem": amount}}}])
    made = (await http.post(PODS, json=body)).json()
    assert made["spec"]["containers"][0]["resources"]["limits"] == {"vgpu.io/gpu-mem": amount}


async def test_errors_are_status_objects(http: httpx.AsyncClient) -> None:
    await http.post(PODS, json=pod("a"))
    await refused(await http.post(PODS, json=pod("a")), 409, "AlreadyExists")
    await refused(await http.get(f"{PODS}/b"), 404, "NotFound")
    await refused(await http.get("/apis/unknown/v1/things"), 404, "NotFound")
    await refused(await http.post(PODS, json=pod("No/Name")), 422, "Invalid")
    await refused(await http.post(PODS, content=b"{nonsense"), 400, "BadRequest")
    await refused(await http.get(PODS, params={"fieldSelector": "spec.nope=1"}), 400, "BadRequest")
    await refused(await http.get(PODS, params={"limit": "many"}), 400, "BadRequest")
    await refused(await http.patch(f"{PODS}/a", json={}), 415, "UnsupportedMediaType")


@pytest.mark.parametrize(
    ("path", "name", "rule"),
    [
        (PODS, "a..b", "subdomain"),
        (PODS, "x" * 254, "subdomain"),
        (NAMESPACES, "a.b", "label"),
        (NAMESPACES, "x" * 64, "label"),
    ],
)
async def test_names_are_those_that_kubernetes_takes(http: httpx.AsyncClient, path: str, name: str, rule: str) -> None:
    body = pod("x") | {"metadata": {"name": name}}
    assert f"RFC 1123 {rule}" in await refused(await http.post(path, json=body), 422, "Invalid")


async def test_of_two_updates_of_one_version_the_second_conflicts(http: httpx.AsyncClient) -> None:
    first = (await http.post(PODS, json=pod("a"))).json()
    first["metadata"]["labels"] = {"n": "1"}
    second = (await http.put(f"{PODS}/a", json=first)).json()
    assert second["metadata"]["resourceVersion"] != first["metadata"]["resourceVersion"]
    await refused(await http.put(f"{PODS}/a", json=first), 409, "Conflict")


async def test_a_write_without_a_change_keeps_the_version(http: httpx.AsyncClient) -> None:
    made = (await http.post(PODS, json=pod("a"))).json()
    assert (await http.put(f"{PODS}/a", json=made)).json() == made


async def test_an_update_for_a_recreated_object_conflicts(http: httpx.AsyncClient) -> None:
    old = (await http.post(PODS, json=pod("a"))).json()
    await http.delete(f"{PODS}/a")
    await http.post(PODS, json=pod("a"))
    del old["metadata"]["resourceVersion"]
    assert "UID" in await refused(await http.put(f"{PODS}/a", json=old), 409, "Conflict")


async def test_status_is_written_by_requests_to_the_status_path_only(http: httpx.AsyncClient) -> None:
    made = (
        await http.post(GPUNODES, json={"metadata": {"name": "n"}, "spec": {"cards": []}, "status": {"a": 1}})
    ).json()
    assert "status" not in made
    made["status"] = {"sliceMiB": 256}
    made["spec"] = {"cards": [{"uuid": "GPU-1"}]}
    by_status = (await http.put(f"{GPUNODES}/n/status", json=made)).json()
    assert (by_status["status"], by_status["spec"]) == ({"sliceMiB": 256}, {"cards": []})
    by_status["status"] = {"sliceMiB": 1}
    by_status["spec"] = {"cards": [{"uuid": "GPU-2"}]}
    by_main = (await http.put(f"{GPUNODES}/n", json=by_status)).json()
    assert (by_main["status"], by_main["spec"]) == ({"sliceMiB": 256}, {"cards": [{"uuid": "GPU-2"}]})
    assert (by_status["metadata"]["generation"], by_main["metadata"]["generation"]) == (1, 2)


async def test_updates_of_custom_resources_must_carry_a_version(http: httpx.AsyncClient) -> None:
    await http.post(GPUNODES, json={"metadata": {"name": "n"}})
    response = await http.put(f"{GPUNODES}/n", json={"metadata": {"name": "n"}})
    assert "must be specified for an update" in await refused(response, 422, "Invalid")


async def test_pages_of_a_list_have_one_version(http: httpx.AsyncClient) -> None:
    for name in "abcde":
        await http.post(PODS, json=pod(name))
    first = (await http.get(PODS, params={"limit": "2"})).json()
    await http.delete(f"{PODS}/d")
    await http.post(PODS, json=pod("f"))
    second = (await http.get(PODS, params={"limit": "2", "continue": first["metadata"]["continue"]})).json()
    third = (await http.get(PODS, params={"limit": "2", "continue": second["metadata"]["continue"]})).json()
    pages = [[item["metadata"]["name"] for item in page["items"]] for page in (first, second, third)]
    assert pages == [["a", "b"], ["c", "d"], ["e"]]
    assert {page["metadata"]["resourceVersion"] for page in (first, second, third)} == {
        first["metadata"]["resourceVersion"]
    }
    assert "continue" not in third["metadata"]
    assert first["kind"] == "PodList"


async def test_a_continue_token_of_a_forgotten_version_is_gone(
    http: httpx.AsyncClient, cluster: InMemoryCluster
) -> None:
    for name in "abc":
        await http.post(PODS, json=pod(name))
    token = (await http.get(PODS, params={"limit": "1"})).json()["metadata"]["continue"]
    await http.delete(f"{PODS}/a")
    cluster.store.forget()
    await refused(await http.get(PODS, params={"continue": token}), 410, "Expired")


async def test_binding_sets_the_node_and_merges_annotations(http: httpx.AsyncClient) -> None:
    body = pod("a") | {"metadata": {"name": "a", "annotations": {"mine": "1"}}}
    uid = (await http.post(PODS, json=body)).json()["metadata"]["uid"]
    metadata = {"name": "a", "annotations": {"vgpu.io/assignment": "{}"}}
    other = {"metadata": {**metadata, "uid": "another"}, "target": {"name": "n"}}
    await refused(await http.post(f"{PODS}/a/binding", json=other), 409, "Conflict")
    binding = {"metadata": {**metadata, "uid": uid}, "target": {"name": "n"}}
    response = await http.post(f"{PODS}/a/binding", json=binding)
    assert (response.status_code, response.json()["status"]) == (201, "Success")
    bound = (await http.get(f"{PODS}/a")).json()
    assert bound["spec"]["nodeName"] == "n"
    assert bound["metadata"]["annotations"] == {"mine": "1", "vgpu.io/assignment": "{}"}
    assert bound["status"]["conditions"][0]["type"] == "PodScheduled"
    assert "already assigned" in await refused(await http.post(f"{PODS}/a/binding", json=binding), 409, "Conflict")


async def test_a_pod_on_a_node_is_deleted_gracefully(http: httpx.AsyncClient) -> None:
    await http.post(PODS, json=pod("a", nodeName="n"))
    marked = (await http.delete(f"{PODS}/a")).json()
    assert marked["metadata"]["deletionGracePeriodSeconds"] == 30
    assert marked["metadata"]["deletionTimestamp"] == "2026-01-01T00:00:30Z"
    again = (await http.delete(f"{PODS}/a")).json()
    assert again == marked
    binding = {"metadata": {"name": "a"}, "target": {"name": "m"}}
    assert "being deleted" in await refused(await http.post(f"{PODS}/a/binding", json=binding), 409, "Conflict")
    await http.request("DELETE", f"{PODS}/a", json={"gracePeriodSeconds": 0})
    await refused(await http.get(f"{PODS}/a"), 404, "NotFound")


async def test_finalizers_keep_an_object_until_the_last_is_removed(http: httpx.AsyncClient) -> None:
    await http.post(GPUNODES, json={"metadata": {"name": "n", "finalizers": ["x/y"]}})
    deleted = (await http.delete(f"{GPUNODES}/n")).json()
    assert "deletionTimestamp" in deleted["metadata"]
    deleted["metadata"]["finalizers"] = []
    await http.put(f"{GPUNODES}/n", json=deleted)
    await refused(await http.get(f"{GPUNODES}/n"), 404, "NotFound")


async def test_a_delete_for_another_uid_conflicts(http: httpx.AsyncClient) -> None:
    await http.post(PODS, json=pod("a"))
    options = {"preconditions": {"uid": "another"}}
    await refused(await http.request("DELETE", f"{PODS}/a", json=options), 409, "Conflict")


async def test_resources_of_a_custom_resource_definition_are_served(http: httpx.AsyncClient) -> None:
    crd = {"metadata": {"name": "toys.example.com"}, "spec": {"group": "example.com", "scope": "Namespaced",
           "names": {"plural": "toys", "kind": "Toy"}, "versions": [{"name": "v2", "served": True}]}}  # fmt: skip
    path = "/apis/example.com/v2/namespaces/default/toys"
    await refused(await http.get(path), 404, "NotFound")
    await http.post("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", json=crd)
    assert (await http.post(path, json={"metadata": {"name": "car"}})).json()["kind"] == "Toy"
    assert "example.com" in (await http.get("/apis")).text
