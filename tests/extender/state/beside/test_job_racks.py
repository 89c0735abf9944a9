"""Pods of one job by racks, through filter, prioritize and bind."""

from typing import Any

import pytest

from extender.verbs import preferences
from tests.extender.conftest import World
from vgpu.domain import names
from vgpu.domain.identifiers import NodeName

NODES = (NodeName("n1"), NodeName("n2"), NodeName("n3"))
RACKS = dict(zip(NODES, "aba", strict=True))


async def label(world: World) -> None:
    """Put the nodes into two racks."""
    for name, rack in RACKS.items():
        await world.client.patch(f"/api/v1/nodes/{name}", {"metadata": {"labels": {names.RACK: rack}}})
    await world.until(lambda: all(world.cluster.objects.nodes[name].rack == rack for name, rack in RACKS.items()))


async def create(world: World, policy: str, job: str = "train") -> dict[str, Any]:
    owner = {"apiVersion": "batch/v1", "kind": "Job", "name": job, "uid": job, "controller": True}
    metadata = {"ownerReferences": [owner], "annotations": {names.RACK_POLICY: policy} if policy else {}}
    return await world.create_pod(metadata=metadata, gpu=1)


async def best(world: World, pod: dict[str, Any], *asked: str) -> str:
    scores = await world.prioritize(pod, *(asked or NODES))
    return str(max(scores, key=lambda scored: int(scored["Score"]))["Host"])


@pytest.mark.parametrize(("policy", "racks"), [("pack", "aa"), ("spread", "ab")])
async def test_the_second_pod_of_a_job_goes_where_its_policy_says(world: World, policy: str, racks: str) -> None:
    """The first pod is bound and not seen yet by a watch: a reservation counts too."""
    await label(world)
    first, second = await create(world, policy), await create(world, policy)
    world.stop_watching()
    assert await world.bind(first, "n1") == ""
    chosen = await best(world, second, "n2", "n3")
    assert "a" + RACKS[NodeName(chosen)] == racks


async def test_the_pods_of_other_jobs_and_pods_without_the_policy_are_not_counted(world: World) -> None:
    await label(world)
    plain, other = await create(world, ""), await create(world, "pack", "other")
    assert [await world.bind(pod, "n1") for pod in (plain, other)] == ["", ""]
    await world.until_bound_is_watched(other)
    pod = await create(world, "pack")
    assert preferences.rack_tiers(world.cluster, world.cluster.objects.pods[pod["metadata"]["uid"]], NODES) == {}


async def test_a_deleted_pod_counts_no_longer(world: World) -> None:
    await label(world)
    first, second = await create(world, "pack"), await create(world, "pack")
    assert await world.bind(first, "n1") == ""
    await world.until_bound_is_watched(first)
    seen = world.cluster.objects.pods[second["metadata"]["uid"]]
    assert preferences.rack_tiers(world.cluster, seen, NODES) == {"n1": 0, "n2": 1, "n3": 0}
    await world.delete_pod(first)
    assert preferences.rack_tiers(world.cluster, seen, NODES) == {}


async def test_racks_refuse_no_node(world: World) -> None:
    await label(world)
    first, second = await create(world, "pack"), await create(world, "pack")
    assert await world.bind(first, "n1") == ""
    await world.until_bound_is_watched(first)
    assert (await world.filter(second))["NodeNames"] == list(NODES)
    assert await best(world, second, "n2") == "n2"
