"""Reports of device plugins about refused pods: an Event for the owner, and an eviction where asked."""

import asyncio
import json
from typing import Any

from extender import refused
from extender.refused import Refused
from tests.extender.conftest import PODS, World
from vgpu import names

Json = dict[str, Any]


def entry(pod: Json, **fields: Any) -> Json:
    """A report of a pod, with other fields where given."""
    metadata = pod["metadata"]
    made = {"podUID": metadata["uid"], "pod": metadata["name"], "reason": "CardMismatch", "message": "why"}
    return made | {"evict": True} | fields


async def report(world: World, node: str, *entries: Json) -> None:
    await world.client.patch(f"{names.GPUNODES_PATH}/{node}/status", {"status": {"refusals": list(entries)}})
    await world.until(lambda: len(world.cluster.objects.gpunodes[node].refusals) == len(entries))
    for _ in range(20):
        world.clock.seconds += 0.2
        await asyncio.sleep(0.006)


async def bound(world: World, node: str = "n1") -> Json:
    pod = await world.create_pod()
    assert await world.bind(pod, node) == ""
    await world.until_bound_is_watched(pod)
    return pod


async def is_leaving(world: World, pod: Json) -> bool:
    found = json.loads(await world.client.get(f"{PODS}/{pod['metadata']['name']}"))
    return "deletionTimestamp" in found["metadata"]


async def test_a_refused_pod_gets_an_event_once_and_is_evicted(world: World) -> None:
    pod = await bound(world)
    await report(world, "n1", entry(pod))
    assert await is_leaving(world, pod)
    await report(world, "n1", entry(pod, message="another text"))
    (event,) = await world.events()
    assert (event["reason"], event["message"]) == ("CardMismatch", "why")
    assert event["involvedObject"]["uid"] == pod["metadata"]["uid"]


async def test_a_pod_that_need_not_be_replaced_is_not_evicted(world: World) -> None:
    pod = await bound(world)
    await report(world, "n1", entry(pod, evict=False))
    await world.events()
    assert not await is_leaving(world, pod)


async def test_a_node_cannot_have_pods_evicted_that_are_elsewhere_or_without_a_gpu(world: World) -> None:
    other, waiting = await bound(world, "n2"), await world.create_pod()
    plain = {"metadata": {"name": "plain"}, "spec": {"nodeName": "n1", "containers": [{"name": "c"}]}}
    created = json.loads(await world.client.post(PODS, plain))
    await report(world, "n1", entry(other), entry(waiting), entry(created))
    assert not any([await is_leaving(world, each) for each in (other, waiting, created)])
    assert json.loads(await world.client.get("/api/v1/namespaces/default/events"))["items"] == []


async def test_only_the_leader_acts_and_a_new_leader_acts_on_what_is_reported_still(world: World) -> None:
    pod = await bound(world)
    world.leader.refusal_text = "NotLeader"
    await report(world, "n1", entry(pod))
    assert not await is_leaving(world, pod)
    world.leader.refusal_text = ""
    for _ in range(20):
        world.clock.seconds += 0.2
        await asyncio.sleep(0.006)
    assert await is_leaving(world, pod)


def test_entries_that_cannot_be_read_are_left_out() -> None:
    good = {"podUID": "u", "reason": "HeldTwice", "message": "m" * 5000, "evict": "yes"}
    bad = ["x", None, {}, {**good, "podUID": 1}, {**good, "reason": "a b"}, {**good, "message": None}]
    assert refused.decode({"refusals": [*bad, good]}) == (Refused("u", "HeldTwice", "m" * 1024, evict=False),)
    assert refused.decode({"refusals": {"podUID": "u"}}) == ()
    assert len(refused.decode({"refusals": [good] * 1000})) == refused.MAX_REFUSALS
