"""Reports of device plugins about refused pods: an Event for the owner, and an eviction where asked."""

import asyncio
import json
from typing import Any

import pytest

from extender.state.fields import refused
from extender.state.fields.refused import RefusedPod
from tests.extender.conftest import PODS, World
from vgpu.domain import names
from vgpu.domain.identifiers import NodeName, PodUid
from vgpu.domain.json_types import JsonObject


def entry(pod: JsonObject, /, **fields: Any) -> JsonObject:
    """A report of a pod, with other fields where given."""
    metadata = pod["metadata"]
    made = {"podUID": metadata["uid"], "pod": metadata["name"], "reason": "CardMismatch", "message": "why"}
    return made | {"evict": True} | fields


async def report(world: World, node: str, *entries: JsonObject) -> None:
    await world.client.patch(f"{names.GPUNODES_PATH}/{node}/status", {"status": {"refusals": list(entries)}})
    await world.until(lambda: len(world.cluster.objects.gpunodes[NodeName(node)].refusals) == len(entries))
    for _ in range(20):
        world.clock.seconds += 0.2
        await asyncio.sleep(0.006)


async def bound(world: World, node: str = "n1") -> JsonObject:
    pod = await world.create_pod()
    assert await world.bind(pod, node) == ""
    await world.until_bound_is_watched(pod)
    return pod


async def is_leaving(world: World, pod: JsonObject) -> bool:
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
    assert not any([await is_leaving(world, pod) for pod in (other, waiting, created)])
    assert json.loads(await world.client.get("/api/v1/namespaces/default/events"))["items"] == []


async def plain_pod(
    world: World, name: str = "plain", node: str = "n1", namespace: str = "default", **more: Any
) -> JsonObject:
    """A pod without a GPU, which the extender's watch leaves out."""
    spec = {"nodeName": node, "containers": [{"name": "c"}]}
    path = f"/api/v1/namespaces/{namespace}/pods"
    created: JsonObject = json.loads(await world.client.post(path, {"metadata": {"name": name, **more}, "spec": spec}))
    return created


def uninvited(pod: JsonObject, /, **fields: Any) -> JsonObject:
    metadata = pod["metadata"]
    named = {"pod": f"{metadata['namespace']}/{metadata['name']}", "reason": names.CARD_USED_WITHOUT_SHARE}
    return entry(pod, **(named | fields))


async def test_a_pod_without_a_gpu_that_uses_a_card_gets_an_event_and_is_not_evicted(world: World) -> None:
    pod = await plain_pod(world)
    await report(world, "n1", uninvited(pod))
    (event,) = await world.events()
    assert (event["reason"], event["message"]) == ("CardUsedWithoutShare", "why")
    assert event["involvedObject"]["uid"] == pod["metadata"]["uid"]
    assert not await is_leaving(world, pod)


async def test_a_pod_with_a_share_that_uses_another_card_gets_an_event_and_is_not_evicted(world: World) -> None:
    pod = await bound(world)
    await report(world, "n1", uninvited(pod))
    assert [event["reason"] for event in await world.events()] == ["CardUsedWithoutShare"]
    assert not await is_leaving(world, pod)


async def test_a_setting_allows_the_eviction_except_in_spared_namespaces(world: World) -> None:
    world.refusals._evicts_uninvited, world.refusals._spared = True, ("kube-system",)
    pod, stays = await plain_pod(world), await plain_pod(world, "stays")
    spared = await plain_pod(world, "spared", namespace="kube-system")
    await report(world, "n1", uninvited(pod), uninvited(stays, evict=False), uninvited(spared))
    assert [await is_leaving(world, one) for one in (pod, stays)] == [True, False]
    found = json.loads(await world.client.get("/api/v1/namespaces/kube-system/pods/spared"))
    assert "deletionTimestamp" not in found["metadata"]


@pytest.mark.parametrize("reason", sorted(names.WITHOUT_LIMITS))
async def test_a_pod_without_its_limits_gets_an_event_and_only_a_setting_evicts_it(world: World, reason: str) -> None:
    pod = await bound(world)
    await report(world, "n1", entry(pod, reason=reason))
    assert [event["reason"] for event in await world.events()] == [reason]
    assert not await is_leaving(world, pod)
    world.refusals._evicts_uninvited = True
    await report(world, "n1")
    await report(world, "n1", entry(pod, reason=reason))
    assert await is_leaving(world, pod)


async def test_a_report_about_a_pod_that_is_not_the_nodes_does_nothing_and_is_read_once(world: World) -> None:
    world.refusals._evicts_uninvited = True
    elsewhere, replaced = await plain_pod(world, "elsewhere", "n2"), await plain_pod(world, "replaced")
    reads: list[str] = []
    get = world.client.get

    async def counted(path: str, *arguments: Any, **more: Any) -> bytes:
        reads.append(path)
        return await get(path, *arguments, **more)

    world.client.get = counted  # type: ignore[method-assign]
    gone = {"metadata": {"name": "gone", "namespace": "default", "uid": "gone"}}
    other = {"metadata": {**replaced["metadata"], "uid": "another"}}
    hostile = uninvited(elsewhere, pod="default/../../../api/v1/namespaces/default/pods/elsewhere", podUID="x")
    await report(world, "n1", uninvited(elsewhere), uninvited(gone), uninvited(other), hostile)
    assert reads == [f"{PODS}/{name}" for name in ("elsewhere", "gone", "replaced")]
    assert json.loads(await get("/api/v1/namespaces/default/events"))["items"] == []
    assert not any([await is_leaving(world, pod) for pod in (elsewhere, replaced)])


async def test_a_pod_that_cannot_be_read_now_is_read_again(world: World) -> None:
    pod = await plain_pod(world)
    world.client.reads_fail = True
    await report(world, "n1", uninvited(pod))
    world.client.reads_fail = False
    for _ in range(20):
        world.clock.seconds += 0.2
        await asyncio.sleep(0.006)
    assert [event["reason"] for event in await world.events()] == ["CardUsedWithoutShare"]


async def test_a_hostile_pod_in_a_report_does_not_end_the_extender(world: World) -> None:
    """Nested deeper than the parser reads: an error here would end the process."""
    get = world.client.get
    pod = await plain_pod(world)

    async def deep(path: str, *arguments: Any, **more: Any) -> bytes:
        text = (await get(path, *arguments, **more)).decode()
        return text.replace('"metadata":', f'"x":{"[" * 5000 + "]" * 5000},"metadata":', 1).encode()

    world.client.get = deep  # type: ignore[method-assign]
    await report(world, "n1", uninvited(pod))
    world.client.get = get  # type: ignore[method-assign]
    assert [event["reason"] for event in await world.events()] == ["CardUsedWithoutShare"]


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
    assert refused.decode({"refusals": [*bad, good]}) == (
        RefusedPod(PodUid("u"), "HeldTwice", "m" * 1024, evict=False),
    )
    assert refused.decode({"refusals": {"podUID": "u"}}) == ()
    assert len(refused.decode({"refusals": [good] * 1000})) == refused.MAX_REFUSALS


@pytest.mark.parametrize(
    "pod", ["default-/a", "a.b/c", "default/a..b", "default/a/b", "default/", "/a", "a", "x" * 64 + "/a", 1]
)
def test_a_report_with_names_that_no_pod_has_is_of_no_named_pod(pod: object) -> None:
    listed = {"podUID": "u", "pod": pod, "reason": "CardMismatch", "message": "why"}
    (found,) = refused.decode({"refusals": [listed]})
    assert found == RefusedPod(PodUid("u"), "CardMismatch", "why", evict=False)


def test_a_report_names_its_pod() -> None:
    listed = {"podUID": "u", "pod": "team-a/train-0.x", "reason": "CardMismatch", "message": "why"}
    (found,) = refused.decode({"refusals": [listed]})
    assert (found.namespace, found.name) == ("team-a", "train-0.x")
