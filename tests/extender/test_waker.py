"""Waiting pods are touched when a GPUNode or a Lease lets them in, because kube-scheduler sees neither."""

import asyncio
import json
from datetime import UTC, datetime
from typing import Any

from msgspec import structs

from extender import waker
from tests.extender.conftest import PODS, World, gpu_node
from vgpu import names
from vgpu.adapters.kubernetes import lease
from vgpu.errors import KubernetesError

Json = dict[str, Any]


async def waiting(world: World, *, gpu_mem: int = 2048) -> Json:
    """A pod that kube-scheduler found no node for."""
    pod = await world.create_pod(gpu_mem=gpu_mem)
    condition = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}
    await world.client.patch(f"{PODS}/{pod['metadata']['name']}/status", {"status": {"conditions": [condition]}})
    await world.until(lambda: world.cluster.objects.pods[pod["metadata"]["uid"]].is_unschedulable)
    return pod


async def woken(world: World) -> set[str]:
    for _ in range(30):
        world.clock.seconds += 0.01
        await asyncio.sleep(0.006)
    pods = json.loads(await world.client.get(PODS))["items"]
    return {
        pod["metadata"]["name"]
        for pod in pods
        if any(each["type"] == waker.CONDITION for each in pod["status"].get("conditions") or ())
    }


async def cordon(world: World, *, cordoned: bool) -> None:
    cards = [{"uuid": f"GPU-n1-{n}", "cordoned": cordoned} for n in range(2)]
    await world.client.patch(f"{names.GPUNODES_PATH}/n1", {"spec": {"cards": cards}})
    await world.until(
        lambda: all(card.cordoned is cordoned for card in world.cluster.objects.gpunodes["n1"].node.cards)
    )


async def test_an_uncordoned_node_wakes_as_many_pods_as_it_can_take(world: World) -> None:
    await cordon(world, cordoned=True)
    pods = [await waiting(world) for _ in range(5)]
    too_large = await waiting(world, gpu_mem=4096)
    assert await woken(world) == set()
    await cordon(world, cordoned=False)
    found = await woken(world)
    assert len(found) == 2
    assert found < {pod["metadata"]["name"] for pod in pods}
    assert too_large["metadata"]["name"] not in found


async def test_a_card_that_is_cordoned_wakes_nobody(world: World) -> None:
    await waiting(world)
    await cordon(world, cordoned=True)
    assert await woken(world) == set()


async def test_a_lease_that_is_renewed_again_wakes_pods_and_one_that_is_renewed_in_time_does_not(world: World) -> None:
    await waiting(world)
    await lease.renew(world.client, names.NAMESPACE, names.node_lease("n1"), "n1", 3, datetime.now(UTC))
    assert await woken(world) == set()
    world.clock.seconds += 60
    await lease.renew(world.client, names.NAMESPACE, names.node_lease("n1"), "n1", 3, datetime.now(UTC))
    assert len(await woken(world)) == 1


async def test_a_gpunode_that_comes_back_wakes_pods(world: World) -> None:
    await waiting(world)
    await delete_and_create(world)
    assert len(await woken(world)) == 1


async def test_a_replica_that_does_not_lead_touches_no_pod_until_it_leads(world: World) -> None:
    await waiting(world)
    world.leader.refusal_text = "NotLeader"
    await delete_and_create(world)
    assert await woken(world) == set()
    world.leader.refusal_text = ""
    world.clock.seconds += waker.RETRY_S
    assert len(await woken(world)) == 1


async def test_a_write_without_an_answer_is_sent_again_and_one_that_was_refused_is_not(world: World) -> None:
    for error, expected in ((KubernetesError(0, "TimeoutError", ""), 1), (KubernetesError(422, "Invalid", ""), 0)):
        pod = await waiting(world)
        world.client.status_faults = [error]
        await delete_and_create(world)
        assert await woken(world) == set()
        world.clock.seconds += waker.RETRY_S
        assert len(await woken(world)) == expected
        await world.client.delete(f"{PODS}/{pod['metadata']['name']}")


async def delete_and_create(world: World) -> None:
    await world.client.delete(f"{names.GPUNODES_PATH}/n1")
    await world.until(lambda: "n1" not in world.cluster.objects.gpunodes)
    await world.client.post(names.GPUNODES_PATH, gpu_node("n1"))
    await world.client.patch(f"{names.GPUNODES_PATH}/n1/status", {"status": gpu_node("n1")["status"]})


async def test_ten_thousand_waiting_pods_hold_up_no_verb_and_cost_few_writes(world: World) -> None:
    pod = world.cluster.objects.pods[(await waiting(world))["metadata"]["uid"]]
    await cordon(world, cordoned=True)
    for n in range(10_000):
        copy = structs.replace(pod, uid=f"u{n}", name=f"copy{n}")
        world.cluster.objects.put_pod(copy, copy.version)
        world.watches.pods.handler._waker.take(copy)  # type: ignore[attr-defined]
    latest = 0.0

    async def measure() -> None:
        nonlocal latest
        loop = asyncio.get_running_loop()
        while True:
            before = loop.time()
            await asyncio.sleep(0.001)
            latest = max(latest, loop.time() - before)

    measuring = asyncio.create_task(measure())
    await cordon(world, cordoned=False)
    await woken(world)
    measuring.cancel()
    assert latest < 0.25
