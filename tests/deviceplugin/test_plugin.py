"""Pods on their way through the plugin, between a kubelet and an API server."""

import asyncio
from typing import Any

import grpc
import msgspec
import pytest

from tests.deviceplugin.conftest import PODS, World
from tests.strategies import container
from tests.vgpu.node.builders import SLICE_MIB, sidecar, uuid
from vgpu import names, region
from vgpu.limits import CardLimit
from vgpu.policy import MemoryPolicy

GIB = 1 << 30
REPLICA_SET = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "r", "uid": "r", "controller": True}


def cards_of(running: World, pod: dict[str, Any], name: str = "main") -> set[str]:
    held = running.kubelet.given[pod["metadata"]["uid"]][name]
    return {each.partition("::")[0] for ids in held.values() for each in ids}


async def refused(running: World, pod: dict[str, Any], name: str = "main") -> str:
    with pytest.raises(grpc.aio.AioRpcError) as caught:
        await running.kubelet.start_container(pod, name)
    return caught.value.details() or ""


async def test_a_pod_gets_its_card_its_limits_and_a_fresh_region(running: World) -> None:
    pod = await running.run("p", container(gpu_mem=1000, gpu_cores=30), gpus=1)
    assert cards_of(running, pod) == {uuid(1)}
    assert running.limits(pod).cards == (CardLimit(uuid(1), 1000 << 20, 30),)
    assert region.decode(running.kubelet.mount(pod, "/run/vgpu/region").read_bytes()).processes == ()
    envs = running.kubelet.answers[pod["metadata"]["uid"], "main"].envs
    assert envs == {"NVIDIA_VISIBLE_DEVICES": uuid(1)}


@pytest.mark.parametrize("policy", MemoryPolicy)
async def test_the_memory_policy_reaches_the_limits(running: World, policy: MemoryPolicy) -> None:
    pod = await running.run("p", container(gpu_mem=1000), annotations={names.MEMORY_POLICY: policy})
    assert running.limits(pod).memory_policy is policy


async def test_a_burst_of_pods_each_gets_its_own(running: World) -> None:
    """Alternating cards and different cores, started together after each was admitted in turn."""
    pods = [await running.create(f"p{n}", container(gpu_mem=SLICE_MIB, gpu_cores=n + 1), gpus=n % 2) for n in range(12)]
    for pod in reversed(pods):
        await running.kubelet.admit(pod)
    await asyncio.gather(*(running.kubelet.start_container(pod) for pod in pods))
    for n, pod in enumerate(pods):
        assert running.limits(pod).cards == (CardLimit(uuid(n % 2), SLICE_MIB << 20, n + 1),)
    assert len(running.kubelet.preferences) == 12
    assert running.kubelet.lists_in_flight == 0


async def test_several_cards(running: World) -> None:
    pod = await running.run("p", container(gpu_mem=2048, gpu=2, gpu_cores=100), gpus={"main": (0, 1)})
    assert running.limits(pod).cards == tuple(CardLimit(uuid(n), GIB, 50) for n in range(2))


async def test_a_whole_card_and_its_slices_exclude_each_other(running: World) -> None:
    """By the proof; what the kubelet may give away stays as it is (docs/adr/0008)."""
    whole = await running.run("whole", container(gpu=1), gpus=0)
    assert running.limits(whole).cards == (CardLimit(uuid(0), None),)
    share = await running.create("share", gpus=0)
    await running.kubelet.admit(share)
    assert "CardHeldWhole" in await refused(running, share)
    await running.run("other", gpus=1)
    second = await running.create("second", container(gpu=1), gpus=1)
    await running.kubelet.admit(second)
    assert "CardInUse" in await refused(running, second)
    clients = running.kubelet.clients
    assert (len(clients[names.SLICE].healthy), len(clients[names.CARD].healthy)) == (16, 2)
    await running.end(whole)
    await running.until(lambda: _starts(running, share))


async def test_init_containers_sidecars_and_two_containers_each_get_their_limits(running: World) -> None:
    pod = await running.run(
        "p",
        container("one", gpu_mem=512, gpu_cores=20),
        container("two", gpu_mem=300),
        init=(sidecar("side", gpu_mem=256), container("init", gpu_mem=700)),
    )
    got = {name: running.limits(pod, name).cards[0] for name in ("init", "side", "one", "two")}
    assert {name: limit.memory_bytes // (1 << 20) for name, limit in got.items() if limit.memory_bytes} == {
        "init": 700,
        "side": 256,
        "one": 512,
        "two": 300,
    }
    assert {name: limit.cores for name, limit in got.items()} == {"init": 0, "side": 0, "one": 20, "two": 0}


async def test_a_pod_of_init_containers_alone_is_never_listed_and_runs(running: World) -> None:
    pod = await running.run("p", {"name": "main"}, init=(container("a", gpu_mem=512), container("b", gpu_mem=300)))
    assert running.limits(pod, "a").cards == (CardLimit(uuid(0), 512 << 20, 0),)
    assert running.limits(pod, "b").cards == (CardLimit(uuid(0), 300 << 20, 0),)
    await running.until(lambda: _held(running, 2))


async def test_a_restart_finds_the_region_fresh(running: World) -> None:
    pod = await running.run("p")
    path = running.kubelet.mount(pod, "/run/vgpu/region")
    path.write_bytes(b"x" * region.SIZE)
    await running.kubelet.start_container(pod)
    assert region.decode(path.read_bytes()).cards == ()


async def test_all_that_is_left_goes_without_asking_and_is_proven_later(running: World) -> None:
    """The kubelet asks for no preference where it needs every free device; List names the holder then."""
    running.driver.cards.pop()
    await running.stop_plugin()
    running.start_plugin()
    await running.until_registered()
    pod = await running.run("p", container(gpu_mem=2048))
    assert running.kubelet.preferences == []
    assert running.limits(pod).cards == (CardLimit(uuid(0), 2 * GIB, 0),)


async def test_get_may_be_missing(running: World) -> None:
    running.kubelet.gets_fail = True
    pod = await running.run("p")
    assert running.limits(pod).cards[0].gpu == uuid(0)


async def test_without_pod_resources_it_answers_and_refuses_later(running: World) -> None:
    """An error from GetPreferredAllocation or Allocate would make the pod Failed for good."""
    running.kubelet.is_silent = True
    pod = await running.create("p", gpus=1)
    await running.kubelet.admit(pod)
    assert cards_of(running, pod) == {uuid(0)}
    running.kubelet.is_silent = False
    assert "CardMismatch" in await refused(running, pod)
    assert running.limits(pod).cards == ()


async def test_a_pod_the_watch_does_not_know_yet_is_fetched(running: World) -> None:
    first = await running.create("p", gpus=1)
    await running.kubelet.admit(first)
    await running.kubelet.start_container(first)
    assert running.limits(first).cards[0].gpu == uuid(1)


async def test_a_recreated_pod_of_the_same_name_gets_its_own_limits(running: World) -> None:
    old = await running.run("p", container(gpu_mem=1024, gpu_cores=10))
    await running.end(old)
    new = await running.create("p", container(gpu_mem=1000, gpu_cores=20), uid="another")
    await running.kubelet.admit(new)
    await running.kubelet.start_container(new)
    assert running.limits(new).cards == (CardLimit(uuid(0), 1000 << 20, 20),)
    assert running.limits(old).cards == (CardLimit(uuid(0), 1024 << 20, 10),)


async def test_a_card_that_was_not_assigned_is_refused_reported_and_evicted(running: World) -> None:
    pod = await running.create("p", gpus=0, owner=REPLICA_SET)
    running.kubelet.is_silent = True
    await running.kubelet.admit(pod)
    running.kubelet.is_silent = False
    uid = pod["metadata"]["uid"]
    wrong = frozenset(each.replace(uuid(0), uuid(1)) for each in running.kubelet.given[uid]["main"][names.SLICE])
    await _hand_out(running, pod, wrong)
    assert "CardMismatch" in await refused(running, pod)
    assert "CardMismatch" in await refused(running, pod)
    await running.until(lambda: _told(running, [("p", "CardMismatch")]))
    await running.until(lambda: _is_leaving(running, "p"))


async def test_what_does_not_fit_is_refused_until_it_does(running: World) -> None:
    """Both are assigned more of the card's time than there is."""
    first = await running.run("first", container(gpu_mem=512, gpu_cores=60))
    second = await running.create("second", container(gpu_mem=512, gpu_cores=60))
    await running.kubelet.admit(second)
    assert "CardInsufficientCores" in await refused(running, second)
    assert running.limits(second).cards == ()
    await running.end(first)
    await running.until(lambda: _starts(running, second))


async def test_two_starts_at_once_see_each_other(running: World) -> None:
    pods = [await running.create(f"p{n}", container(gpu_mem=256, gpu_cores=60)) for n in range(4)]
    for pod in pods:
        await running.kubelet.admit(pod)
    answers = await asyncio.gather(*(running.kubelet.start_container(pod) for pod in pods), return_exceptions=True)
    assert [isinstance(each, grpc.aio.AioRpcError) for each in answers].count(False) == 1


async def test_of_two_holders_of_an_id_the_first_wins(running: World) -> None:
    first = await running.run("first")
    second = await running.create("second")
    running.kubelet.pods[second["metadata"]["uid"]] = second
    ids = running.kubelet.given[first["metadata"]["uid"]]["main"][names.SLICE]
    await _hand_out(running, second, ids)
    assert "HeldTwice" in await refused(running, second)
    await running.end(second)
    await running.kubelet.start_container(first)
    assert running.limits(first).cards[0].memory_bytes == GIB


async def test_a_pod_without_an_assignment_is_refused(running: World) -> None:
    pod = await running.create("p", gpus=None)
    await running.kubelet.admit(pod)
    assert "NoAssignment" in await refused(running, pod)


async def test_devices_nobody_recorded_are_refused(running: World) -> None:
    pod = await running.create("p")
    running.kubelet.given[pod["metadata"]["uid"]]["main"][names.SLICE] = frozenset({f"{uuid(0)}::0"})
    assert "AllocationLost" in await refused(running, pod)


async def _hand_out(running: World, pod: dict[str, Any], ids: frozenset[str]) -> None:
    """Make the kubelet give these very IDs, as its bugs may."""
    from deviceplugin.kubelet.api import deviceplugin_pb2 as api  # noqa: PLC0415 - the one message spoken here

    one = api.ContainerAllocateRequest(devices_ids=sorted(ids))
    answer = await running.kubelet.clients[names.SLICE].call(
        "Allocate", api.AllocateRequest(container_requests=[one]), api.AllocateResponse
    )
    uid = pod["metadata"]["uid"]
    running.kubelet.given[uid]["main"][names.SLICE] = ids
    running.kubelet.answers[uid, "main"] = answer.container_responses[0]


async def _starts(running: World, pod: dict[str, Any]) -> bool:
    try:
        await running.kubelet.start_container(pod)
    except grpc.aio.AioRpcError:
        return False
    return True


async def _held(running: World, number: int) -> bool:
    return [card["heldSlices"] for card in await running.cards()] == [number, 0]


async def _told(running: World, events: list[tuple[str, str]]) -> bool:
    return await running.events() == events


async def _is_leaving(running: World, name: str) -> bool:
    pod = msgspec.json.decode(await running.client.get(f"{PODS}/{name}"))
    return "deletionTimestamp" in pod["metadata"]
