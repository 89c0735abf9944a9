"""What kubectl asks for beside the objects: Tables and OpenAPI."""

from typing import Any

import httpx
import pytest
import yaml

from tests.vgpu.simulator.api.test_app import GPUNODES, PODS, pod
from vgpu.simulator import installation
from vgpu.simulator.api import pod_cells

TABLE = {"accept": "application/json;as=Table;v=v1;g=meta.k8s.io,application/json"}


def shown(table: dict[str, Any]) -> dict[str, Any]:
    """The cells of a Table's only row by the names of its columns."""
    assert (table["kind"], table["apiVersion"]) == ("Table", "meta.k8s.io/v1")
    (row,) = table["rows"]
    return dict(
        zip([column_definition["name"] for column_definition in table["columnDefinitions"]], row["cells"], strict=True)
    )


@pytest.fixture
async def with_crd(http: httpx.AsyncClient) -> httpx.AsyncClient:
    definition = yaml.safe_load(installation.DEFINITION.read_text())
    await http.post("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", json=definition)
    return http


async def test_pods_are_a_table_where_kubectl_asks_for_one(http: httpx.AsyncClient) -> None:
    await http.post(PODS, json=pod("a"))
    cells = {"Name": "a", "Ready": "0/1", "Status": "Pending", "Restarts": "0", "Node": "<none>"}
    for path in (PODS, f"{PODS}/a"):
        table = (await http.get(path, headers=TABLE)).json()
        assert cells.items() <= shown(table).items()
        assert table["rows"][0]["object"]["metadata"]["name"] == "a"
    assert (await http.get(PODS)).json()["kind"] == "PodList"


async def test_a_watch_sends_tables_too(http: httpx.AsyncClient) -> None:
    await http.post(PODS, json=pod("a"))
    async with http.stream("GET", PODS, params={"watch": "1", "timeoutSeconds": "1"}, headers=TABLE) as answer:
        event = httpx.Response(200, content=await anext(answer.aiter_lines())).json()
    assert event["type"] == "ADDED"
    assert shown(event["object"])["Name"] == "a"


@pytest.mark.heavy
async def test_a_custom_resource_has_the_columns_of_its_definition(with_crd: httpx.AsyncClient) -> None:
    await with_crd.post(GPUNODES, json={"metadata": {"name": "n1"}, "spec": {"cards": []}})
    status = {"summary": {"health": "3/4", "cordoned": 1}, "conflicts": []}
    await with_crd.patch(
        f"{GPUNODES}/n1/status", json={"status": status}, headers={"content-type": "application/merge-patch+json"}
    )
    cells = shown((await with_crd.get(GPUNODES, headers=TABLE)).json())
    assert (cells["Name"], cells["Healthy"], cells["Cordoned"], cells["Held"]) == ("n1", "3/4", 1, None)
    assert cells["Age"].endswith("s")


@pytest.mark.parametrize(
    ("status", "deleted", "word"),
    [
        ({"phase": "Running"}, False, "Running"),
        ({"phase": "Failed", "reason": "Evicted"}, False, "Evicted"),
        (
            {"phase": "Pending", "containerStatuses": [{"state": {"waiting": {"reason": "Creating"}}}]},
            False,
            "Creating",
        ),
        ({"phase": "Succeeded", "containerStatuses": [{"state": {"terminated": {"reason": "Done"}}}]}, False, "Done"),
        ({"phase": "Running"}, True, "Terminating"),
        ({}, False, "Unknown"),
    ],
)
def test_the_status_of_a_pod(status: dict[str, Any], deleted: bool, word: str) -> None:
    metadata = {"deletionTimestamp": "2026-01-01T00:00:00Z"} if deleted else {}
    assert pod_cells.status({"metadata": metadata, "spec": {}, "status": status}) == word


async def test_openapi_says_that_the_server_checks_fields_and_describes_gpunodes(with_crd: httpx.AsyncClient) -> None:
    paths = (await with_crd.get("/openapi/v3")).json()["paths"]
    core = (await with_crd.get(paths["api/v1"]["serverRelativeURL"])).json()
    patch = core["paths"]["/api/v1/namespaces/{namespace}/pods/{name}"]["patch"]
    assert [parameter["name"] for parameter in patch["parameters"]] == ["fieldValidation"]
    ours = (await with_crd.get(paths["apis/vgpu.io/v1alpha1"]["serverRelativeURL"])).json()
    schema = ours["components"]["schemas"]["vgpu.io.v1alpha1.GPUNode"]
    assert "device plugin" in schema["properties"]["status"]["description"]
    assert (await with_crd.get("/openapi/v3/apis/none/v1")).status_code == 404


async def test_an_object_that_a_controller_would_make_pods_of_has_a_warning(http: httpx.AsyncClient) -> None:
    deployment = {"metadata": {"name": "web"}, "spec": {}}
    answer = await http.post("/apis/apps/v1/namespaces/default/deployments", json=deployment)
    assert (answer.status_code, "no controllers" in answer.headers["Warning"]) == (201, True)
    assert "Warning" not in (await http.post(PODS, json=pod("a"))).headers


async def test_protobuf_is_refused_with_a_hint(http: httpx.AsyncClient) -> None:
    answer = await http.post(PODS, content=b"k8s\0", headers={"content-type": "application/vnd.kubernetes.protobuf"})
    assert (answer.status_code, "kubectl run" in answer.json()["message"]) == (415, True)
