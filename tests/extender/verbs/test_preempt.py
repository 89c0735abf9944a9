"""Preemption against an in-memory API server: kube-scheduler's verb, and evictions that the extender carries out."""

import asyncio
import json
from typing import Any

import pytest

from extender.verbs import preempt as preempt_verb
from tests import strategies
from tests.extender.conftest import PODS, World
from vgpu.domain import names
from vgpu.domain.identifiers import NodeName, PodUid
from vgpu.domain.json_types import JsonObject


async def create(world: World, name: str, priority: int, mib: int, **fields: Any) -> JsonObject:
    """Create a pod with a PriorityClass; `fields` go into its metadata."""
    obj = strategies.admit(strategies.pod(strategies.container(gpu_mem=mib)))
    obj["metadata"] = {"name": name, "namespace": "default", **fields}
    obj["spec"] |= {"priority": priority, "terminationGracePeriodSeconds": 30}
    del obj["spec"]["nodeName"]
    created: JsonObject = json.loads(await world.client.post(PODS, obj))
    await world.until(lambda: created["metadata"]["uid"] in world.cluster.objects.pods)
    return created


async def bound(world: World, name: str, priority: int, mib: int, node: str = "n1", **fields: Any) -> JsonObject:
    pod = await create(world, name, priority, mib, **fields)
    assert await world.bind(pod, node) == ""
    await world.until_bound_is_watched(pod)
    return pod


def uid(pod: JsonObject) -> str:
    found: str = pod["metadata"]["uid"]
    return found


async def preempt(world: World, pod: JsonObject, **victims: list[JsonObject]) -> dict[str, list[str]]:
    """Call the verb; `victims` are what kube-scheduler chose, by node. Returns the answer's UIDs by node."""
    given = {node: {"Pods": [{"UID": uid(name)} for name in pods]} for node, pods in victims.items()}
    body = {"Pod": pod, "NodeNameToMetaVictims": given}
    result = json.loads(await world.verbs.preempt(json.dumps(body).encode()))["NodeNameToMetaVictims"]
    return {node: [victim["UID"] for victim in answer["Pods"]] for node, answer in result.items()}


async def deciding(world: World) -> None:
    """Let the extender's own preemption decide: its delay passes."""
    for _ in range(40):
        world.clock.seconds += 0.02
        await asyncio.sleep(0.006)


async def being_deleted(world: World) -> set[str]:
    pods = json.loads(await world.client.get(PODS))["items"]
    return {pod["metadata"]["name"] for pod in pods if "deletionTimestamp" in pod["metadata"]}


async def test_filter_refuses_then_the_victim_leaves_and_the_pod_is_nominated(world: World) -> None:
    await bound(world, "low", 1, 2048)
    await bound(world, "lower", 0, 2048)
    high = await create(world, "high", 10, 2048)
    assert (await world.filter(high, "n1"))["FailedNodes"] == {}
    await deciding(world)
    assert await being_deleted(world) == {"lower"}
    assert (await world.read(high))["status"]["nominatedNodeName"] == "n1"
    (condition,) = [
        condition
        for condition in json.loads(await world.client.get(f"{PODS}/lower"))["status"]["conditions"]
        if condition["type"] == "DisruptionTarget"
    ]
    assert (condition["status"], condition["reason"]) == ("True", "PreemptionByScheduler")


@pytest.mark.heavy
async def test_a_nomination_is_kept_while_the_victim_ends_and_nobody_else_leaves(world: World) -> None:
    for n in range(2):
        await bound(world, f"low{n}", 1, 2048)
    high = await create(world, "high", 10, 2048)
    await world.filter(high, "n1")
    await deciding(world)
    again = await world.read(high)
    for _ in range(3):
        refused = await world.filter(again, "n1")
        assert list(refused["FailedNodes"]) == ["n1"]
        await deciding(world)
    assert len(await being_deleted(world)) == 1


async def test_the_freed_card_is_reserved_for_the_pod_of_higher_priority(world: World) -> None:
    for n in range(2):
        victim = await bound(world, f"low{n}", 1, 2048)
    high = await create(world, "high", 10, 2048)
    await world.filter(high, "n1")
    await deciding(world)
    (name,) = await being_deleted(world)
    victim = json.loads(await world.client.get(f"{PODS}/{name}"))
    await world.end_pod(victim)
    low, higher = await create(world, "late", 5, 1024), await create(world, "higher", 20, 1024)
    why = (await world.filter(low, "n1"))["FailedAndUnresolvableNodes"]["n1"]
    assert why.startswith("CardReserved")
    assert (await world.bind(low, "n1")).startswith("CardReserved")
    assert (await world.filter(higher, "n1"))["NodeNames"] == ["n1"]
    assert await world.bind(await world.read(high), "n1") == ""


@pytest.mark.heavy
async def test_nobody_is_evicted_where_no_eviction_helps(world: World) -> None:
    await bound(world, "equal", 10, 2048)
    await bound(world, "also-equal", 10, 1024)
    await bound(world, "low", 1, 1024)
    high = await create(world, "high", 10, 2048)
    for _ in range(3):
        await world.filter(high, "n1")
        await deciding(world)
    assert await being_deleted(world) == set()
    assert "nominatedNodeName" not in (await world.read(high))["status"]


async def test_a_pod_that_may_not_preempt_and_a_replica_that_does_not_lead_evict_nobody(world: World) -> None:
    for n in range(2):
        await bound(world, f"low{n}", 1, 2048)
    modest = await create(world, "modest", 10, 2048)
    modest["spec"]["preemptionPolicy"] = "Never"
    await world.filter(modest, "n1")
    await deciding(world)
    world.leader.refusal_text = "NotLeader"
    high = await create(world, "high", 10, 2048)
    await world.filter(high, "n1")
    await deciding(world)
    assert await being_deleted(world) == set()
    assert await preempt(world, high, n1=[]) == {}


async def test_the_verb_adds_the_pods_whose_cards_are_needed_and_drops_other_nodes(world: World) -> None:
    low = await bound(world, "low", 1, 2048)
    await bound(world, "equal", 10, 2048)
    bystander = {"metadata": {"uid": "of-a-pod-without-a-gpu"}}
    await bound(world, "equal2", 10, 2048, "n2")
    await bound(world, "equal3", 10, 2048, "n2")
    high = await create(world, "high", 10, 2048)
    answer = await preempt(world, high, n1=[bystander], n2=[bystander])
    assert answer == {"n1": [uid(low), uid(bystander)]}


async def test_the_verb_keeps_a_node_whose_cards_are_free_after_the_schedulers_evictions(world: World) -> None:
    low = await bound(world, "low", 1, 2048)
    high = await create(world, "high", 10, 2048)
    assert await preempt(world, high, n1=[low], n2=[{"metadata": {"uid": "other"}}]) == {
        "n1": [uid(low)],
        "n2": ["other"],
    }


async def test_the_verb_names_nodes_that_lack_cards_only_and_the_extender_then_evicts_nobody(world: World) -> None:
    lows = [await bound(world, f"low{n}", 1, 2048) for n in range(2)]
    high = await create(world, "high", 10, 2048)
    await world.filter(high, "n1")
    answer = await preempt(world, high, n2=[{"metadata": {"uid": "other"}}])
    assert answer["n2"] == ["other"]
    assert answer["n1"] in ([uid(lows[0])], [uid(lows[1])])
    await deciding(world)
    assert await being_deleted(world) == set()


async def test_a_disruption_budget_is_kept(world: World) -> None:
    budget = {
        "metadata": {"name": "b", "namespace": "default"},
        "spec": {"selector": {"matchExpressions": [{"key": "app", "operator": "In", "values": ["x"]}]}},
    }
    await world.client.post("/apis/policy/v1/namespaces/default/poddisruptionbudgets", budget)
    await bound(world, "protected", 0, 2048, labels={"app": "x"})
    await bound(world, "other", 1, 2048, labels={"app": "y"})
    high = await create(world, "high", 10, 2048)
    await world.filter(high, "n1")
    await deciding(world)
    assert await being_deleted(world) == {"other"}


async def test_the_node_with_the_cheapest_victims_is_chosen(world: World) -> None:
    for n in range(2):
        await bound(world, f"a{n}", 5, 2048, "n1")
        await bound(world, f"b{n}", 2, 2048, "n2")
        await bound(world, f"c{n}", 3, 2048, "n3")
    high = await create(world, "high", 10, 2048)
    await world.filter(high)
    await deciding(world)
    assert (await world.read(high))["status"]["nominatedNodeName"] == "n2"


async def test_a_crowd_in_one_namespace_keeps_no_pod_of_another_from_preempting(
    world: World,
) -> None:
    await bound(world, "low", 0, 2048)
    await bound(world, "equal", 10, 2048)
    for n in range(preempt_verb.MAX_NOTED + 1):
        obj = strategies.admit(strategies.pod(strategies.container(gpu_mem=2048), uid=f"crowd-{n}"))
        obj["metadata"] |= {"name": f"crowd-{n}", "namespace": "crowd"}
        del obj["spec"]["nodeName"]
        world.verbs.preemption.note(world.verbs.reader.decoded(obj), [NodeName("n1")])
    high = await create(world, "high", 10, 2048)
    await world.filter(high, "n1")
    await deciding(world)
    assert await being_deleted(world) == {"low"}


async def rank(world: World, name: str, priority: int, mib: int) -> JsonObject:
    """A pod that runs and names a gang."""
    pod = await bound(world, name, priority, mib)
    annotations = {names.GANG: "train", names.GANG_SIZE: "2"}
    await world.client.patch(f"{PODS}/{name}", {"metadata": {"annotations": annotations}})
    await world.until(lambda: world.cluster.objects.pods[PodUid(uid(pod))].parsed.gang is not None)
    return pod


async def test_the_ranks_of_a_node_are_evicted_together(world: World) -> None:
    """A rank alone would wait for the other one in its collectives, and hold its card for nothing."""
    for n in range(2):
        await rank(world, f"rank-{n}", 1, 2048)
    await world.filter(await create(world, "high", 10, 2048), "n1")
    await deciding(world)
    assert await being_deleted(world) == {"rank-0", "rank-1"}


async def test_a_single_pod_leaves_rather_than_two_ranks(world: World) -> None:
    for n in range(2):
        await rank(world, f"rank-{n}", 1, 1024)
    await bound(world, "single", 1, 2048)
    await world.filter(await create(world, "high", 10, 2048), "n1")
    await deciding(world)
    assert await being_deleted(world) == {"single"}


async def test_a_rank_of_high_priority_keeps_its_gang(world: World) -> None:
    await rank(world, "rank-0", 1, 2048)
    await rank(world, "rank-1", 10, 2048)
    await world.filter(await create(world, "high", 10, 2048), "n1")
    await deciding(world)
    assert await being_deleted(world) == set()


async def test_the_verb_adds_the_other_ranks_of_a_victim(world: World) -> None:
    ranks = [await rank(world, f"rank-{n}", 1, 1024) for n in range(2)]
    high = await create(world, "high", 10, 2048)
    (victims,) = (await preempt(world, high, n1=[ranks[0]])).values()
    assert sorted(victims) == sorted(map(uid, ranks))
