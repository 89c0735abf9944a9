"""Bodies and queries that no honest client sends are refused with a message, as by a real API server: never by 500."""

import json
from typing import Any

import httpx
import pytest

from vgpu.simulator.api import shapes
from vgpu.simulator.api.cluster import InMemoryCluster
from vgpu.simulator.api.resources import PODS as POD_RESOURCE

PODS = "/api/v1/namespaces/default/pods"
NODES = "/api/v1/nodes"
GPUNODES = "/apis/vgpu.io/v1alpha1/gpunodes"
CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
HOOKS = "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations"
CONTAINERS = [{"name": "main", "resources": {}}]
ODD: list[Any] = [5, "x", [], [5], {"a": 5}, True, 1e300]
JSON = {"Content-Type": "application/json"}


def pod(**fields: Any) -> dict[str, Any]:
    return {"metadata": {"name": "a"}, "spec": {"containers": CONTAINERS}} | fields


def is_refused(answer: httpx.Response) -> bool:
    status = answer.json()
    return (
        answer.status_code in (400, 404, 409, 413, 415, 422) and status["kind"] == "Status" and bool(status["message"])
    )


def nested(levels: int) -> bytes:
    annotations = b'{"f:a":' * levels + b"{}" + b"}" * levels
    return (
        b'{"metadata":{"name":"a","managedFields":[{"fieldsV1":'
        + annotations
        + b'}]},"spec":{"containers":[{"name":"m"}]}}'
    )


@pytest.mark.parametrize("levels", [300, 1_200, 10_000, 100_000])
async def test_json_that_is_nested_too_deep_is_refused(http: httpx.AsyncClient, levels: int) -> None:
    for kind in ("application/merge-patch+json", "application/strategic-merge-patch+json"):
        await http.post(PODS, json=pod())
        assert is_refused(await http.patch(f"{PODS}/a", content=nested(levels), headers={"Content-Type": kind}))
    await http.delete(f"{PODS}/a")
    for answer in (
        await http.post(PODS, content=nested(levels), headers=JSON),
        await http.put(f"{PODS}/a", content=nested(levels), headers=JSON),
        await http.request("DELETE", f"{PODS}/a", content=b"[" * levels, headers=JSON),
    ):
        assert is_refused(answer), answer.text
    assert (await http.post(PODS, content=nested(shapes.MAX_DEPTH - 10), headers=JSON)).status_code == 201


@pytest.mark.heavy
@pytest.mark.parametrize(
    "path",
    [
        "metadata", "metadata.name", "metadata.labels", "metadata.annotations", "metadata.finalizers",
        "metadata.ownerReferences", "metadata.namespace", "metadata.generateName", "spec", "spec.containers",
        "spec.initContainers", "spec.nodeName", "spec.schedulerName", "spec.priority", "spec.tolerations",
        "spec.nodeSelector", "spec.schedulingGates", "spec.overhead", "spec.terminationGracePeriodSeconds",
        "spec.containers.0.resources", "spec.containers.0.resources.limits", "spec.containers.0.name",
        "spec.containers.0.env",
    ],
)  # fmt: skip
@pytest.mark.parametrize("odd", ODD, ids=repr)
async def test_fields_of_another_type_never_fail_the_server(
    http: httpx.AsyncClient, cluster: InMemoryCluster, path: str, odd: Any
) -> None:
    body: Any = json.loads(json.dumps(pod()))
    parent = body
    *steps, last = path.split(".")
    for step in steps:
        parent = parent[int(step)] if isinstance(parent, list) else parent[step]
    parent[last] = odd
    answer = await http.post(PODS, json=body)
    assert answer.status_code == 201 or is_refused(answer), answer.text
    await http.post(PODS, json=pod())
    for kind in ("merge", "strategic-merge"):
        headers = {"Content-Type": f"application/{kind}-patch+json"}
        changed = await http.patch(f"{PODS}/a", content=json.dumps(body), headers=headers)
        assert changed.status_code == 200 or is_refused(changed), changed.text
    for found in cluster.store.objects(POD_RESOURCE.name):
        shapes.check(POD_RESOURCE, found)
    for query in ({}, {"labelSelector": "a=b"}, {"fieldSelector": "status.phase=Running"}):
        assert (await http.get(PODS, params=query)).status_code == 200
    table = {"Accept": "application/json;as=Table;v=v1;g=meta.k8s.io"}
    assert (await http.get(PODS, headers=table)).status_code == 200
    deleted = await http.delete(f"{PODS}/a")
    assert deleted.status_code in (200, 404)


@pytest.mark.parametrize("odd", ODD, ids=repr)
async def test_other_objects_and_subresources_never_fail_the_server(http: httpx.AsyncClient, odd: Any) -> None:
    await http.post(PODS, json=pod())
    await http.post(NODES, json={"metadata": {"name": "n"}})
    named = {"metadata": {"name": "x"}}
    merge = {"Content-Type": "application/merge-patch+json"}
    asked: list[tuple[str, str, Any, dict[str, str]]] = [
        ("POST", f"{PODS}/a/binding", odd, JSON),
        ("POST", f"{PODS}/a/binding", {"target": odd}, JSON),
        ("POST", f"{PODS}/a/binding", {"target": {"name": odd}, "metadata": odd}, JSON),
        ("POST", f"{PODS}/a/eviction", {"deleteOptions": odd}, JSON),
        ("PATCH", f"{PODS}/a/status", odd, merge),
        ("PATCH", f"{PODS}/a/status", {"status": odd}, merge),
        ("PATCH", f"{PODS}/a/status", {"status": {"phase": odd, "startTime": odd}}, merge),
        ("PATCH", f"{PODS}/a/status", {"status": {"conditions": odd}}, merge),
        ("PATCH", f"{PODS}/a/status", {"status": {"conditions": [{"type": odd}]}}, merge),
        (
            "PATCH",
            f"{PODS}/a",
            [{"op": "replace", "path": "", "value": odd}],
            {"Content-Type": "application/json-patch+json"},
        ),
        ("PATCH", f"{PODS}/a", [odd], {"Content-Type": "application/json-patch+json"}),
        ("PATCH", f"{PODS}/new", odd, {"Content-Type": "application/apply-patch+yaml"}),
        ("DELETE", f"{PODS}/a", {"gracePeriodSeconds": odd}, JSON),
        ("DELETE", f"{PODS}/a", {"preconditions": odd}, JSON),
        ("DELETE", f"{PODS}/a", odd, JSON),
        ("PATCH", f"{NODES}/n/status", {"status": {"allocatable": odd, "capacity": odd}}, merge),
        ("PATCH", f"{NODES}/n", {"spec": {"taints": odd}}, merge),
        ("POST", GPUNODES, named | {"spec": odd, "status": odd}, JSON),
        ("POST", CRDS, named | {"spec": odd}, JSON),
        ("POST", CRDS, named | {"spec": {"group": odd, "names": odd, "versions": odd}}, JSON),
        ("POST", HOOKS, named | {"webhooks": odd}, JSON),
        ("POST", HOOKS, named | {"webhooks": [{"name": "h", "rules": odd}]}, JSON),
        ("POST", "/api/v1/namespaces/default/events", named | {"involvedObject": odd, "source": odd}, JSON),
        ("POST", "/apis/apps/v1/namespaces/default/deployments", named | {"spec": odd}, JSON),
        ("PUT", "/apis/apps/v1/namespaces/default/deployments/x/scale", {"spec": odd}, JSON),
        ("PUT", "/apis/apps/v1/namespaces/default/deployments/x/scale", {"spec": {"replicas": odd}}, JSON),
    ]
    for method, path, body, headers in asked:
        answer = await http.request(method, path, content=json.dumps(body), headers=headers)
        assert answer.status_code < 300 or is_refused(answer), (method, path, body, answer.text)
    for path in ("/api", "/apis", "/api/v1", PODS, NODES, GPUNODES, CRDS, HOOKS, "/api/v1/events", "/openapi/v3"):
        assert (await http.get(path)).status_code == 200, path


async def test_bytes_and_queries_that_cannot_be_read_are_refused(http: httpx.AsyncClient) -> None:
    await http.post(PODS, json=pod())
    for content in (
        b"",
        b"\xff\xfe",
        b'{"metadata":{"name":"\xff"}}',
        b"null",
        b"5",
        b"[]",
        b'"x"',
        b"{",
        b"\x00",
        b"1e400",
    ):
        assert is_refused(await http.post(PODS, content=content, headers=JSON)), content
    for query in (
        {"limit": "9" * 40}, {"limit": "-1"}, {"timeoutSeconds": "9" * 40, "watch": "1"}, {"continue": "x"},
        {"continue": "eyJhIjoxfQ=="}, {"resourceVersion": "x", "watch": "1"}, {"labelSelector": "(("},
        {"fieldSelector": "a"}, {"continue": "\u00e9"},
    ):  # fmt: skip
        assert is_refused(await http.get(PODS, params=query)), query
    for path in (f"{PODS}/a/b/c", "/api/v1/namespaces//pods/%00", f"{PODS}/%ff", "/apis//v1/x", "/" + "a/" * 2000):
        assert is_refused(await http.get(path)), path
    for seconds in ("9" * 18, "0"):
        assert (await http.delete(f"{PODS}/a", params={"gracePeriodSeconds": seconds})).status_code in (200, 404)
