"""Preferred affinity through filter, prioritize and bind: cards are preferred, and no pod waits for them."""

from typing import Any

import pytest

from tests.extender.conftest import World
from vgpu.domain import names
from vgpu.domain.grants import assignment
from vgpu.domain.identifiers import ContainerName, NodeName

NODES = (NodeName("n1"), NodeName("n2"), NodeName("n3"))
ONLINE = "class=online"


async def create(world: World, mem: int = 512, labels: str = "", **preferred: str) -> dict[str, Any]:
    kinds = {"beside": names.PREFERRED_GPU_AFFINITY, "apart": names.PREFERRED_GPU_ANTI_AFFINITY}
    metadata = {
        "labels": dict(label.split("=") for label in labels.split(",") if label),
        "annotations": {kinds[kind]: value for kind, value in preferred.items()},
    }
    return await world.create_pod(metadata=metadata, gpu_mem=mem)


async def bind(world: World, pod: dict[str, Any], node: str) -> str:
    """Bind a pod, and return its card."""
    assert await world.bind(pod, node) == ""
    await world.until_bound_is_watched(pod)
    bound = await world.read(pod)
    return (
        assignment.decode(bound["metadata"]["annotations"][names.ASSIGNMENT]).containers[ContainerName("main")][0].gpu
    )


async def best(world: World, pod: dict[str, Any]) -> str:
    fitting = (await world.filter(pod))["NodeNames"]
    assert fitting == list(NODES)
    scores = await world.prioritize(pod, *fitting)
    return str(max(scores, key=lambda scored: int(scored["Score"]))["Host"])


@pytest.mark.parametrize("node", NODES)
async def test_batch_work_goes_onto_the_cards_of_online_work(world: World, node: str) -> None:
    """Every node in turn has the online pod: no packing policy prefers all of them."""
    for other in NODES:
        await bind(world, await create(world, 1024), other)  # the fullest card everywhere
    online = await bind(world, await create(world, 1536, ONLINE), node)
    batch = await create(world, beside=ONLINE)
    assert await best(world, batch) == node
    assert await bind(world, batch, node) == online


@pytest.mark.parametrize("node", NODES)
async def test_online_pods_avoid_each_others_cards(world: World, node: str) -> None:
    first = await bind(world, await create(world, 512, ONLINE), node)
    second = await create(world, 512, ONLINE, apart=ONLINE)
    assert (await bind(world, second, node)) != first
    third = await create(world, 512, ONLINE, apart=ONLINE)
    assert await best(world, third) != node, "both cards of the node have an online pod"


async def test_a_preference_that_no_card_can_meet_is_left_out(world: World) -> None:
    assert await best(world, await create(world, beside=ONLINE)) in NODES
    online = await bind(world, await create(world, 2048, ONLINE), "n1")
    assert await bind(world, await create(world, beside=ONLINE), "n1") != online
    apart = [await bind(world, await create(world, 1024, ONLINE, apart=ONLINE), "n2") for _ in range(4)]
    assert len(set(apart)) == 2


async def test_a_preference_that_cannot_be_read_is_refused(world: World) -> None:
    pod = await create(world, beside="online")
    assert (await world.filter(pod))["NodeNames"] == []
