"""Members whose processes are no clients of an MPS server, and do not say so, as the plugin tells of them."""

import pytest

from tests.deviceplugin.conftest import PODS, World
from tests.deviceplugin.metrics.test_metrics import has, served
from tests.deviceplugin.test_uninvited import ID as CONTAINER
from tests.deviceplugin.test_uninvited import looked_again, reports, use, with_status
from tests.strategies import container
from tests.vgpu.node.builders import uuid
from vgpu.domain import names
from vgpu.domain.json_types import JsonObject

__all__ = ["served"]  # a fixture


async def member(world: World) -> JsonObject:
    """A running pod that is said to be of a group; no daemon serves it here, so it is said after its start."""
    await world.run("p", container("main", gpu_mem=512))
    await world.client.patch(f"{PODS}/p", {"metadata": {"annotations": {names.COMPUTE_POLICY: "space"}}})
    return await with_status(world, "p", main=CONTAINER)


async def is_told(world: World, reason: str) -> bool:
    """Whether the one report and the condition say it; an empty reason: neither does."""
    conditions = (await world.gpunode())["status"]["conditions"]
    (status,) = [found["status"] for found in conditions if found["type"] == "SpaceJoined"] or [""]
    told = [report["reason"] for report in await reports(world) if report["reason"] == names.SPACE_NOT_JOINED]
    return told == ([reason] if reason else []) and status == ("False" if reason else "True")


@pytest.mark.heavy
async def test_a_program_without_the_limiter_that_is_no_client_is_reported_until_it_is_one(
    idle_world: World, served: str
) -> None:
    pod = await member(idle_world)
    use(idle_world, 0, pod, pid=4711)
    use(idle_world, 0, pod, pid=4712)
    idle_world.driver.clients[uuid(0)] = {4712}
    await idle_world.until(lambda: is_told(idle_world, names.SPACE_NOT_JOINED))
    (report,) = [found for found in await reports(idle_world) if found["reason"] == names.SPACE_NOT_JOINED]
    assert "container main: 1" in report["message"]
    await idle_world.until(lambda: has(served, 'vgpu_container_processes_outside_group{container="main"', "} 1"))
    idle_world.driver.clients[uuid(0)].add(4711)
    await idle_world.until(lambda: is_told(idle_world, ""))
    await idle_world.until(lambda: has(served, 'vgpu_container_processes_outside_group{container="main"', "} 0"))


async def test_a_pod_outside_of_groups_is_not_asked_about(world: World) -> None:
    pod = await with_status(world, "p", main=CONTAINER) if await world.run("p", container("main", gpu_mem=512)) else {}
    use(world, 0, pod, pid=4711)
    await looked_again(world)
    conditions = (await world.gpunode())["status"]["conditions"]
    assert not [found for found in conditions if found["type"] == "SpaceJoined"]
