"""Percentages on cards of real sizes: the extender places as many pods on each card as the percentage says."""

import json

import pytest

from tests import strategies
from tests.extender.conftest import PODS, World, add_node
from tests.extender.verbs import test_preempt as preemption
from vgpu.domain import slices
from vgpu.domain.cards.share import NodeState
from vgpu.domain.identifiers import NodeName
from vgpu.domain.json_types import JsonObject

NODE = NodeName("n4")


async def create(world: World, name: str, memory_mib: int, containers: int, **amounts: int) -> JsonObject:
    """Create a pod with equal containers, as the webhook admits it."""
    made = strategies.pod(*(strategies.container(f"c{n}", **amounts) for n in range(containers)))
    obj = strategies.in_mib(made, strategies.card(0, memory_mib))
    obj["metadata"] = {"name": name, "namespace": "default"}
    del obj["spec"]["nodeName"]
    created: JsonObject = json.loads(await world.client.post(PODS, obj))
    await world.until(lambda: created["metadata"]["uid"] in world.cluster.objects.pods)
    return created


@pytest.mark.parametrize(
    ("memory_mib", "percent", "pods", "containers", "gpus"),
    [(81_008, 50, 4, 1, 1), (143_771, 25, 4, 1, 2), (24_564, 10, 10, 2, 1), (15_360, 14, 7, 1, 2)],
)
async def test_both_cards_of_a_node_are_filled(
    world: World, memory_mib: int, percent: int, pods: int, containers: int, gpus: int
) -> None:
    await add_node(world.client, NODE, memory_mib)
    await world.until(lambda: isinstance(world.cluster.states.usable(NODE), NodeState))
    for number in range(pods):
        pod = await create(world, f"p{number}", memory_mib, containers, gpu_mem_percentage=percent, gpu=gpus)
        assert (await world.filter(pod, NODE))["NodeNames"] == [NODE]
        assert await world.bind(pod, NODE) == ""
    pod = await create(world, "more", memory_mib, containers, gpu_mem_percentage=percent, gpu=gpus)
    assert (await world.filter(pod, NODE))["NodeNames"] == []
    assert "CardInsufficientMemory" in await world.bind(pod, NODE)


async def test_half_of_a_card_takes_the_place_of_one_half(world: World) -> None:
    await add_node(world.client, NODE, 81_008)
    await world.until(lambda: isinstance(world.cluster.states.usable(NODE), NodeState))
    half = slices.percent_of(81_008, 50, strategies.SLICE_MIB)
    assert half is not None
    for number in range(4):
        await preemption.bound(world, f"low-{number}", number, half.memory_mib, NODE)
    high = await preemption.create(world, "high", 10, half.memory_mib)
    assert (await world.filter(high, NODE))["NodeNames"] == []
    await preemption.deciding(world)
    assert await preemption.being_deleted(world) == {"low-0"}
