"""Percentages on cards of real sizes: the node starts as many pods on each card as the percentage says."""

import pytest

from tests import strategies
from tests.deviceplugin.conftest import World
from tests.vgpu.node.builders import SLICE_MIB, gpu, uuid
from vgpu.domain import names, slices


@pytest.mark.heavy
@pytest.mark.parametrize(
    ("memory_mib", "percent", "gpus"), [(81_008, 50, 1), (143_771, 25, 1), (24_564, 10, 1), (15_360, 14, 2)]
)
async def test_a_card_is_filled_and_each_pod_gets_its_limits(
    idle_world: World, memory_mib: int, percent: int, gpus: int
) -> None:
    world = idle_world
    world.driver.cards = [gpu(0, memory_mib), gpu(1, memory_mib)]
    world.start_plugin()
    await world.until_registered()
    asked = strategies.pod(strategies.container(gpu_mem_percentage=percent, gpu=gpus))
    (container,) = strategies.in_mib(asked, strategies.card(0, memory_mib))["spec"]["containers"]
    numbers = tuple(range(gpus))
    part = slices.percent_of(memory_mib, percent, SLICE_MIB)
    assert part is not None
    for count in range(100 // percent):
        pod = await world.run(f"p{count}", container, gpus={"main": numbers})
        given = {limit.gpu: limit.memory_bytes for limit in world.limits(pod).cards}
        assert given == {uuid(n): part.memory_mib << 20 for n in numbers}
    assert len(world.kubelet.allocated(names.SLICE)) == 100 // percent * part.slices * gpus
