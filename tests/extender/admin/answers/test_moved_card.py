"""A card that two GPUNodes report: one answer in placement, totals, cordons, findings and Events."""

import asyncio
import json
from datetime import UTC, datetime
from typing import Any

import msgspec
import pytest

from tests.extender.admin.conftest import Admin
from tests.extender.conftest import PODS, World, add_duplicate
from vgpu.adapters.kubernetes import lease
from vgpu.domain import names
from vgpu.domain.identifiers import NodeName

pytestmark = pytest.mark.heavy

OLD, NEW = NodeName("n1"), NodeName("n4")


@pytest.fixture
async def moved(admin: Admin) -> Admin:
    """The first card of n1 was moved to n4, whose GPUNode is older. Plugin n1 has stopped; its GPUNode exists."""
    await asyncio.sleep(1.1)  # creation times are in whole seconds
    await add_duplicate(admin.world.client)
    body = msgspec.json.decode(await admin.world.client.get(f"{names.GPUNODES_PATH}/{OLD}"))
    await admin.world.client.delete(f"{names.GPUNODES_PATH}/{OLD}")
    await admin.world.until(lambda: OLD not in admin.world.cluster.objects.gpunodes)
    await asyncio.sleep(1.1)
    await admin.world.client.post(names.GPUNODES_PATH, {**body, "metadata": {"name": OLD}})
    await admin.world.client.patch(f"{names.GPUNODES_PATH}/{OLD}/status", {"status": body["status"]})
    await admin.world.until(lambda: counting(admin.world) == [OLD])
    return admin


def counting(world: World) -> list[NodeName]:
    """Return the nodes on which the card can be used."""
    states = world.cluster.states
    known = [node for node in (OLD, NEW) if node in world.cluster.objects.gpunodes]
    return [
        node
        for node in known
        for state in states.of(node).cards
        if state.card.uuid == "GPU-n1-0" and state.card.healthy
    ]


async def fall_silent(admin: Admin, *alive: str) -> None:
    """Let the Leases expire of all nodes but these."""
    admin.world.clock.seconds += 10
    for name in alive:
        node = NodeName(name)
        await lease.renew(admin.world.client, names.NAMESPACE, names.node_lease(node), node, 3, datetime.now(UTC))
        await admin.world.until(lambda node=node: admin.world.cluster.leases.is_fresh(names.node_lease(node)))


async def test_a_moved_card_counts_where_the_plugin_lives_without_a_deletion(moved: Admin) -> None:
    pod = await moved.world.create_pod(gpu_mem=2048, metadata={"annotations": {names.USE_GPU_UUID: "GPU-n1-0"}})
    assert (await moved.world.filter(pod, OLD, NEW))["NodeNames"] == [OLD]
    await fall_silent(moved, NEW)
    assert counting(moved.world) == [NEW]
    assert (await moved.world.filter(pod, OLD, NEW))["NodeNames"] == [NEW]
    assert await moved.world.bind(pod, NEW) == ""
    await fall_silent(moved, OLD)  # the plugin of the other node is back: the card was never moved
    assert counting(moved.world) == [OLD]


async def test_a_pod_that_waits_for_the_card_is_woken_when_the_old_plugin_falls_silent(moved: Admin) -> None:
    pod = await moved.world.create_pod(gpu_mem=2048, metadata={"annotations": {names.USE_GPU_UUID: "GPU-n1-0"}})
    unschedulable = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}
    path = f"{PODS}/{pod['metadata']['name']}/status"
    await moved.world.client.patch(path, {"status": {"conditions": [unschedulable]}})
    await moved.world.until(lambda: moved.world.cluster.objects.pods[pod["metadata"]["uid"]].is_unschedulable)
    moved.world.clock.seconds += 60
    await fall_silent(moved, NEW)

    async def touched() -> bool:
        conditions = (await moved.world.read(pod))["status"]["conditions"]
        return any("node n4 can take this pod" in condition.get("message", "") for condition in conditions)

    async with asyncio.timeout(10):
        while not await touched():
            moved.world.clock.seconds += 0.1
            await asyncio.sleep(0.05)


async def test_rest_cordons_the_card_where_it_counts(moved: Admin) -> None:
    await fall_silent(moved, NEW, "n2", "n3")
    row = await moved.post("/gpus/GPU-n1-0/cordon")
    assert (row["node"], row["cordoned"]) == (NEW, True)
    await moved.fresh()
    assert (await moved.get("/gpus/GPU-n1-0"))["node"] == NEW
    found = [json.loads(await moved.world.client.get(f"{names.GPUNODES_PATH}/{node}")) for node in (OLD, NEW)]
    assert [node.get("spec") for node in found] == [None, {"cards": [{"uuid": "GPU-n1-0", "cordoned": True}]}]


async def test_the_card_is_in_one_total_and_the_word_is_everywhere(moved: Admin) -> None:
    await fall_silent(moved, NEW, "n2", "n3")
    summary, nodes = await moved.get("/summary"), (await moved.get("/nodes"))["items"]
    assert (summary["gpus"], summary["healthyGpus"], summary["memoryMiB"]) == (7, 7, 7 * 2048)
    assert {node["name"]: (node["gpus"], node["memoryMiB"]) for node in nodes} == {
        "n1": (1, 2048), "n2": (2, 4096), "n3": (2, 4096), "n4": (2, 4096),
    }  # fmt: skip
    reported: list[dict[str, Any]] = (await moved.get("/gpus"))["items"]
    rows = {row["node"]: (row["countsOn"], row["reason"]) for row in reported if row["uuid"] == "GPU-n1-0"}
    assert rows == {OLD: (NEW, "DuplicateUUID"), NEW: ("", "")}
    (finding,) = [finding for finding in summary["findings"] if finding["reason"] == "DuplicateUUID"]
    assert finding["about"] == "n1 card 0 (GPU-n1-0)"
    assert finding["detail"].startswith("the card counts on node n4, whose device plugin reports it too; ")
    said: list[str] = []
    async with asyncio.timeout(10):
        while not said:
            said = [event["message"] for event in await moved.world.events() if event["involvedObject"]["name"] == OLD]
            await asyncio.sleep(0.05)
    assert said[-1].endswith("count on the node whose device plugin lives, not on this one: GPU-n1-0 on n4")


async def test_a_pod_that_holds_the_card_on_the_old_node_is_not_shown_on_the_new_one(moved: Admin) -> None:
    pod = await moved.world.create_pod(gpu_mem=1024, metadata={"annotations": {names.USE_GPU_UUID: "GPU-n1-0"}})
    assert await moved.world.bind(pod, OLD) == ""
    await moved.world.until_bound_is_watched(pod)
    await fall_silent(moved, NEW, "n2", "n3")
    reported: list[dict[str, Any]] = (await moved.get("/gpus"))["items"]
    held = {row["node"]: row["podCount"] for row in reported if row["uuid"] == "GPU-n1-0"}
    assert held == {OLD: 1, NEW: 0}
