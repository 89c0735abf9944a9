"""What the history is told of pods that are scheduled, run and end, over an in-memory API server."""

from typing import Any

from msgspec import structs

from extender.history.recording import feed, lines
from extender.history.recording.events import (
    CardChange,
    CardEvent,
    Decision,
    DecisionSource,
    End,
    Listed,
    Refusals,
    Restart,
    Start,
    Watched,
)
from tests.extender.conftest import PODS, World, gpu_node
from vgpu.domain import names
from vgpu.domain.cards.reasons import Reason
from vgpu.domain.identifiers import Namespace, PodUid


async def run_pod(world: World, *, gpu_mem: int = 1024, gpu_cores: int = 20) -> dict[str, Any]:
    pod = await world.create_pod(gpu_mem=gpu_mem, gpu_cores=gpu_cores)
    await world.filter(pod)
    assert await world.bind(pod) == ""
    await world.until_bound_is_watched(pod)
    return pod


def state(**fields: Any) -> dict[str, Any]:
    return {"name": "main", "restartCount": 0, **fields}


async def set_status(world: World, pod: dict[str, Any], phase: str, **fields: Any) -> None:
    uid, status = pod["metadata"]["uid"], {"phase": phase, "containerStatuses": [state(**fields)]}
    before = world.cluster.objects.pods[uid].version
    await world.client.patch(f"{PODS}/{pod['metadata']['name']}/status", {"status": status})
    await world.until(lambda: world.cluster.objects.pods[uid].version > before)


RUNNING = {"running": {"startedAt": "2026-11-22T10:00:00Z"}}
EXITED = {
    "terminated": {
        "startedAt": "2026-11-22T10:00:00Z",
        "finishedAt": "2026-11-22T11:00:00Z",
        "exitCode": 137,
        "reason": "OOMKilled",
    }
}


async def test_the_life_of_a_pod(world: World) -> None:
    pod = await run_pod(world)
    await set_status(world, pod, "Running", state=RUNNING)
    await set_status(
        world,
        pod,
        "Running",
        state={"running": {"startedAt": "2026-11-22T11:00:05Z"}},
        restartCount=1,
        lastState=EXITED,
    )
    await set_status(
        world,
        pod,
        "Succeeded",
        state={"terminated": EXITED["terminated"] | {"startedAt": "2026-11-22T11:00:05Z"}},
        restartCount=1,
    )
    await world.delete_pod(pod)
    listed, decision, start, restart, container_end, pod_end = world.history.records
    assert isinstance(listed, Listed)
    assert isinstance(decision, Decision)
    assert (decision.source, decision.node, decision.pod.uid) == (DecisionSource.BIND, "n1", pod["metadata"]["uid"])
    (share,) = decision.cards
    assert (share.memory_mib, share.cores, share.card_mib, share.model) == (1024, 20, 2048, "NVIDIA H100")
    assert 0 < decision.created_ms <= decision.at_ms
    assert isinstance(start, Start)
    assert start.at_ms == 1795341600000
    assert isinstance(restart, Restart)
    assert (restart.count, restart.exit_code, restart.reason) == (1, 137, "OOMKilled")
    assert isinstance(container_end, End)
    assert (container_end.container, container_end.exit_code, container_end.is_interval) == ("main", 137, False)
    assert isinstance(pod_end, End)
    assert (pod_end.container, pod_end.at_ms) == ("", 1795345200000)


async def test_a_pod_that_is_deleted_while_it_runs_ends_then(world: World) -> None:
    pod = await run_pod(world)
    await set_status(world, pod, "Running", state=RUNNING)
    await world.delete_pod(pod)
    container_end, pod_end = world.history.records[-2:]
    assert isinstance(container_end, End)
    assert isinstance(pod_end, End)
    assert (pod_end.reason, pod_end.is_interval, container_end.exit_code) == ("Deleted", False, None)


async def test_a_decision_names_the_pods_group_in_space(world: World) -> None:
    await world.serve_space("n1")
    for annotations, group in (
        ({names.COMPUTE_POLICY: "space", names.SPACE_GROUP: "models"}, "default/models"),
        ({}, ""),
    ):
        pod = await world.create_pod(metadata={"annotations": annotations}, gpu_mem=256)
        assert await world.bind(pod, "n1") == ""
        decision = world.history.records[-1]
        assert isinstance(decision, Decision)
        assert (decision.pod.name, decision.group) == (pod["metadata"]["name"], group)
        assert lines.decode(lines.encode(decision).removesuffix(b"\n")) == decision


async def test_reasons_of_the_nodes_refused_are_in_the_decision(world: World) -> None:
    for _ in range(2):  # n1 is full then
        await run_pod(world, gpu_mem=2048)
    pod = await world.create_pod(gpu_mem=2048)
    await world.filter(pod)
    assert await world.bind(pod, "n2") == ""
    decision = world.history.records[-1]
    assert isinstance(decision, Decision)
    assert decision.refused == {"CardInsufficientMemory": 1}


async def test_a_decision_has_its_reasons_also_where_a_crowd_was_placed_before_its_binding(world: World) -> None:
    for _ in range(2):  # n1 is full then
        await run_pod(world, gpu_mem=2048)
    pod = await world.create_pod(gpu_mem=2048)
    await world.filter(pod)
    known = world.cluster.objects.pods[pod["metadata"]["uid"]]
    for number in range(feed.MAX_VERDICTS):
        crowd = structs.replace(known, uid=PodUid(f"crowd-{number}"), namespace=Namespace("crowd"))
        world.verbs.history.filtered(crowd, {Reason.CARD_CORDONED: 1}, fits=True)
    assert await world.bind(pod, "n2") == ""
    decision = world.history.records[-1]
    assert isinstance(decision, Decision)
    assert decision.refused == {"CardInsufficientMemory": 1}


async def test_refusals_are_summed_up_until_the_pod_is_gone(world: World) -> None:
    pod = await world.create_pod(gpu_mem=4096)
    for _ in range(3):
        await world.filter(pod)
    await world.delete_pod(pod)
    (refusals,) = (record for record in world.history.records if isinstance(record, Refusals))
    assert (refusals.attempts, refusals.reasons) == (3, {"CardTooSmall": 3})


async def test_what_a_watch_shows_of_another_replicas_pod(world: World) -> None:
    pod = await run_pod(world)
    world.history.records.clear()
    for known in world.cluster.objects.pods.values():
        world.verbs.history._decided.clear()
        world.verbs.history.pod_changed(None, known)
    (decision,) = world.history.records
    assert isinstance(decision, Decision)
    assert (decision.source, decision.pod.name) == (DecisionSource.WATCH, pod["metadata"]["name"])


async def test_a_first_list_names_the_pods_that_run(world: World) -> None:
    pod = await run_pod(world)
    world.history.records.clear()
    world.verbs.history.begin(world.cluster.objects.pods.values())
    listed = world.history.records[-1]
    assert isinstance(listed, Listed)
    assert listed.uids == {pod["metadata"]["uid"]}


async def test_a_fresh_list_without_a_pod_means_an_end_that_nobody_saw(world: World) -> None:
    await run_pod(world)
    (pod,) = world.cluster.objects.pods.values()
    world.verbs.history.mark(silence_s=2.5)
    world.verbs.history.pod_gone(pod)
    mark, *_, end = world.history.records[-2:]
    assert isinstance(mark, Watched)
    assert isinstance(end, End)
    assert end.after_ms == mark.at_ms
    assert 2500 <= end.at_ms - end.after_ms < 12_500


async def test_changes_of_a_card(world: World) -> None:
    status = gpu_node("n1")["status"]
    status["cards"][0] |= {"healthy": False, "reason": "XID 79"}
    await world.client.patch(f"{names.GPUNODES_PATH}/n1/status", {"status": status})
    await world.until(lambda: any(isinstance(record, CardEvent) for record in world.history.records))
    (event,) = (record for record in world.history.records if isinstance(record, CardEvent))
    assert (event.gpu, event.change, event.detail) == ("GPU-n1-0", CardChange.UNHEALTHY, "XID 79")
