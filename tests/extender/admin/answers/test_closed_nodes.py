"""A node that is cordoned in Kubernetes, or not Ready, takes no pods now: every view of the cluster says so."""

from typing import Any

import pytest

from tests.extender.admin.conftest import Admin
from tests.extender.test_metrics import text as extender_metrics
from tests.vgpu.cli.cluster.conftest import Server, run, server
from vgpu.domain.identifiers import NodeName

__all__ = ["server"]  # a fixture

MANIFEST = {"spec": {"containers": [{"name": "main", "resources": {"limits": {"vgpu.io/gpu-mem": 256}}}]}}
CORDONED = ("", {"spec": {"unschedulable": True}}, "NodeUnschedulable", "warning")
NOT_READY = ("/status", {"status": {"conditions": [{"type": "Ready", "status": "Unknown"}]}}, "NodeNotReady", "error")
UNREACHABLE = (
    "", {"spec": {"taints": [{"key": "node.kubernetes.io/unreachable", "effect": "NoExecute"}]}}, "NodeNotReady",
    "error",
)  # fmt: skip
WAYS = [CORDONED, NOT_READY, UNREACHABLE]


async def close(admin: Admin, node: str, way: tuple[str, dict[str, Any], str, str]) -> None:
    under, changed, _, _ = way
    await admin.world.client.patch(f"/api/v1/nodes/{node}{under}", changed)
    nodes = admin.world.cluster.objects.nodes
    await admin.world.until(lambda: nodes[NodeName(node)].marks.closed is not None)
    await admin.fresh()


@pytest.mark.parametrize("way", WAYS, ids=["cordoned", "not-ready", "unreachable"])
async def test_lists_and_totals_leave_a_closed_node_out_of_what_is_free(
    admin: Admin, way: tuple[str, dict[str, Any], str, str]
) -> None:
    pod = await admin.world.create_pod(gpu_mem=1024, gpu_cores=30)
    assert await admin.world.bind(pod, "n2") == ""
    await admin.world.until_bound_is_watched(pod)
    await close(admin, "n2", way)
    nodes = {row["name"]: row for row in (await admin.get("/nodes"))["items"]}
    assert [(row["usable"], row["reason"]) for row in nodes.values()] == [(True, ""), (False, way[2]), (True, "")]
    assert (nodes["n2"]["allocatedMiB"], nodes["n2"]["freeMiB"], nodes["n2"]["freeCores"]) == (1024, 0, 0)
    assert [row["name"] for row in (await admin.get("/nodes", usable="false"))["items"]] == ["n2"]
    gpus = (await admin.get("/gpus"))["items"]
    assert {(row["node"], row["nodeReason"], row["freeMiB"]) for row in gpus} == {
        ("n1", "", 2048), ("n2", way[2], 0), ("n3", "", 2048),
    }  # fmt: skip
    found = await admin.get("/summary")
    assert (found["nodes"], found["usableNodes"]) == (3, 2)
    for name in ("memoryMiB", "allocatedMiB", "freeMiB", "allocatedCores", "freeCores"):
        assert found[name] == sum(row[name] for row in nodes.values()) == sum(row[name] for row in gpus)
    (finding,) = found["findings"]
    assert (finding["severity"], finding["about"], finding["reason"]) == (way[3], "n2", way[2])


@pytest.mark.heavy
@pytest.mark.parametrize("way", WAYS, ids=["cordoned", "not-ready", "unreachable"])
async def test_metrics_simulations_and_commands_name_a_closed_node(
    admin: Admin, server: Server, way: tuple[str, dict[str, Any], str, str]
) -> None:
    await close(admin, "n2", way)
    blocked = f'vgpu_extender_blocked_nodes{{node="n2",reason="{way[2]}"}} 1.0'
    assert [line for line in extender_metrics(admin.world).splitlines() if line.startswith(blocked[:28])] == [blocked]
    simulated = await admin.post("/simulate", {"pods": [{"pod": MANIFEST}]})
    assert (simulated["before"]["gpus"], simulated["before"]["emptyGpus"]) == (4, 4)
    for path in ("/nodes", "/nodes/n2", "/gpus", "/summary"):
        server.answers[f"GET /api/v1{path}"] = (200, await admin.get(path))
    listed = [line.split()[:2] for line in run("get", "nodes", "--server", server.url)[1].splitlines()]
    assert listed[1:] == [["n1", "ok"], ["n2", way[2]], ["n3", "ok"]]
    assert f"Status:         {way[2]}" in run("describe", "node", "n2", "--server", server.url)[1]
    code, said = run("doctor", "--server", server.url)
    assert "3, of which 2 can be used" in said
    assert "nothing is wrong" not in said
    assert (way[2] in said, code) == (True, 1 if way[3] == "error" else 0)
    assert "4Gi on GPUs that are closed" in said


async def test_a_node_that_comes_back_is_usable_again(admin: Admin) -> None:
    await close(admin, "n2", CORDONED)
    await admin.world.client.patch("/api/v1/nodes/n2", {"spec": {"unschedulable": None}})
    await admin.world.until(lambda: admin.world.cluster.objects.nodes[NodeName("n2")].marks.closed is None)
    await admin.fresh()
    found = await admin.get("/summary")
    assert (found["usableNodes"], found["findings"], found["freeMiB"]) == (3, [], 6 * 2048)
