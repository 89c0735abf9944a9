"""Gangs over an in-memory API server: three nodes of two cards, 2 GiB each."""

import asyncio
from typing import Any

import msgspec
import pytest

from extender.gangs import bind_gate, deadlines, refused_members
from extender.state.pod_groups import PodGroup
from tests.extender.conftest import PODS, World
from tests.extender.gangs.gangs import DEADLINE_S
from vgpu.domain import names
from vgpu.domain.asks.gang import GangSource
from vgpu.domain.errors import KubernetesError
from vgpu.domain.grants.assignment import Assignment
from vgpu.domain.identifiers import Namespace, NodeName, PodUid

DEFAULT = Namespace("default")

Pod = dict[str, Any]


@pytest.fixture(autouse=True)
def _short_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bind_gate, "WAIT_S", 0.05)


async def members(world: World, count: int, gang: str = "train", size: int | None = None, **amounts: Any) -> list[Pod]:
    annotations = {names.GANG: gang, names.GANG_SIZE: str(size or count)}
    return [
        await world.create_pod(metadata={"annotations": annotations}, **(amounts or {"gpu": 1})) for _ in range(count)
    ]


async def node_of(world: World, pod: Pod) -> str | None:
    found: list[str] | None = (await world.filter(pod))["NodeNames"]
    assert found is None or len(found) <= 1
    return found[0] if found else None


async def reason(world: World, pod: Pod, node: str = "n1") -> str:
    result = await world.filter(pod)
    return str({**result["FailedNodes"], **result["FailedAndUnresolvableNodes"]}[node]).split(":", maxsplit=1)[0]


async def bind_all(world: World, pods: list[Pod]) -> list[str]:
    nodes = [await node_of(world, pod) for pod in pods]
    return await asyncio.gather(*(world.bind(pod, node or "") for pod, node in zip(pods, nodes, strict=True)))


def reserved(world: World) -> int:
    return len(world.cluster.reservations)


async def test_each_member_is_answered_with_its_own_node_and_all_are_bound_together(world: World) -> None:
    pods = await members(world, 6)
    nodes = [await node_of(world, pod) for pod in pods]
    assert sorted(map(str, nodes)) == ["n1", "n1", "n2", "n2", "n3", "n3"]
    assert reserved(world) == 6
    assert [await node_of(world, pod) for pod in pods] == nodes  # idempotent
    errors = await asyncio.gather(*(world.bind(pod, str(node)) for pod, node in zip(pods, nodes, strict=True)))
    assert errors == [""] * 6
    assert world.client.posts == 6
    for pod in pods:
        await world.until_bound_is_watched(pod)
    assert reserved(world) == 0


async def test_a_members_binding_names_the_gang_that_it_was_placed_with(world: World) -> None:
    pods = await members(world, 2)
    lone = await world.create_pod(metadata={"labels": {"app": "train"}}, gpu=1)
    assert await bind_all(world, pods) == [""] * 2
    assert await world.bind(lone, (await world.filter(lone))["NodeNames"][0]) == ""
    shown = [msgspec.json.decode(await world.client.get(f"{PODS}/{pod['metadata']['name']}")) for pod in (*pods, lone)]
    placed = [pod["metadata"]["annotations"].get(names.PLACED_GANG) for pod in shown]
    assert placed == ["annotation/train", "annotation/train", None]


async def test_no_card_is_reserved_before_all_members_exist(world: World) -> None:
    pods = await members(world, 3, size=4)
    assert [await reason(world, pod) for pod in pods] == ["GangIncomplete"] * 3
    assert reserved(world) == 0
    (event,) = [event for event in await world.events() if event["involvedObject"]["uid"] == pods[0]["metadata"]["uid"]]
    assert event["reason"] == "GangIncomplete"
    assert event["message"] == (
        "gang train of 4 pods: 3 exist; waits for 1 more pod of its namespace with vgpu.io/gang: train"
    )
    await members(world, 1, size=4)
    assert await node_of(world, pods[0]) is not None
    assert reserved(world) == 4


async def test_a_member_that_the_watch_has_not_shown_is_not_told_of_a_pod_less(world: World) -> None:
    first, *_ = await members(world, 3, size=4)
    new = {**first, "metadata": {**first["metadata"], "name": "train-9", "uid": "not-shown"}}
    assert await reason(world, new) == "GangWaits"
    assert await reason(world, first) == "GangIncomplete"
    (event,) = await world.events()
    assert event["involvedObject"]["uid"] == first["metadata"]["uid"]


async def test_a_gang_that_does_not_fit_reserves_nothing(world: World) -> None:
    """Four members of 60 % on three cards: a filter that reserves nothing lets all of them pass."""
    for card in ("GPU-n2-1", "GPU-n3-0", "GPU-n3-1"):
        assert (
            await world.bind(
                await world.create_pod(metadata={"annotations": {names.USE_GPU_UUID: card}}, gpu=1), card[4:6]
            )
            == ""
        )
    four = await members(world, 4, gpu_mem=256, gpu_cores=60)
    assert {await reason(world, pod) for pod in four} == {"GangInsufficientCards"}
    assert reserved(world) <= 3  # those of the pods above, until the watch shows them bound
    three = await members(world, 3, gang="small", gpu_mem=256, gpu_cores=60)
    assert await bind_all(world, three) == [""] * 3


async def test_two_gangs_that_do_not_fit_together_do_not_block_each_other(world: World) -> None:
    one, other = await members(world, 4, "one"), await members(world, 4, "other")
    mixed = [pod for pair in zip(one, other, strict=True) for pod in pair]
    nodes = {pod["metadata"]["name"]: await node_of(world, pod) for pod in mixed}
    assert all(nodes[pod["metadata"]["name"]] for pod in one)
    assert not any(nodes[pod["metadata"]["name"]] for pod in other)
    assert await bind_all(world, one) == [""] * 4


async def test_other_pods_do_not_get_planned_cards(world: World) -> None:
    pods = await members(world, 6)
    await node_of(world, pods[0])
    lone = await world.create_pod(gpu_mem=256)
    assert (await world.filter(lone))["NodeNames"] == []
    assert "CardHeldWhole" in await world.bind(lone, "n1")


async def test_no_member_is_bound_before_all_have_come(world: World) -> None:
    pods = await members(world, 3)
    nodes = [str(await node_of(world, pod)) for pod in pods]
    for pod, node in zip(pods[:2], nodes, strict=False):
        assert "of 3 pods can be bound; waits for: " in await world.bind(pod, node)
    assert world.client.posts == 0
    assert await world.bind(pods[2], nodes[2]) == ""
    assert not any([await world.bind(pod, node) for pod, node in zip(pods[:2], nodes, strict=False)])


async def test_a_member_is_not_bound_to_another_node_than_the_planned_one(world: World) -> None:
    pods = await members(world, 2)
    node = await node_of(world, pods[0])
    other = next(name for name in ("n1", "n2", "n3") if name != node)
    assert (await world.bind(pods[0], other)).startswith("GangWaits")


async def test_a_plan_that_misses_its_deadline_frees_its_cards_and_is_made_again_after_a_pause(world: World) -> None:
    pods = await members(world, 6)
    node = str(await node_of(world, pods[0]))
    assert (await world.bind(pods[0], node)).startswith("GangWaits")
    world.clock.seconds += DEADLINE_S + deadlines.TICK_S
    await world.until(lambda: reserved(world) == 0)
    assert await reason(world, pods[0]) == "GangWaits"
    messages = [event["message"] for event in await world.events(count=6) if event["reason"] == "GangNotStarted"]
    assert f"within {DEADLINE_S:.0f} s 1 of 6 pods can be bound; waits for: " in messages[0]
    assert messages[0].endswith("its cards are free again")


async def test_a_part_that_is_bound_is_evicted_at_the_deadline(world: World) -> None:
    pods = await members(world, 3)
    nodes = [str(await node_of(world, pod)) for pod in pods]
    world.client.faults = [("", KubernetesError(0, "", "")), ("", KubernetesError(0, "", ""))]
    world.client.faults.append(("before", KubernetesError(403, "Forbidden", "no")))
    errors = await asyncio.gather(*(world.bind(pod, node) for pod, node in zip(pods, nodes, strict=True)))
    assert sorted(errors)[:2] == ["", ""]
    bound = [pod for pod, error in zip(pods, errors, strict=True) if not error]
    (failed,) = [pod for pod in pods if pod not in bound]
    for pod in bound:
        await world.until_bound_is_watched(pod)
    await world.delete_pod(failed)
    world.clock.seconds += DEADLINE_S - 1
    await asyncio.sleep(0.05)
    assert not any(pod.scheduling.is_terminating for pod in world.cluster.objects.pods.values())
    world.clock.seconds += 2
    await world.until(lambda: not world.cluster.objects.gangs.keys or _all_leave(world))
    evicted = [event for event in await world.events(count=1) if event["reason"] == "GangEvicted"]
    assert "only 2 of them could be bound; no other pod exists; evicted after 30 s" in evicted[0]["message"]


def _all_leave(world: World) -> bool:
    return all(pod.scheduling.is_terminating for pod in world.cluster.objects.pods.values())


async def test_a_gang_that_has_started_is_not_evicted_and_takes_new_members_one_by_one(world: World) -> None:
    pods = await members(world, 3)
    assert await bind_all(world, pods) == [""] * 3
    for pod in pods:
        await world.until_bound_is_watched(pod)
    await world.delete_pod(pods[0])
    world.clock.seconds += 10 * DEADLINE_S
    await asyncio.sleep(0.05)
    assert pods[1]["metadata"]["uid"] in world.cluster.objects.pods
    for node in ("n1", "n2", "n3"):
        await _renew(world, node)
    (again,) = await members(world, 1, size=3)
    assert len((await world.filter(again))["NodeNames"]) == 3


async def _renew(world: World, node: str) -> None:
    path = f"/apis/coordination.k8s.io/v1/namespaces/vgpu-system/leases/{names.node_lease(NodeName(node))}"
    await world.client.patch(
        path, {"spec": {"renewTime": f"2026-01-01T00:00:{world.clock.seconds % 60:02.0f}.000000Z"}}
    )
    await world.until(lambda: world.cluster.leases.is_fresh(names.node_lease(NodeName(node))))


async def test_a_deleted_member_ends_the_plan_and_its_successor_joins_a_new_one(world: World) -> None:
    pods = await members(world, 4)
    await node_of(world, pods[0])
    await world.delete_pod(pods[3])
    await world.until(lambda: reserved(world) == 0)
    assert await reason(world, pods[0]) == "GangIncomplete"
    (again,) = await members(world, 1, size=4)
    assert await bind_all(world, [*pods[:3], again]) == [""] * 4


async def test_a_plan_that_lost_a_member_ends_although_enough_members_are_left(world: World) -> None:
    pods = await members(world, 3, size=2)
    await node_of(world, pods[0])
    assert reserved(world) == 2
    await world.delete_pod(pods[0])
    await world.until(lambda: reserved(world) == 0)
    assert await bind_all(world, pods[1:]) == [""] * 2


async def test_a_node_that_kube_scheduler_does_not_offer_is_planned_no_more(world: World) -> None:
    pods = await members(world, 2)
    node = str(await node_of(world, pods[0]))
    others = [name for name in ("n1", "n2", "n3") if name != node]
    (moved,) = (await world.filter(pods[1], *others))["NodeNames"]
    assert moved in others
    assert reserved(world) == 2
    errors = await asyncio.gather(world.bind(pods[0], node), world.bind(pods[1], moved))
    assert not any(errors)


async def test_members_with_different_sizes_are_refused_by_name(world: World) -> None:
    (one, *_) = await members(world, 2)
    await members(world, 2, size=4)
    assert await reason(world, one) == "GangSizeUnknown"
    (event,) = await world.events()
    assert event["message"] == "gang train: its pods name different sizes in vgpu.io/gang-size: 2, 4"


async def test_only_the_leader_plans(world: World) -> None:
    pods = await members(world, 2)
    world.leader.refusal_text = "NotLeader: another replica"
    assert await reason(world, pods[0]) == "GangWaits"
    assert reserved(world) == 0
    assert await world.bind(pods[0]) == "NotLeader: another replica"


async def test_members_that_were_refused_while_no_replica_led_are_woken(world: World) -> None:
    world.leader.refusal_text = "NotLeader: nobody leads"
    world.clock.seconds += 1
    await asyncio.sleep(0.05)
    pods = await members(world, 2)
    assert {await reason(world, pod) for pod in pods} == {"GangWaits"}
    world.leader.refusal_text = ""
    world.clock.seconds += 1
    for pod in pods:
        assert (await condition(world, pod)).startswith("this replica leads since ")


async def condition(world: World, pod: Pod) -> str:
    """Wait until a pod is touched, and return the reason."""
    async with asyncio.timeout(5):
        while not (found := (await world.read(pod))["status"].get("conditions", [])):
            await asyncio.sleep(0.01)
    return str(found[0]["message"])


async def test_a_question_about_a_pod_that_no_watch_has_shown_plans_nothing(world: World) -> None:
    pods = await members(world, 2)
    stranger = {**pods[0], "metadata": {**pods[0]["metadata"], "uid": "another"}}
    assert await reason(world, stranger) == "GangWaits"
    assert reserved(world) == 0


async def test_members_that_were_refused_are_woken_when_the_last_one_comes(world: World) -> None:
    pods = await members(world, 2, size=3)
    assert {await reason(world, pod) for pod in pods} == {"GangIncomplete"}
    await members(world, 1, size=3)

    for pod in pods:
        assert await condition(world, pod) == "all 3 pods of the gang exist"


async def test_refused_members_of_a_crowd_make_no_member_of_another_namespace_forgotten(world: World) -> None:
    pods = await members(world, 2, size=3)
    assert {await reason(world, pod) for pod in pods} == {"GangIncomplete"}
    for n in range(refused_members.MAX_REFUSED):
        world.seen.gangs.refused.add((Namespace("crowd"), GangSource.COSCHEDULING, "gang"), PodUid(f"crowd-{n}"))
    await members(world, 1, size=3)

    for pod in pods:
        assert await condition(world, pod) == "all 3 pods of the gang exist"


@pytest.mark.heavy
async def test_gated_members_do_not_count(world: World) -> None:
    pods = await members(world, 2, size=3)
    obj = {**pods[0], "metadata": {**pods[0]["metadata"], "name": "gated"}}
    obj["metadata"].pop("uid")
    obj["spec"] = {**obj["spec"], "schedulingGates": [{"name": "later"}]}
    await world.client.post(PODS, obj)
    await world.until(lambda: len(world.cluster.objects.pods) == 3)
    assert await reason(world, pods[0]) == "GangIncomplete"


async def group_member(world: World, *, name: str, gpus: bool = True) -> Pod:
    """Create a member of coscheduling's PodGroup train."""
    if gpus:
        return await world.create_pod(metadata={"labels": {names.POD_GROUP_LABEL: "train"}}, gpu=1)
    obj = {
        "metadata": {"name": name, "labels": {names.POD_GROUP_LABEL: "train"}},
        "spec": {"containers": [{"name": "c"}]},
    }
    await world.client.post(PODS, obj)
    await world.until(lambda: any(pod.name == name for pod in world.cluster.objects.pods.values()))
    return obj


async def test_a_pod_group_says_the_size_and_members_without_gpus_count(world: World) -> None:
    groups = world.seen.gangs.known.pod_groups[GangSource.COSCHEDULING]
    pods = [await group_member(world, name="") for _ in range(2)]
    assert await reason(world, pods[0]) == "GangSizeUnknown"
    groups.upsert(PodGroup(DEFAULT, "train", 3))
    assert await reason(world, pods[0]) == "GangIncomplete"
    await group_member(world, name="launcher", gpus=False)
    assert await bind_all(world, pods) == ["", ""]


async def test_members_that_wait_for_their_pod_group_are_tried_again_when_it_comes(world: World) -> None:
    groups = world.seen.gangs.known.pod_groups[GangSource.COSCHEDULING]
    pod = await group_member(world, name="")
    assert await reason(world, pod) == "GangSizeUnknown"
    groups.upsert(PodGroup(DEFAULT, "train", 3))
    assert await condition(world, pod) == "the size of the gang is known: 3 pods"


async def test_a_pod_group_that_grows_before_the_gang_has_started_waits_for_more_pods(world: World) -> None:
    groups = world.seen.gangs.known.pod_groups[GangSource.COSCHEDULING]
    groups.upsert(PodGroup(DEFAULT, "train", 2))
    pods = [await group_member(world, name="") for _ in range(2)]
    nodes = [str(await node_of(world, pod)) for pod in pods]
    groups.upsert(PodGroup(DEFAULT, "train", 3))
    assert reserved(world) == 0
    assert (await world.bind(pods[0], nodes[0])).startswith("GangWaits")
    pods.append(await group_member(world, name=""))
    assert await bind_all(world, pods) == [""] * 3
    groups.upsert(PodGroup(DEFAULT, "train", 8))  # the gang has started
    world.clock.seconds += 2 * DEADLINE_S
    await asyncio.sleep(0.05)
    assert not any(pod.scheduling.is_terminating for pod in world.cluster.objects.pods.values())


async def test_a_pod_group_says_how_long_its_plan_lasts(world: World) -> None:
    groups = world.seen.gangs.known.pod_groups[GangSource.COSCHEDULING]
    pods = [await group_member(world, name="") for _ in range(2)]
    assert await reason(world, pods[0]) == "GangSizeUnknown"
    groups.upsert(PodGroup(DEFAULT, "train", 2, timeout_s=7))
    assert await node_of(world, pods[0]) is not None
    world.clock.seconds += 7 + deadlines.TICK_S
    await world.until(lambda: reserved(world) == 0)
    events = await world.events(count=3)
    messages = [event["message"] for event in events if event["reason"] == "GangNotStarted"]
    assert "within 7 s 0 of 2 pods can be bound" in messages[0]


async def test_states_and_outcomes_are_counted(world: World) -> None:
    pods = await members(world, 2)
    assert world.seen.gangs.known.count_by_phase()["waiting"] == 1
    await node_of(world, pods[0])
    assert world.seen.gangs.known.count_by_phase()["planned"] == 1
    assert await bind_all(world, pods) == ["", ""]
    for pod in pods:
        await world.until_bound_is_watched(pod)
    assert world.seen.gangs.known.count_by_phase()["started"] == 1
    assert world.seen.gangs.plans.outcomes["started"] == 1


async def test_a_binding_that_may_still_be_carried_out_keeps_its_cards_in_a_new_plan(world: World) -> None:
    pods = await members(world, 3, gpu_mem=512)
    nodes = [str(await node_of(world, pod)) for pod in pods]
    world.client.faults = [("before", KubernetesError(0, "TimeoutError", "")) for _ in pods]
    assert all(await asyncio.gather(*(world.bind(pod, node) for pod, node in zip(pods, nodes, strict=True))))
    uids = [pod["metadata"]["uid"] for pod in pods[:2]]
    before = [world.cluster.reservations.get(uid, NodeName(node)) for uid, node in zip(uids, nodes, strict=False)]
    assert all(before)
    await world.delete_pod(pods[2])
    (late,) = await members(world, 1, size=3, gpu_mem=512)
    assert await node_of(world, late) is not None
    assert [
        world.cluster.reservations.get(uid, NodeName(node)) for uid, node in zip(uids, nodes, strict=False)
    ] == before
    assert [await node_of(world, pod) for pod in pods[:2]] == nodes[:2]


async def ranks(world: World, count: int, size: int) -> list[Pod]:
    """Members with half of a card each, and cards of their own."""
    annotations = {names.GANG: "ranks", names.GANG_SIZE: str(size), names.GANG_CARDS: "own"}
    return [await world.create_pod(metadata={"annotations": annotations}, gpu_mem=512) for _ in range(count)]


async def cards_of(world: World, pods: list[Pod]) -> list[str]:
    found = [world.cluster.objects.pods[pod["metadata"]["uid"]].assignment for pod in pods]
    return [card for held in found if isinstance(held, Assignment) for card in held.gpus()]


async def test_ranks_with_cards_of_their_own_share_none_also_once_one_is_replaced(world: World) -> None:
    pods = await ranks(world, 5, 5)
    assert await bind_all(world, pods) == [""] * 5
    for pod in pods:
        await world.until_bound_is_watched(pod)
    assert len(set(await cards_of(world, pods))) == 5
    (more,) = await ranks(world, 1, 5)  # an elastic rank that comes later is placed by itself, on the card that is left
    assert await world.bind(more, str((await world.filter(more))["NodeNames"][0])) == ""
    await world.until_bound_is_watched(more)
    assert len(set(await cards_of(world, [*pods, more]))) == 6
    (last,) = await ranks(world, 1, 5)
    assert await reason(world, last) == "CardAntiAffinity"


async def test_more_ranks_than_cards_wait_and_are_told_why(world: World) -> None:
    pods = await ranks(world, 7, 7)  # of half a card each; there are six cards
    assert [await reason(world, pod) for pod in pods] == ["GangInsufficientCards"] * 7
    assert reserved(world) == 0
    messages = [event["message"] for event in await world.events() if event["reason"] == "GangInsufficientCards"]
    assert messages
    assert "on cards without another pod of the gang (vgpu.io/gang-cards: own)" in messages[0]
    assert "the free cards take 6 of the 7 pods" in messages[0]
