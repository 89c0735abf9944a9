"""The plugin's own life: registration, status, the Lease, restarts of everybody."""

import asyncio
import time

import grpc
import pytest

from deviceplugin.kubelet.registration import Stream
from tests.deviceplugin.conftest import World
from tests.strategies import container
from tests.vgpu.node.builders import NODE, gpu, uuid
from vgpu import names


async def test_the_gpunode_is_made_owned_by_the_node(running: World) -> None:
    await running.until(running.cards)
    node = await running.gpunode()
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
    }


async def test_a_deleted_gpunode_is_made_again_at_the_next_change(running: World) -> None:
    await running.until(running.cards)
    await running.client.delete(f"{names.GPUNODES_PATH}/{NODE}")
    running.driver.ill[uuid(0)] = "GpuIsLost"
    await running.until(running.cards)


async def test_held_slices_are_published_and_taken_back(running: World) -> None:
    share = await running.run("share", gpus=1)
    whole = await running.run("whole", container(gpu=1), gpus=0)

    async def held() -> list[tuple[int, bool]]:
        return [(card["heldSlices"], card["heldWhole"]) for card in await running.cards()]

    async def shows(*expected: tuple[int, bool]) -> bool:
        return await held() == list(expected)

    await running.until(lambda: shows((0, True), (4, False)))
    await running.end(share)
    await running.end(whole)
    await running.until(lambda: shows((0, False), (0, False)), within_s=3)


async def test_an_ill_card_is_unhealthy_everywhere_and_recovers(running: World) -> None:
    async def sick() -> bool:
        cards = await running.cards()
        return [card["reason"] for card in cards] == ["GpuIsLost", ""]

    async def well() -> bool:
        return [card["healthy"] for card in await running.cards()] == [True, True]

    running.driver.ill[uuid(0)] = "GpuIsLost"
    await running.until(sick)
    assert running.kubelet.clients[names.CARD].healthy == {uuid(1)}
    assert len(running.kubelet.clients[names.SLICE].healthy) == 8
    running.driver.ill.clear()
    await running.until(well)
    assert running.kubelet.clients[names.CARD].healthy == {uuid(0), uuid(1)}


async def test_one_uuid_on_two_nodes_is_reported(world: World) -> None:
    status = {"cards": [{"uuid": uuid(1)}, {"uuid": uuid(9)}]}
    await world.client.post(names.GPUNODES_PATH, {"metadata": {"name": "other"}, "spec": {"cards": []}})
    await world.client.patch(f"{names.GPUNODES_PATH}/other/status", {"status": status})
    world.start_plugin()
    await world.until(world.cards)
    assert (await world.gpunode())["status"]["conflicts"] == [f"{uuid(1)} is also on node other"]


async def test_the_lease_follows_the_registration(running: World) -> None:
    async def holder() -> str | None:
        record = await running.lease()
        return record.holder if record else None

    async def is_held() -> bool:
        return await holder() == NODE

    async def is_free() -> bool:
        return await holder() == ""

    await running.until(is_held)
    first = await running.lease()
    assert first is not None
    await asyncio.sleep(1.2)
    second = await running.lease()
    assert second is not None
    assert second.renewed > first.renewed
    await running.kubelet.stop()
    await running.until(is_free, within_s=1)
    await running.kubelet.start()
    await running.until(is_held, within_s=2)
    await running.stop_plugin()
    assert await is_free()


async def test_a_restarted_kubelet_has_its_devices_back_within_a_second(running: World) -> None:
    pod = await running.run("p", gpus=1)
    await running.kubelet.stop()
    await asyncio.sleep(0.2)
    await running.kubelet.start()
    started = time.monotonic()
    await running.until_registered()
    assert time.monotonic() - started < 1
    await running.kubelet.start_container(pod)
    assert running.limits(pod).cards[0].gpu == uuid(1)


async def test_nobody_registers_over_a_live_stream(running: World) -> None:
    await asyncio.sleep(0.5)
    assert sorted(running.kubelet.registrations) == [names.CARD, names.SLICE]


async def test_a_stream_that_ends_means_register_again(running: World) -> None:
    await running.kubelet.end_stream(names.SLICE)
    await running.until(lambda: running.kubelet.registrations.count(names.SLICE) == 2, within_s=1)
    await running.until_registered()
    await asyncio.sleep(0.2)
    assert sorted(running.kubelet.registrations) == [names.CARD, names.SLICE, names.SLICE]


async def test_a_socket_that_vanished_is_made_again(running: World) -> None:
    socket = running.settings.kubelet_dir / "device-plugins" / "vgpushare" / "slice.sock"
    socket.unlink()
    await running.kubelet.end_stream(names.SLICE)
    await running.until(lambda: running.kubelet.registrations.count(names.SLICE) == 2)
    await running.until_registered()
    assert socket.is_socket()


async def test_a_restarted_plugin_remembers_init_containers(running: World) -> None:
    pod = await running.create("p", {"name": "main"}, init=(container("a", gpu_mem=512, gpu_cores=7),))
    await running.kubelet.admit(pod)
    await running.stop_plugin()
    running.start_plugin()
    await running.until_registered()
    await running.kubelet.start_container(pod, "a")
    assert running.limits(pod, "a").cards[0].cores == 7


async def test_a_restarted_plugin_counts_those_who_run(running: World) -> None:
    await running.run("first", container(gpu_mem=512, gpu_cores=60))
    await running.stop_plugin()
    running.start_plugin()
    await running.until_registered()
    second = await running.create("second", container(gpu_mem=512, gpu_cores=60))
    await running.kubelet.admit(second)
    with pytest.raises(grpc.aio.AioRpcError, match="CardInsufficientCores"):
        await running.kubelet.start_container(second)


async def test_a_churn_of_short_pods_never_shares_an_id(running: World) -> None:
    """Pods come and go while others are admitted; every ID has one holder, every container its own limits."""
    numbers = iter(range(60))

    async def live() -> None:
        for n in numbers:
            pod = await running.create(f"p{n}", container(gpu_mem=512, gpu_cores=1 + n % 20), gpus=n % 2)
            async with admitting:
                await running.kubelet.admit(pod)
            await running.kubelet.start_container(pod)
            ids = [each for held in running.kubelet.given.values() for each in held["main"].get(names.SLICE, ())]
            assert len(ids) == len(set(ids))
            assert [(limit.gpu, limit.cores) for limit in running.limits(pod).cards] == [(uuid(n % 2), 1 + n % 20)]
            await running.end(pod)

    admitting = asyncio.Lock()
    await asyncio.gather(*(live() for _ in range(3)))
    assert running.kubelet.lists_in_flight == 0


async def test_a_new_card_is_advertised(running: World) -> None:
    running.driver.cards.append(gpu(2))
    await running.until(lambda: len(running.kubelet.clients[names.CARD].devices) == 3)


async def test_a_stream_counts_while_any_is_open() -> None:
    stream = Stream()
    stream.begin()
    stream.begin()
    stream.end()
    assert stream.is_live
    assert await stream.wait_begun(0.01)
    stream.end()
    await asyncio.wait_for(stream.wait_ended(), 1)
    assert not await stream.wait_begun(0.01)
