"""The plugin while it runs: registration, GPUNode, Lease, and restarts of the kubelet and of the plugin."""

import asyncio
import time
from contextlib import suppress

import grpc
import pytest

from deviceplugin.kubelet.registration import ListAndWatchStreams
from tests.deviceplugin.conftest import World
from tests.strategies import container
from tests.vgpu.node.builders import NODE, gpu, uuid
from vgpu.domain import names
from vgpu.domain.formats import region


async def test_the_gpunode_is_created_with_the_node_as_owner(world: World) -> None:
    await world.until(world.cards)
    node = await world.gpunode()
    assert [owner["kind"] for owner in node["metadata"]["ownerReferences"]] == ["Node"]
    assert node["status"]["sliceMiB"] == 256
    assert node["status"]["conflicts"] == []
    assert node["status"]["cards"][1] == {
        "uuid": uuid(1),
        "index": 1,
        "model": "NVIDIA H100",
        "memoryMiB": 2048,
        "numaNode": -1,
        "nvlinkPeers": [],
        "healthy": True,
        "reason": "",
        "heldSlices": 0,
        "heldWhole": False,
        "migEnabled": False,
        "unified": False,
        "exclusiveProcess": False,
        "servesSpace": False,
    }


async def test_a_deleted_gpunode_is_created_again_at_the_next_change(world: World) -> None:
    await world.until(world.cards)
    await world.client.delete(f"{names.GPUNODES_PATH}/{NODE}")
    world.driver.ill[uuid(0)] = "GpuIsLost"
    await world.until(world.cards)


async def test_held_slices_are_published(world: World) -> None:
    share = await world.run("share", gpus=1)
    whole = await world.run("whole", container(gpu=1), gpus=0)

    async def held() -> list[tuple[int, bool]]:
        return [(card["heldSlices"], card["heldWhole"]) for card in await world.cards()]

    async def is_published(*expected: tuple[int, bool]) -> bool:
        return await held() == list(expected)

    await world.until(lambda: is_published((0, True), (4, False)))
    await world.end(share)
    await world.end(whole)
    await world.until(lambda: is_published((0, False), (0, False)), within_s=3)


async def test_a_deleted_gpunode_is_created_again(world: World) -> None:
    await world.until(world.cards)
    await world.client.delete(f"{names.GPUNODES_PATH}/{NODE}")
    await world.until(world.cards, within_s=3)


@pytest.mark.heavy
async def test_without_a_limiter_that_can_be_mounted_no_card_is_offered_and_no_container_starts(world: World) -> None:
    """A container whose loader finds a damaged library would run without limits."""
    pod = await world.create("p", gpus=1)
    await world.kubelet.admit(pod)
    libraries = world.state / "lib"
    libraries.rename(world.state / "away")
    libraries.touch()
    clients = world.kubelet.clients
    await world.until(lambda: not any(client.healthy for client in clients.values()))
    await world.until(lambda: _have_reason(world, "LimiterUnusable"))
    assert "without limits" in await world.refusal(pod)
    libraries.unlink()
    (world.state / "away").rename(libraries)
    await world.until(lambda: all(client.healthy for client in clients.values()))
    assert await world.can_start(pod)


async def test_a_damaged_library_is_repaired_while_the_plugin_runs(world: World) -> None:
    (library,) = world.state.glob("lib/*/libvgpushare.so")
    library.write_bytes(b"")

    def is_repaired() -> bool:
        with suppress(FileNotFoundError):  # the folder is moved away, and another one takes its place
            return library.read_bytes() == b"library"
        return False

    await world.until(is_repaired)


@pytest.mark.heavy
async def test_after_an_upgrade_a_restarted_container_gets_the_region_that_its_library_reads(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A container keeps the library that Allocate mounted; it would refuse a region of another version."""
    old = await world.run("old", gpus=1)
    await world.stop_plugin()
    (world.directory / "libvgpushare.so").write_bytes(b"upgraded")
    monkeypatch.setattr(region, "VERSION", region.VERSION + 1)
    world.start_plugin()
    await world.until_registered()
    await world.kubelet.start_container(old)
    new = await world.run("new", gpus=0)
    versions = [
        int.from_bytes(world.kubelet.mount(pod, "/run/vgpu/region").read_bytes()[8:12], "little") for pod in (old, new)
    ]
    assert versions == [region.VERSION - 1, region.VERSION]


async def _have_reason(world: World, reason: str) -> bool:
    return {card["reason"] for card in await world.cards()} == {reason}


async def test_a_card_with_a_fault_is_unhealthy_in_both_lists_and_recovers(world: World) -> None:
    async def has_fault() -> bool:
        cards = await world.cards()
        return [card["reason"] for card in cards] == ["GpuIsLost", ""]

    async def is_healthy() -> bool:
        return [card["healthy"] for card in await world.cards()] == [True, True]

    world.driver.ill[uuid(0)] = "GpuIsLost"
    await world.until(has_fault)
    assert world.kubelet.clients[names.CARD].healthy == {uuid(1)}
    assert len(world.kubelet.clients[names.SLICE].healthy) == 8
    world.driver.ill.clear()
    await world.until(is_healthy)
    assert world.kubelet.clients[names.CARD].healthy == {uuid(0), uuid(1)}


async def test_a_card_uuid_on_two_nodes_is_reported(idle_world: World) -> None:
    status = {"cards": [{"uuid": uuid(1)}, {"uuid": uuid(9)}]}
    await idle_world.client.post(names.GPUNODES_PATH, {"metadata": {"name": "other"}, "spec": {"cards": []}})
    await idle_world.client.patch(f"{names.GPUNODES_PATH}/other/status", {"status": status})
    idle_world.start_plugin()
    await idle_world.until(idle_world.cards)
    assert (await idle_world.gpunode())["status"]["conflicts"] == [f"{uuid(1)} is also on node other"]


@pytest.mark.heavy
async def test_the_lease_follows_the_registration(world: World) -> None:
    async def holder() -> str | None:
        record = await world.lease()
        return record.holder if record else None

    async def is_held() -> bool:
        return await holder() == NODE

    async def is_free() -> bool:
        return await holder() == ""

    await world.until(is_held)
    first = await world.lease()
    assert first is not None
    await asyncio.sleep(1.2)
    second = await world.lease()
    assert second is not None
    assert second.renewed > first.renewed
    await world.kubelet.stop()
    await world.until(is_free, within_s=1)
    await world.kubelet.start()
    await world.until(is_held, within_s=2)
    await world.stop_plugin()
    assert await is_free()


async def test_the_plugin_registers_with_a_restarted_kubelet_within_a_second(world: World) -> None:
    pod = await world.run("p", gpus=1)
    await world.kubelet.stop()
    await asyncio.sleep(0.2)
    await world.kubelet.start()
    started = time.monotonic()
    await world.until_registered()
    assert time.monotonic() - started < 1
    await world.kubelet.start_container(pod)
    assert world.limits(pod).cards[0].gpu == uuid(1)


async def test_a_live_stream_is_never_registered_over(world: World) -> None:
    await asyncio.sleep(0.5)
    assert sorted(world.kubelet.registrations) == [names.CARD, names.SLICE]


async def test_the_end_of_a_stream_leads_to_one_registration(world: World) -> None:
    await world.kubelet.end_stream(names.SLICE)
    await world.until(lambda: world.kubelet.registrations.count(names.SLICE) == 2, within_s=1)
    await world.until_registered()
    await asyncio.sleep(0.2)
    assert sorted(world.kubelet.registrations) == [names.CARD, names.SLICE, names.SLICE]


async def test_a_removed_socket_is_created_again(world: World) -> None:
    socket = world.settings.kubelet_dir / "device-plugins" / "vgpushare" / "slice.sock"
    socket.unlink()
    await world.kubelet.end_stream(names.SLICE)
    await world.until(lambda: world.kubelet.registrations.count(names.SLICE) == 2)
    await world.until_registered()
    assert socket.is_socket()


async def test_a_restarted_plugin_remembers_init_containers(world: World) -> None:
    pod = await world.create("p", {"name": "main"}, init=(container("a", gpu_mem=512, gpu_cores=7),))
    await world.kubelet.admit(pod)
    await world.stop_plugin()
    world.start_plugin()
    await world.until_registered()
    await world.kubelet.start_container(pod, "a")
    assert world.limits(pod, "a").cards[0].cores == 7


@pytest.mark.heavy
async def test_a_restarted_plugin_counts_the_running_pods(world: World) -> None:
    await world.run("first", container(gpu_mem=512, gpu_cores=60))
    await world.stop_plugin()
    world.start_plugin()
    await world.until_registered()
    second = await world.create("second", container(gpu_mem=512, gpu_cores=60))
    await world.kubelet.admit(second)
    with pytest.raises(grpc.aio.AioRpcError, match="CardInsufficientCores"):
        await world.kubelet.start_container(second)


@pytest.mark.heavy
async def test_short_pods_never_share_an_id(world: World) -> None:
    """Pods end while others are admitted: every ID has one holder, and every container its own limits."""
    numbers = iter(range(60))

    async def run_pods() -> None:
        for n in numbers:
            pod = await world.create(f"p{n}", container(gpu_mem=512, gpu_cores=1 + n % 20), gpus=n % 2)
            async with admitting:
                await world.kubelet.admit(pod)
            await world.kubelet.start_container(pod)
            ids = [
                device_id
                for pod_ids in world.kubelet.allocations.values()
                for device_id in pod_ids["main"].get(names.SLICE, ())
            ]
            assert len(ids) == len(set(ids))
            assert [(limit.gpu, limit.cores) for limit in world.limits(pod).cards] == [(uuid(n % 2), 1 + n % 20)]
            await world.end(pod)

    admitting = asyncio.Lock()
    await asyncio.gather(*(run_pods() for _ in range(3)))
    assert world.kubelet.lists_in_flight == 0


async def test_a_new_card_is_advertised(world: World) -> None:
    world.driver.cards.append(gpu(2))
    await world.until(lambda: len(world.kubelet.clients[names.CARD].devices) == 3)


async def test_streams_are_live_while_one_is_open() -> None:
    stream = ListAndWatchStreams()
    stream.begin()
    stream.begin()
    stream.end()
    assert stream.is_live
    assert await stream.wait_begun(0.01)
    stream.end()
    await asyncio.wait_for(stream.wait_ended(), 1)
    assert not await stream.wait_begun(0.01)
