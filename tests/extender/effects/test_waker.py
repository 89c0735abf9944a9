"""Waiting pods are touched when a GPUNode or a Lease lets them in, because kube-scheduler sees neither."""

import asyncio
import json
from datetime import UTC, datetime

import pytest
from msgspec import structs

from extender.effects import recent_nodes, waker
from tests import strategies
from tests.extender.conftest import PODS, World, gpu_node
from vgpu.adapters.kubernetes import lease
from vgpu.domain import names
from vgpu.domain.errors import KubernetesError
from vgpu.domain.identifiers import Namespace, NodeName, PodUid
from vgpu.domain.json_types import JsonObject


@pytest.fixture
async def world(world: World) -> World:
    """A cluster in which nothing has changed lately."""
    await renewing(world, recent_nodes.WITHIN_S)
    return world


async def renewing(world: World, seconds: float) -> None:
    """Let time pass while the device plugins renew their Leases, which last 3 s."""
    end = world.clock.seconds + seconds
    while world.clock.seconds <= end:
        world.clock.seconds += 2
        for node in map(NodeName, ("n1", "n2", "n3")):
            await renew(world, node)
            await world.until(lambda: world.cluster.leases.term(names.node_lease(node))[0] == world.clock.seconds)  # noqa: B023 - at once


async def renew(world: World, node: str) -> None:
    await lease.renew(world.client, names.NAMESPACE, names.node_lease(NodeName(node)), node, 3, datetime.now(UTC))


async def waiting(world: World, *, gpu_mem: int = 2048) -> JsonObject:
    """A pod that kube-scheduler found no node for."""
    pod = await world.create_pod(gpu_mem=gpu_mem)
    await refuse(world, pod)
    return pod


async def refuse(world: World, pod: JsonObject) -> None:
    """Write down that kube-scheduler found no node for a pod."""
    condition = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}
    await world.client.patch(f"{PODS}/{pod['metadata']['name']}/status", {"status": {"conditions": [condition]}})
    await world.until(lambda: world.cluster.objects.pods[pod["metadata"]["uid"]].is_unschedulable)


async def woken(world: World) -> set[str]:
    for _ in range(30):
        world.clock.seconds += 0.01
        await asyncio.sleep(0.006)
    pods = json.loads(await world.client.get(PODS))["items"]
    return {
        pod["metadata"]["name"]
        for pod in pods
        if any(condition["type"] == waker.CONDITION for condition in pod["status"].get("conditions") or ())
    }


async def cordon(world: World, *, cordoned: bool) -> None:
    cards = [{"uuid": f"GPU-n1-{n}", "cordoned": cordoned} for n in range(2)]
    await world.client.patch(f"{names.GPUNODES_PATH}/n1", {"spec": {"cards": cards}})
    await world.until(
        lambda: all(card.cordoned is cordoned for card in world.cluster.objects.gpunodes[NodeName("n1")].node.cards)
    )


@pytest.mark.heavy
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
    await renew(world, "n1")
    assert await woken(world) == set()
    world.clock.seconds += 60
    await renew(world, "n1")
    assert len(await woken(world)) == 1


async def test_a_pod_that_is_seen_to_wait_only_after_a_node_has_changed_is_woken(world: World) -> None:
    pod, too_large = await world.create_pod(gpu_mem=2048), await world.create_pod(gpu_mem=4096)
    await cordon(world, cordoned=True)
    await cordon(world, cordoned=False)
    for refused in (pod, too_large):
        await refuse(world, refused)
    assert await woken(world) == {pod["metadata"]["name"]}


async def test_a_pod_that_is_seen_to_wait_long_after_a_node_has_changed_is_not_woken(world: World) -> None:
    pod = await world.create_pod(gpu_mem=2048)
    await cordon(world, cordoned=True)
    await cordon(world, cordoned=False)
    await renewing(world, recent_nodes.WITHIN_S)
    await refuse(world, pod)
    assert await woken(world) == set()


async def test_a_node_whose_kubelet_offers_devices_again_wakes_pods(world: World) -> None:
    """Its Lease and its GPUNode may be seen earlier."""
    await waiting(world)
    offers = world.cluster.objects.nodes[NodeName("n1")].allocatable
    for amount in (0, 0), (16, 2):
        devices = dict(zip((names.SLICE, names.CARD), map(str, amount), strict=True))
        await world.client.patch("/api/v1/nodes/n1/status", {"status": {"allocatable": devices}})
        await world.until(lambda: sum(world.cluster.objects.nodes[NodeName("n1")].allocatable.values()) == sum(amount))  # noqa: B023 - at once
        assert len(await woken(world)) == (amount != (0, 0))
    assert world.cluster.objects.nodes[NodeName("n1")].allocatable == offers


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


@pytest.mark.parametrize(
    ("error", "expected"), [(KubernetesError(0, "TimeoutError", ""), 1), (KubernetesError(422, "Invalid", ""), 0)]
)
async def test_a_write_without_an_answer_is_sent_again_and_one_that_was_refused_is_not(
    world: World, error: KubernetesError, expected: int
) -> None:
    await waiting(world)
    world.client.status_faults = [error]
    await delete_and_create(world)
    assert await woken(world) == set()
    world.clock.seconds += waker.RETRY_S
    assert len(await woken(world)) == expected


async def delete_and_create(world: World) -> None:
    await world.client.delete(f"{names.GPUNODES_PATH}/n1")
    await world.until(lambda: "n1" not in world.cluster.objects.gpunodes)
    await world.client.post(names.GPUNODES_PATH, gpu_node("n1"))
    await world.client.patch(f"{names.GPUNODES_PATH}/n1/status", {"status": gpu_node("n1")["status"]})


@pytest.mark.heavy
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


async def test_a_pod_that_may_not_be_on_the_node_is_left_alone(world: World) -> None:
    """Such pods were touched again and again: 64 attempts were seen of a pod tied to another node."""
    await cordon(world, cordoned=True)
    field = {"key": "metadata.name", "operator": "In", "values": ["n2"]}
    required = {"nodeSelectorTerms": [{"matchFields": [field]}]}
    affinity = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required}}
    tied = await created(world, affinity=affinity)
    free = await created(world)
    for pod in (tied, free):
        await refuse(world, pod)
    await cordon(world, cordoned=False)
    assert await woken(world) == {free["metadata"]["name"]}


async def test_pods_that_are_not_admitted_or_gated_are_left_alone(world: World) -> None:
    await cordon(world, cordoned=True)
    gated = await created(world, schedulingGates=[{"name": "kueue.x-k8s.io/admission"}])
    unmutated = await world.create_pod(admitted=False, gpu_mem=1024)
    for pod in (gated, unmutated):
        await refuse(world, pod)
        world.seen.waker.wake(pod["metadata"]["uid"], "its gang can be placed")
    await cordon(world, cordoned=False)
    assert await woken(world) == set()


async def created(world: World, **spec: object) -> JsonObject:
    """Create an admitted pod with more in its spec."""
    obj = strategies.admit(strategies.pod(strategies.container(gpu_mem=1024)))
    obj["metadata"] = {"name": f"pod-{next(world.numbers)}", "namespace": "default"}
    del obj["spec"]["nodeName"]
    obj["spec"] |= spec
    made: JsonObject = json.loads(await world.client.post(PODS, obj))
    await world.until(lambda: made["metadata"]["uid"] in world.cluster.objects.pods)
    return made


async def test_a_crowd_of_named_pods_delays_no_pod_of_another_namespace(world: World) -> None:
    await cordon(world, cordoned=True)
    pod, named = await waiting(world), await waiting(world, gpu_mem=4096)
    known = world.cluster.objects.pods[pod["metadata"]["uid"]]
    for number in range(1_000):
        uid = PodUid(f"crowd-{number}")
        world.cluster.objects.pods[uid] = structs.replace(known, uid=uid, namespace=Namespace("crowd"))
        world.seen.waker.wake(uid, "its gang can be placed")
    world.seen.waker.wake(named["metadata"]["uid"], "its gang can be placed")
    await cordon(world, cordoned=False)
    assert await woken(world) == {pod["metadata"]["name"], named["metadata"]["name"]}
