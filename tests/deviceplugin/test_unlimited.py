"""Containers that use their share without its limits, as the plugin reports them in its GPUNode."""

from typing import Any

import pytest

from tests.deviceplugin.conftest import World, settings_of
from tests.deviceplugin.test_uninvited import ID, REPLICA_SET, reports, use, with_status
from tests.strategies import container
from tests.vgpu.node.builders import uuid
from vgpu.adapters import procfs
from vgpu.adapters.procfs import FileId
from vgpu.domain.formats import region
from vgpu.domain.json_types import JsonObject
from vgpu.domain.quantity import MIB

PID = 4711


async def sharing_pod(world: World, **more: Any) -> JsonObject:
    """A running pod with a share of 512 MiB, whose process uses its card by the rules, 100 MiB of it."""
    pod = await world.run("p", container("main", gpu_mem=512), **more)
    await with_status(world, "p", main=ID)
    use(world, 0, pod, pid=PID)
    world.processes.files[PID] = files_of(world, pod)
    return pod


def files_of(world: World, pod: JsonObject) -> frozenset[FileId]:
    """What the limiter maps: itself, the limits and the region."""
    paths = ("/usr/local/vgpu/libvgpushare.so", "/run/vgpu/limits", "/run/vgpu/region")
    return frozenset(procfs.file_id(world.kubelet.mount(pod, path)) for path in paths)


async def condition(world: World) -> JsonObject:
    listed = (await world.gpunode()).get("status", {}).get("conditions", [])
    return next((entry for entry in listed if entry["type"] == "LimitsEnforced"), {})


async def has_condition(world: World, reason: str) -> bool:
    return (await condition(world)).get("reason") == reason


async def reported(world: World) -> set[str]:
    return {report["reason"] for report in await reports(world)}


async def test_a_process_without_the_limiter_is_reported_until_it_ends(world: World) -> None:
    pod = await sharing_pod(world)
    await world.until(lambda: has_condition(world, "Enforced"))
    world.processes.files[PID] = frozenset({FileId(0, 1)})
    await world.until(lambda: has_condition(world, "LimiterNotLoaded"))
    (report,) = await reports(world)
    assert (report["podUID"], report["reason"], report["evict"]) == (pod["metadata"]["uid"], "LimiterNotLoaded", False)
    assert f"card 0 ({uuid(0)}) is used by pod default/p container main process 4711 (python3): " in report["message"]
    assert "has not loaded the container's limiter" in report["message"]
    world.driver.users.clear()
    await world.until(lambda: has_condition(world, "Enforced"))
    assert await reports(world) == []


@pytest.mark.heavy
async def test_memory_that_the_region_does_not_say_is_reported_and_a_restart_of_the_container_ends_it(
    world: World,
) -> None:
    pod = await sharing_pod(world)
    world.kubelet.mount(pod, "/run/vgpu/region").write_bytes(bytes(region.SIZE))
    world.driver.memory[PID] = 300 * MIB
    await world.until(lambda: has_condition(world, "RegionBelowUse"))
    assert "NVML counts 300 MiB" in (await condition(world))["message"]
    world.driver.memory[PID] = 900 * MIB
    await world.until(lambda: has_reasons(world, "RegionBelowUse", "MemoryBeyondLimit"))
    world.driver.users.clear()
    await world.kubelet.start_container(pod)
    await world.until(lambda: has_condition(world, "Enforced"))


async def has_reasons(world: World, *reasons: str) -> bool:
    return await reported(world) == set(reasons)


async def test_each_start_of_a_container_has_other_files(world: World) -> None:
    """A process of a former start of the container has mapped the files of that time."""
    pod = await sharing_pod(world)
    await world.until(lambda: has_condition(world, "Enforced"))
    await world.kubelet.start_container(pod)
    await world.until(lambda: is_not_enforced(world))  # which files differ depends on the numbers that are free
    world.processes.files[PID] = files_of(world, pod)
    await world.until(lambda: has_condition(world, "Enforced"))


async def is_not_enforced(world: World) -> bool:
    return bool((await condition(world))["status"] == "False")


async def test_the_setting_evict_asks_for_the_eviction_of_a_pod_with_a_controller(idle_world: World) -> None:
    idle_world.settings = settings_of(**{**idle_world.settings.model_dump(), "without_limits": "evict"})
    idle_world.start_plugin()
    await idle_world.until_registered()
    await sharing_pod(idle_world, owner=REPLICA_SET)
    idle_world.processes.files[PID] = frozenset()
    await idle_world.until(lambda: has_condition(idle_world, "LimiterNotLoaded"))
    assert [report["evict"] for report in await reports(idle_world)] == [True]


async def test_a_whole_card_may_be_used_without_the_limiter(world: World) -> None:
    pod = await world.run("whole", container(gpu=1))
    await with_status(world, "whole", main=ID)
    use(world, 0, pod, pid=PID)
    world.processes.files[PID] = frozenset()
    await sharing_pod_on_the_other_card(world)
    await world.until(lambda: has_condition(world, "LimiterNotLoaded"))
    assert [report["pod"] for report in await reports(world)] == ["default/shares"]


async def sharing_pod_on_the_other_card(world: World) -> None:
    pod = await world.run("shares", container("main", gpu_mem=512), gpus=1)
    await with_status(world, "shares", main="f" * 64)
    use(world, 1, pod, pid=PID + 1, container="f" * 64)
    world.processes.files[PID + 1] = frozenset()


async def test_where_mapped_files_cannot_be_compared_the_condition_is_unknown(idle_world: World) -> None:
    idle_world.processes.can_compare = False
    idle_world.start_plugin()
    await idle_world.until_registered()
    await sharing_pod(idle_world)
    idle_world.processes.files[PID] = frozenset()
    await idle_world.until(lambda: has_condition(idle_world, "FilesNotComparable"))
    assert (await condition(idle_world))["status"] == "Unknown"
    assert await reports(idle_world) == []
