"""Filter, prioritize and bind against an in-memory API server."""

import asyncio
from typing import Any

import pytest

from tests import strategies
from tests.extender.conftest import PODS, World, add_duplicate, gpu_node
from vgpu.domain import names
from vgpu.domain.errors import KubernetesError
from vgpu.domain.grants import assignment
from vgpu.domain.grants.assignment import Assignment, Grant
from vgpu.domain.identifiers import CardUuid, ContainerName, NodeName

N1 = NodeName("n1")


async def test_a_pod_is_filtered_scored_and_bound_with_one_write(world: World) -> None:
    pod = await world.create_pod(gpu_mem=1024, gpu_cores=30)
    result = await world.filter(pod)
    assert result == {"NodeNames": ["n1", "n2", "n3"], "FailedNodes": {}, "FailedAndUnresolvableNodes": {}, "Error": ""}
    scores = {entry["Host"]: entry["Score"] for entry in await world.prioritize(pod, "n1", "n2", "n3")}
    assert max(scores.values()) == 10
    assert list(scores.values()).count(10) == 1
    assert await world.bind(pod) == ""
    assert world.client.posts == 1
    bound = await world.read(pod)
    assert bound["spec"]["nodeName"] == "n1"
    chosen = assignment.decode(bound["metadata"]["annotations"][names.ASSIGNMENT])
    assert chosen == Assignment({ContainerName("main"): (Grant(CardUuid("GPU-n1-0"), 1024, 30),)})


async def test_filter_and_prioritize_reserve_nothing(world: World) -> None:
    pod = await world.create_pod()
    for _ in range(60):
        await world.filter(pod)
        await world.prioritize(pod, "n1", "n2")
    assert world.used_slices() == [0, 0]


async def test_usage_follows_the_pods(world: World) -> None:
    pod = await world.create_pod()
    assert await world.bind(pod) == ""
    assert world.used_slices() == [4, 0]
    await world.until_bound_is_watched(pod)
    assert world.used_slices() == [4, 0]
    await world.client.patch(f"{PODS}/{pod['metadata']['name']}/status", {"status": {"phase": "Succeeded"}})
    await world.until(lambda: world.used_slices() == [0, 0])


async def test_concurrent_binds_never_exceed_a_cards_capacity(world: World) -> None:
    pods = [await world.create_pod(gpu_mem=768) for _ in range(12)]
    errors = await asyncio.gather(*(world.bind(pod) for pod in pods))
    assert errors.count("") == 4  # each card of eight slices holds two pods of three slices
    assert {error for error in errors if error} == {"CardInsufficientMemory: no card has the GPU memory free"}
    assert world.used_slices() == [6, 6]


async def test_bind_is_idempotent(world: World) -> None:
    pod = await world.create_pod()
    assert await asyncio.gather(*(world.bind(pod) for _ in range(5))) == [""] * 5
    await world.until_bound_is_watched(pod)
    assert await world.bind(pod) == ""
    assert world.client.posts == 1
    assert "already bound to n1" in await world.bind(pod, "n2")


async def test_a_refused_binding_releases_its_reservation(world: World) -> None:
    pod = await world.create_pod()
    world.client.faults = [("before", KubernetesError(403, "Forbidden", "no"))]
    assert "Forbidden" in await world.bind(pod)
    assert world.used_slices() == [0, 0]


async def test_a_binding_that_timed_out_but_was_carried_out_is_bound(world: World) -> None:
    pod = await world.create_pod()
    world.client.faults = [("after", KubernetesError(0, "TimeoutError", ""))]
    assert await world.bind(pod) == ""
    assert world.used_slices() == [4, 0]


async def test_a_deleted_pod_is_not_bound(world: World) -> None:
    pod = await world.create_pod()
    await world.delete_pod(pod)
    assert "is gone" in await world.bind(pod)
    assert world.used_slices() == [0, 0]


async def test_only_the_leader_binds(world: World) -> None:
    pod = await world.create_pod()
    world.leader.refusal_text = "NotLeader: another replica"
    assert await world.bind(pod) == "NotLeader: another replica"
    assert (await world.filter(pod))["NodeNames"] == ["n1", "n2", "n3"]


async def test_nodes_without_a_running_plugin_are_refused(world: World) -> None:
    pod = await world.create_pod()
    reason = "PluginAway: the node's device plugin is not running"
    await world.client.patch(
        "/api/v1/nodes/n1/status", {"status": {"allocatable": {names.SLICE: "0", names.CARD: "0"}}}
    )
    await world.until(lambda: world.cluster.states.is_plugin_away(N1))
    assert await world.filter(pod) == {
        "NodeNames": ["n2", "n3"],
        "FailedNodes": {},
        "FailedAndUnresolvableNodes": {"n1": reason},
        "Error": "",
    }
    world.clock.seconds += 3.5  # every node's Lease has expired
    assert set((await world.filter(pod))["FailedAndUnresolvableNodes"].values()) == {reason}
    assert await world.bind(pod, "n2") == reason


async def test_unadmitted_and_invalid_pods_are_refused_and_other_pods_pass(world: World) -> None:
    bare = await world.create_pod(admitted=False)
    assert (await world.filter(bare, "n1"))["FailedAndUnresolvableNodes"]["n1"].startswith("NotAdmitted")
    wrong = await world.create_pod(admitted=False, gpu_mem="16Gi")
    assert (await world.filter(wrong, "n1"))["FailedAndUnresolvableNodes"]["n1"].startswith("InvalidRequest")
    slices = await world.create_pod(admitted=False, slice=4)
    assert (await world.filter(slices, "n1"))["FailedAndUnresolvableNodes"]["n1"].startswith("InvalidRequest")
    plain: dict[str, Any] = {"metadata": {"name": "p", "uid": "u"}, "spec": {"containers": [{"name": "c"}]}}
    assert (await world.filter(plain))["NodeNames"] == ["n1", "n2", "n3"]
    assert (await world.filter(plain, "unknown-node"))["NodeNames"] == ["unknown-node"]


ONE_CARD = assignment.encode(Assignment({ContainerName("main"): (Grant(CardUuid("GPU-n1-0"), 2048),)}))


@pytest.mark.parametrize(
    ("annotation", "amounts", "message"),
    [
        (ONE_CARD, {}, "asks for nothing"),
        (ONE_CARD, {"gpu_mem": 256}, "grants something else"),
        ("{", {"gpu_mem": 256}, "cannot be read"),
        ("", {"gpu_mem": 256}, "has no assignment"),
        (ONE_CARD, {"gpu_mem": "2Gi"}, "vgpu.io/gpu-mem"),
    ],
)
async def test_an_untrusted_assignment_uses_nothing_and_is_reported(
    world: World, annotation: str, amounts: dict[str, Any], message: str
) -> None:
    obj = strategies.pod(strategies.container(**amounts))
    obj["metadata"] = {"name": "f", "annotations": {names.ASSIGNMENT: annotation} if annotation else {}}
    obj["spec"]["nodeName"] = "n1"
    await world.client.post(PODS, obj)
    (event,) = await world.events()
    assert event["reason"] == "AssignmentNotTrusted"
    assert message in event["message"]
    assert world.used_slices() == [0, 0]


async def test_a_pending_pod_has_one_event_with_the_reason_of_each_card(world: World) -> None:
    pod = await world.create_pod(gpu_mem=4096)
    await world.filter(pod, "n1")
    await world.filter(pod, "n1")
    (event,) = await world.events()
    assert event["involvedObject"]["uid"] == pod["metadata"]["uid"]
    assert event["reason"] == "CardTooSmall"
    assert event["message"] == (
        "needs 4 GiB on 1 card; n1: card 0 CardTooSmall (2 GiB and 100 % of compute free), "
        "card 1 CardTooSmall (2 GiB and 100 % of compute free)"
    )


async def test_a_node_with_another_slice_size_is_refused(world: World) -> None:
    pod = await world.create_pod()
    await world.client.patch(f"{names.GPUNODES_PATH}/n1/status", {"status": gpu_node("n1", slice_mib=512)["status"]})
    await world.until(lambda: world.cluster.objects.gpunodes[NodeName("n1")].node.slice_mib == 512)
    assert (await world.filter(pod, "n1"))["FailedAndUnresolvableNodes"]["n1"].startswith("SliceSizeMismatch")


@pytest.mark.heavy
async def test_a_card_uuid_on_two_nodes_with_living_plugins_belongs_to_the_newest(world: World) -> None:
    await asyncio.sleep(1.1)  # creation times are in whole seconds
    await add_duplicate(world.client)
    await world.until(lambda: not world.cluster.states.of(N1).cards[0].card.healthy)
    assert [(s.card.healthy, s.card.reason) for s in world.cluster.states.of(N1).cards] == [
        (False, "DuplicateUUID"),
        (True, ""),
    ]
    assert all(state.card.healthy for state in world.cluster.states.of(NodeName("n4")).cards)
    (event,) = [event for event in await world.events() if event["involvedObject"]["name"] == "n1"]
    assert event["involvedObject"]["kind"] == "GPUNode"
    assert (event["reason"], event["message"].rpartition(": ")[2]) == ("DuplicateUUID", "GPU-n1-0 on n4")


async def test_held_slices_count_except_those_of_a_pod_that_ended_after_the_report(world: World) -> None:
    """kube-scheduler retries once at an end: the old report must not refuse then, but counts again after 5 s."""
    pod = await world.create_pod(gpu_mem=2048)
    assert await world.bind(pod) == ""
    await world.until_bound_is_watched(pod)
    started = {"containerStatuses": [{"name": "main", "state": {"running": {}}}]}
    await world.client.patch(f"{PODS}/{pod['metadata']['name']}/status", {"status": started})
    status = gpu_node("n1")["status"]
    status["cards"][0]["heldSlices"] = 8
    await world.client.patch(f"{names.GPUNODES_PATH}/n1/status", {"status": status})
    await world.until(lambda: world.cluster.objects.gpunodes[NodeName("n1")].node.cards[0].held_slices == 8)
    assert world.cluster.states.of(N1).cards[0].free_slices == 0
    await world.end_pod(pod)
    assert world.cluster.states.of(N1).cards[0].free_slices == 8
    world.clock.seconds += 5.1
    assert world.cluster.states.of(N1).cards[0].free_slices == 0


async def test_a_pod_that_the_scheduler_refused_by_itself_has_an_event_too(world: World) -> None:
    """A scheduler that screens by free slices may never call the extender; its own message names no card."""
    pod = await world.create_pod(gpu_mem=4096)
    condition = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}
    await world.client.patch(f"{PODS}/{pod['metadata']['name']}/status", {"status": {"conditions": [condition]}})
    (event,) = await world.events()
    assert event["involvedObject"]["uid"] == pod["metadata"]["uid"]
    assert "n3: card 0 CardTooSmall" in event["message"]


async def test_a_pod_is_refused_where_the_kubelet_offers_fewer_slices_than_are_free(world: World) -> None:
    """The kubelet would fail the pod for good. An unhealthy card's slices are not offered while its tenants run."""
    pod, other = await world.create_pod(gpu_mem=1024), await world.create_pod(gpu_mem=1024)
    assert await world.bind(pod) == ""
    await world.client.patch(
        "/api/v1/nodes/n1/status", {"status": {"allocatable": {names.SLICE: "7", names.CARD: "2"}}}
    )
    await world.until(lambda: world.cluster.objects.nodes[NodeName("n1")].allocatable[names.SLICE] == 7)
    why = "KubeletOffersLess: the kubelet offers fewer devices than its cards have free"
    assert (await world.filter(other, "n1"))["FailedAndUnresolvableNodes"] == {"n1": why}
    assert await world.bind(other) == why
