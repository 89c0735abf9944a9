"""Containers that the plugin refuses to start: with a wrong card, without room, or without a known holder."""

import asyncio
from typing import Any

import grpc
import msgspec
import pytest

from tests.deviceplugin.conftest import PODS, World
from tests.strategies import container
from tests.vgpu.node.builders import NODE, uuid
from vgpu.domain import names

GIB = 1 << 30
REPLICA_SET = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "r", "uid": "r", "controller": True}


@pytest.fixture
async def impatient_world(idle_world: World) -> World:
    """A world whose plugin soon ends a search that finds nothing."""
    idle_world.search_s = 0.3
    idle_world.start_plugin()
    await idle_world.until_registered()
    return idle_world


async def test_without_pod_resources_a_pod_is_admitted_and_refused_at_its_start(
    impatient_world: World,
) -> None:
    """An error from GetPreferredAllocation or Allocate would make the pod Failed for good."""
    world = impatient_world
    world.kubelet.lists_fail = True
    pod = await world.create("p", gpus=1)
    await world.kubelet.admit(pod)
    assert world.cards_of(pod) == {uuid(0)}
    world.kubelet.lists_fail = False
    assert "CardMismatch" in await world.refusal(pod)
    assert world.limits(pod).cards == ()


async def test_while_no_file_can_be_made_a_pod_is_admitted_and_its_start_is_refused_until_one_can(world: World) -> None:
    """As on a full disk: an error from Allocate would make the pod Failed for good."""
    allocations = world.state / "allocations"
    allocations.rename(world.state / "away")
    allocations.touch()
    pod = await world.create("p", gpus=1)
    await world.kubelet.admit(pod)
    assert "FilesFailed" in await world.refusal(pod)
    allocations.unlink()
    (world.state / "away").rename(allocations)
    await world.until(lambda: world.can_start(pod))
    assert [card.gpu for card in world.limits(pod).cards] == [uuid(1)]
    await world.stop_plugin()
    world.start_plugin()
    await world.until_registered()
    assert await world.can_start(pod), "the record was saved at the start"


@pytest.mark.heavy
async def test_a_card_that_was_not_assigned_is_refused_and_an_eviction_is_asked_for(
    impatient_world: World,
) -> None:
    world = impatient_world
    pod = await world.create("p", gpus=0, owner=REPLICA_SET)
    world.kubelet.lists_fail = True
    await world.kubelet.admit(pod)
    world.kubelet.lists_fail = False
    uid = pod["metadata"]["uid"]
    ids_of_other_card = frozenset(
        device_id.replace(uuid(0), uuid(1)) for device_id in world.kubelet.allocations[uid]["main"][names.SLICE]
    )
    await _allocate(world, pod, ids_of_other_card)
    assert "CardMismatch" in await world.refusal(pod)
    assert "CardMismatch" in await world.refusal(pod)
    await world.until(lambda: _reports(world, [("default/p", "CardMismatch", True)]))
    assert await world.events() == []  # the plugin has no right to write Events, nor to evict
    assert "deletionTimestamp" not in msgspec.json.decode(await world.client.get(f"{PODS}/p"))["metadata"]
    await world.end(pod)
    await world.until(lambda: _reports(world, []))


async def test_a_pod_that_does_not_fit_is_refused_until_another_ends(world: World) -> None:
    """The two assignments need 120 % of the card's time."""
    first = await world.run("first", container(gpu_mem=512, gpu_cores=60))
    second = await world.create("second", container(gpu_mem=512, gpu_cores=60))
    await world.kubelet.admit(second)
    assert "CardInsufficientCores" in await world.refusal(second)
    assert world.limits(second).cards == ()
    await world.end(first)
    await world.until(lambda: world.can_start(second))


@pytest.mark.heavy
async def test_what_a_pod_deleted_by_force_uses_is_given_out_only_after_its_processes_have_ended(world: World) -> None:
    """The kubelet offers its devices to the next pod at once, while its container ignores SIGTERM."""
    gone = await world.run("gone", container(gpu_mem=1536))
    allocation = world.kubelet.mount(gone, "/run/vgpu/limits").parent.name
    world.processes.using = {allocation}
    ids = world.kubelet.allocations[gone["metadata"]["uid"]]["main"][names.SLICE]
    world.kubelet.end(gone["metadata"]["uid"])
    await world.force_delete(gone)
    await world.until(lambda: _is_gone(world, "gone"))
    small, large = await world.create("small", container(gpu_mem=512)), await world.create("large")
    await world.kubelet.admit(small)
    assert ids.isdisjoint(world.kubelet.allocations[small["metadata"]["uid"]]["main"][names.SLICE])
    await world.kubelet.start_container(small)
    await world.until(lambda: _holds(world, 8))
    world.kubelet.pods[large["metadata"]["uid"]] = large
    await _allocate(world, large, frozenset(sorted(ids)[:4]))
    assert "has 0 MiB free of 1024" in await world.refusal(large)
    world.processes.using = set()
    await world.until(lambda: world.can_start(large))
    await world.until(lambda: _holds(world, 6))


async def _is_gone(world: World, name: str) -> bool:
    listed = msgspec.json.decode(await world.client.get(PODS))
    return name not in [item["metadata"]["name"] for item in listed["items"]]


async def _holds(world: World, slices: int) -> bool:
    return bool((await world.cards())[0]["heldSlices"] == slices)


async def test_of_concurrent_starts_only_one_gets_the_cards_time(world: World) -> None:
    pods = [await world.create(f"p{n}", container(gpu_mem=256, gpu_cores=60)) for n in range(4)]
    for pod in pods:
        await world.kubelet.admit(pod)
    results = await asyncio.gather(*(world.kubelet.start_container(pod) for pod in pods), return_exceptions=True)
    assert [isinstance(result, grpc.aio.AioRpcError) for result in results].count(False) == 1


async def test_of_two_holders_of_an_id_the_first_recorded_wins(world: World) -> None:
    first = await world.run("first")
    second = await world.create("second")
    world.kubelet.pods[second["metadata"]["uid"]] = second
    ids = world.kubelet.allocations[first["metadata"]["uid"]]["main"][names.SLICE]
    await _allocate(world, second, ids)
    assert "HeldTwice" in await world.refusal(second)
    await world.end(second)
    await world.kubelet.start_container(first)
    assert world.limits(first).cards[0].memory_bytes == GIB


async def test_a_pod_without_an_assignment_is_refused(world: World) -> None:
    pod = await world.create("p", gpus=None)
    await world.kubelet.admit(pod)
    assert "NoAssignment" in await world.refusal(pod)


async def test_devices_without_a_recorded_allocation_are_refused(world: World) -> None:
    pod = await world.create("p")
    world.kubelet.allocations[pod["metadata"]["uid"]]["main"][names.SLICE] = frozenset({f"{uuid(0)}::0"})
    assert "AllocationLost" in await world.refusal(pod)


async def _allocate(world: World, pod: dict[str, Any], ids: frozenset[str]) -> None:
    """Make the kubelet give a pod these IDs, whatever the plugin prefers."""
    from deviceplugin.kubelet.api import deviceplugin_pb2 as api  # noqa: PLC0415 - used here only

    one = api.ContainerAllocateRequest(devices_ids=sorted(ids))
    response = await world.kubelet.clients[names.SLICE].call(
        "Allocate", api.AllocateRequest(container_requests=[one]), api.AllocateResponse
    )
    uid = pod["metadata"]["uid"]
    world.kubelet.allocations[uid]["main"][names.SLICE] = ids
    world.kubelet.responses[uid, "main"] = response.container_responses[0]


async def _reports(world: World, expected: list[tuple[str, str, bool]]) -> bool:
    status = msgspec.json.decode(await world.client.get(f"{names.GPUNODES_PATH}/{NODE}"))["status"]
    return [(refusal["pod"], refusal["reason"], refusal["evict"]) for refusal in status["refusals"]] == expected
