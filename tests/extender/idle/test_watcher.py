"""Idle pods from the nodes' reports to what is done, over an in-memory API server and in fake time."""

import asyncio
import itertools
import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from msgspec import structs

from extender.effects.event_recorder import EventRecorder
from extender.idle import owners, sizes, watcher
from extender.idle.namespaces import Namespaces
from extender.idle.watcher import IdleWatcher
from extender.state.objects import WatchedPod
from tests import strategies
from tests.extender.conftest import PODS, World
from vgpu.domain import names
from vgpu.domain.errors import KubernetesError
from vgpu.domain.identifiers import ContainerName, Namespace, NodeName, PodUid
from vgpu.domain.json_types import JsonObject

NODE = f"{names.GPUNODES_PATH}/n1/status"
DEPLOYMENTS = "/apis/apps/v1/namespaces/default/deployments"
REPLICA_SETS = "/apis/apps/v1/namespaces/default/replicasets"
STATEFUL_SETS = "/apis/apps/v1/namespaces/default/statefulsets"
MAPS = f"/api/v1/namespaces/{names.NAMESPACE}/configmaps"
NOTEBOOKS = "/apis/kubeflow.org/v1/namespaces/default/notebooks"
EVICT = {names.IDLE_AFTER: "30m", names.IDLE_ACTION: "evict"}
SCALE = {names.IDLE_AFTER: "30m", names.IDLE_ACTION: "scale-to-zero"}
CULL = {names.IDLE_AFTER: "30m", names.IDLE_ACTION: "cull"}
MINUTE_MS = 60_000
numbers = itertools.count(1)


@dataclass
class Idle:
    """Node n1 with its pods, and their idle times in minutes; None for unknown."""

    world: World
    minutes: dict[str, float | None] = field(default_factory=dict)
    pods: dict[str, JsonObject] = field(default_factory=dict)

    async def run_pod(self, annotations: dict[str, str] | None = None, **metadata: Any) -> JsonObject:
        name = f"nb-{next(numbers)}"
        made = strategies.admit(strategies.pod(strategies.container(gpu_mem=256), annotations=annotations))
        made["metadata"] = {"name": name, "namespace": "default", "annotations": annotations or {}, **metadata}
        del made["spec"]["nodeName"]
        pod: JsonObject = json.loads(await self.world.client.post(PODS, made))
        await self.world.until(lambda: pod["metadata"]["uid"] in self.world.cluster.objects.pods)
        assert await self.world.bind(pod, "n1") == ""
        started = (datetime.now(UTC) - timedelta(days=1)).strftime("%Y-%m-%dT%H:%M:%SZ")
        state = {"name": "main", "state": {"running": {"startedAt": started}}}
        await self.world.client.patch(f"{PODS}/{name}/status", {"status": {"containerStatuses": [state]}})
        await self.world.until(lambda: self.known(pod).lifecycle.runs)
        self.pods[pod["metadata"]["uid"]] = pod
        return pod

    def known(self, pod: JsonObject) -> WatchedPod:
        return self.world.cluster.objects.pods[pod["metadata"]["uid"]]

    async def report(self, **more: Any) -> None:
        """One report of the node; returns when the extender has drawn the consequences."""
        now = int(datetime.now(UTC).timestamp() * 1000) + next(numbers)
        usage = [self.entry(uid, now, minutes) for uid, minutes in self.minutes.items()]
        await self.world.client.patch(NODE, {"status": {"usage": usage, **more}})
        self.world.clock.seconds += 0.01
        await self.world.until(lambda: all(self.has_seen(uid, now) for uid in self.minutes))
        await self.world.until(lambda: not self.world.seen.idle.waiting)

    def entry(self, uid: str, now: int, minutes: float | None) -> JsonObject:
        (grant,) = self.world.cluster.objects.pods[PodUid(uid)].assignment.containers[ContainerName("main")]  # type: ignore[union-attr]
        made = {
            "podUID": uid,
            "container": "main",
            "gpu": grant.gpu,
            "fromMs": now - MINUTE_MS,
            "untilMs": now,
            "gpuMs": 0,
        }
        return made if minutes is None else made | {"idleMs": int(minutes * MINUTE_MS)}

    def has_seen(self, uid: str, now: int) -> bool:
        uses = self.world.cluster.objects.gpunodes[NodeName("n1")].usage.get(PodUid(uid), ())
        return any(use.until_ms == now for use in uses)

    async def idle(self, minutes: int, *pods: JsonObject) -> None:
        """Let minutes pass in which these pods use nothing: a report every ten minutes, and then every minute."""
        for step in (10,) * (minutes // 10) + (1,) * (minutes % 10):
            self.world.clock.seconds += 60 * step
            for pod in pods:
                uid = pod["metadata"]["uid"]
                self.minutes[uid] = (self.minutes.get(uid) or 0) + step
            await self.report()

    async def is_leaving(self, pod: JsonObject) -> bool:
        try:
            return "deletionTimestamp" in (await self.world.read(pod))["metadata"]
        except KubernetesError:
            return True

    async def is_warned(self, pod: JsonObject) -> bool:
        conditions = (await self.world.read(pod))["status"].get("conditions", [])
        return any(
            condition["type"] == names.IDLE_CONDITION and condition["status"] == "True" for condition in conditions
        )

    async def reasons(self, kind: str = "Pod") -> set[str]:
        await self.world.until(lambda: not self.world.seen.recorder.waiting)
        events = json.loads(await self.world.client.get("/api/v1/namespaces/default/events"))["items"]
        return {event["reason"] for event in events if event["involvedObject"]["kind"] == kind}


@pytest.fixture
def idle(world: World) -> Idle:
    return Idle(world)


async def test_an_idle_pod_is_warned_and_evicted_after_the_grace_time_and_its_busy_neighbour_is_not(idle: Idle) -> None:
    notebook, busy = await idle.run_pod(EVICT), await idle.run_pod(EVICT)
    idle.minutes[busy["metadata"]["uid"]] = 0
    await idle.idle(29, notebook)
    assert not await idle.is_warned(notebook)
    await idle.idle(1, notebook)
    assert await idle.is_warned(notebook)
    assert "IdleWarning" in await idle.reasons()
    await idle.idle(4, notebook)
    assert not await idle.is_leaving(notebook)
    await idle.idle(2, notebook)
    assert await idle.is_leaving(notebook)
    assert "IdleEvicted" in await idle.reasons()
    assert not await idle.is_leaving(busy)
    assert not await idle.is_warned(busy)


async def test_use_after_the_warning_takes_it_back(idle: Idle) -> None:
    notebook = await idle.run_pod(EVICT)
    await idle.idle(32, notebook)
    assert await idle.is_warned(notebook)
    idle.minutes[notebook["metadata"]["uid"]] = 0.5
    await idle.report()
    assert not await idle.is_warned(notebook)
    await idle.idle(10, notebook)
    assert not await idle.is_leaving(notebook)


@pytest.mark.parametrize(
    ("labels", "begins", "unless"),
    [
        ({}, "no kernel of this pod has run on its cards for 30m; ", True),
        ({names.SYNTHETIC: "true"}, "nothing but synthetic load has run on its cards for 30m; ", False),
    ],
)
async def test_the_warning_says_what_counts_as_use(
    idle: Idle, labels: dict[str, str], begins: str, *, unless: bool
) -> None:
    pod = await idle.run_pod(EVICT, labels=labels)
    await idle.idle(30, pod)
    conditions = (await idle.world.read(pod))["status"]["conditions"]
    (message,) = (condition["message"] for condition in conditions if condition["type"] == names.IDLE_CONDITION)
    assert message.startswith(begins)
    assert ("unless a kernel runs" in message) == unless


async def test_a_pod_may_opt_out_after_the_warning(idle: Idle) -> None:
    notebook = await idle.run_pod(EVICT)
    await idle.idle(32, notebook)
    path = f"{PODS}/{notebook['metadata']['name']}"
    await idle.world.client.patch(path, {"metadata": {"annotations": {names.IDLE_AFTER: "never"}}})
    await idle.world.until(lambda: idle.known(notebook).idle_setting.after_s == 0)
    await idle.idle(10, notebook)
    assert not await idle.is_warned(notebook)
    assert not await idle.is_leaving(notebook)


async def test_a_namespaces_default_counts_for_its_pods(idle: Idle) -> None:
    notebook, opted_out = await idle.run_pod(), await idle.run_pod({names.IDLE_AFTER: "never"})
    await idle.world.client.post("/api/v1/namespaces", {"metadata": {"name": "default", "annotations": EVICT}})
    await idle.world.until(lambda: idle.world.seen.namespaces.setting("default").after_s == 1800)
    await idle.idle(37, notebook, opted_out)
    assert await idle.is_leaving(notebook)
    assert not await idle.is_leaving(opted_out)


async def test_a_report_is_an_event_and_nothing_else(idle: Idle) -> None:
    notebook = await idle.run_pod({names.IDLE_AFTER: "30m"})
    await idle.idle(40, notebook)
    assert await idle.reasons() == {"Idle"}
    assert not await idle.is_warned(notebook)


async def test_the_administrator_may_allow_reports_only(idle: Idle) -> None:
    idle.world.seen.idle._acts = False
    notebook = await idle.run_pod(EVICT)
    await idle.idle(40, notebook)
    assert await idle.reasons() == {"Idle"}
    assert not await idle.is_leaving(notebook)


async def test_an_unknown_idle_time_and_a_silent_node_lead_to_nothing(idle: Idle) -> None:
    notebook, other = await idle.run_pod(EVICT), await idle.run_pod()
    uid = notebook["metadata"]["uid"]
    idle.minutes[other["metadata"]["uid"]] = 0
    await idle.idle(32, notebook)
    idle.minutes[uid] = None
    await idle.idle(10)
    assert await idle.is_warned(notebook)  # it is not known that the pod is in use
    assert not await idle.is_leaving(notebook)
    idle.world.clock.seconds += 3600
    await asyncio.sleep(0.05)
    assert not await idle.is_leaving(notebook)


async def test_a_new_leader_warns_no_second_time_and_gives_a_whole_grace_time(idle: Idle) -> None:
    notebook = await idle.run_pod(EVICT)
    await idle.idle(34, notebook)
    watcher = idle.world.seen.idle
    watcher._warned.clear()  # as in a process that has just started
    await idle.world.until(lambda: idle.known(notebook).is_warned)
    await idle.idle(5, notebook)
    assert not await idle.is_leaving(notebook)
    await idle.idle(2, notebook)
    assert await idle.is_leaving(notebook)


async def test_the_first_report_of_a_node_is_of_an_unknown_age(idle: Idle) -> None:
    notebook = await idle.run_pod(EVICT)
    idle.minutes[notebook["metadata"]["uid"]] = 600
    idle.world.leader.refusal_text = "NotLeader"
    await idle.report()
    idle.world.leader.refusal_text = ""
    idle.world.seen.idle.take(None, idle.world.cluster.objects.gpunodes[NodeName("n1")])
    assert idle.world.seen.idle.waiting == 0
    await idle.report()
    assert await idle.is_warned(notebook)


async def test_only_the_leader_acts(idle: Idle) -> None:
    notebook = await idle.run_pod(EVICT)
    idle.world.leader.refusal_text = "NotLeader"
    await idle.idle(40, notebook)
    assert not await idle.is_warned(notebook)


async def owned(
    idle: Idle, kind: str, template: dict[str, str], replicas: int, **metadata: Any
) -> tuple[JsonObject, JsonObject]:
    """A Deployment with its ReplicaSet, or a StatefulSet; return it, and the owner reference of its pods."""
    spec = {"replicas": replicas, "template": {"metadata": {"annotations": template}}}
    client, name = idle.world.client, f"nb{next(numbers)}"
    path = DEPLOYMENTS if kind == "Deployment" else STATEFUL_SETS
    owner = json.loads(await client.post(path, {"metadata": {"name": name, **metadata}, "spec": spec}))
    if kind == "StatefulSet":
        return owner, reference(owner)
    below = {"name": f"{name}-5d4", "ownerReferences": [reference(owner)]}
    replica_set = json.loads(await client.post(REPLICA_SETS, {"metadata": below, "spec": spec}))
    return owner, reference(replica_set)


def reference(owner: JsonObject) -> JsonObject:
    named = {key: owner["metadata"][key] for key in ("name", "uid")}
    return {"apiVersion": owner["apiVersion"], "kind": owner["kind"], "controller": True, **named}


async def replicas_of(idle: Idle, owner: JsonObject) -> int:
    path = DEPLOYMENTS if owner["kind"] == "Deployment" else STATEFUL_SETS
    found = json.loads(await idle.world.client.get(f"{path}/{owner['metadata']['name']}"))
    return int(found["spec"]["replicas"])


async def keep_sizes(idle: Idle) -> None:
    await idle.world.client.post(MAPS, {"metadata": {"name": sizes.NAME}})


LABELS = {"pod-template-hash": "5d4"}


async def test_a_deployment_is_scaled_to_zero_once_all_its_pods_are_idle_and_its_size_is_remembered(idle: Idle) -> None:
    await keep_sizes(idle)
    deployment, controller = await owned(idle, "Deployment", SCALE, 2)
    pods = [await idle.run_pod(SCALE, ownerReferences=[controller], labels=LABELS) for _ in range(2)]
    idle.minutes[pods[1]["metadata"]["uid"]] = 0
    await idle.idle(40, pods[0])
    assert await replicas_of(idle, deployment) == 2
    assert "IdleActionFailed" in await idle.reasons()
    await idle.idle(40, *pods)
    assert await replicas_of(idle, deployment) == 0
    assert "IdleScaledToZero" in await idle.reasons("Deployment")
    kept = json.loads(await idle.world.client.get(f"{MAPS}/{sizes.NAME}"))["data"]
    (size,) = (json.loads(size) for size in kept.values())
    assert (size["kind"], size["name"], size["replicas"]) == ("Deployment", deployment["metadata"]["name"], 2)
    assert not any([await idle.is_leaving(pod) for pod in pods])  # that is the Deployment's controller's work


async def test_a_statefulset_is_scaled_to_zero(idle: Idle) -> None:
    await keep_sizes(idle)
    stateful_set, controller = await owned(idle, "StatefulSet", SCALE, 1)
    await idle.idle(37, await idle.run_pod(SCALE, ownerReferences=[controller]))
    assert await replicas_of(idle, stateful_set) == 0


async def test_nobody_scales_an_owner_by_a_pod_alone(idle: Idle) -> None:
    """The template does not ask for it; or the reference names an object of another UID."""
    await keep_sizes(idle)
    plain, controller = await owned(idle, "StatefulSet", {}, 1)
    asking, other = await owned(idle, "StatefulSet", SCALE, 1)
    pods = [
        await idle.run_pod(SCALE, ownerReferences=[controller]),
        await idle.run_pod(SCALE, ownerReferences=[other | {"uid": "another"}]),
        await idle.run_pod(SCALE),
    ]
    await idle.idle(40, *pods)
    assert [await replicas_of(idle, owner) for owner in (plain, asking)] == [1, 1]
    found = [await owners.find(idle.world.client, idle.known(pod)) for pod in pods]
    assert [pod and pod.name for pod in found] == [plain["metadata"]["name"], None, None]
    assert "IdleActionFailed" in await idle.reasons()


async def test_a_replica_set_without_a_deployment_is_left_alone(idle: Idle) -> None:
    """The extender has no right to scale it, and the pod's Event says what would be possible."""
    await keep_sizes(idle)
    spec = {"replicas": 1, "template": {"metadata": {"annotations": SCALE}}}
    replica_set = json.loads(await idle.world.client.post(REPLICA_SETS, {"metadata": {"name": "bare"}, "spec": spec}))
    await idle.idle(40, await idle.run_pod(SCALE, ownerReferences=[reference(replica_set)]))
    kept = json.loads(await idle.world.client.get(f"{MAPS}/{sizes.NAME}"))
    assert not kept.get("data")
    assert "IdleActionFailed" in await idle.reasons()


async def test_without_the_memory_of_sizes_nothing_is_scaled(idle: Idle) -> None:
    stateful_set, controller = await owned(idle, "StatefulSet", SCALE, 1)
    await idle.idle(40, await idle.run_pod(SCALE, ownerReferences=[controller]))
    assert await replicas_of(idle, stateful_set) == 1


CRD = {
    "metadata": {"name": "notebooks.kubeflow.org"},
    "spec": {
        "group": "kubeflow.org",
        "names": {"plural": "notebooks", "kind": "Notebook"},
        "versions": [{"name": "v1", "served": True}],
    },
}


@pytest.mark.parametrize("asked", [CULL, SCALE], ids=["cull", "scale-to-zero"])
async def test_a_notebook_is_stopped_by_its_own_annotation(idle: Idle, asked: dict[str, str]) -> None:
    await idle.world.client.post("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", CRD)
    notebook = json.loads(await idle.world.client.post(NOTEBOOKS, {"metadata": {"name": "nb"}, "spec": {}}))
    stateful_set, controller = await owned(idle, "StatefulSet", asked, 1, ownerReferences=[reference(notebook)])
    await idle.idle(37, await idle.run_pod(asked, ownerReferences=[controller]))
    found = json.loads(await idle.world.client.get(f"{NOTEBOOKS}/nb"))
    assert datetime.fromisoformat(found["metadata"]["annotations"]["kubeflow-resource-stopped"])
    assert await replicas_of(idle, stateful_set) == 1  # that is the Notebook's controller's work
    await idle.idle(2, *idle.pods.values())
    again = json.loads(await idle.world.client.get(f"{NOTEBOOKS}/nb"))
    assert again["metadata"]["resourceVersion"] == found["metadata"]["resourceVersion"]
    assert "IdleNotebookStopped" in await idle.reasons("Notebook")


async def test_cull_stops_notebooks_only(idle: Idle) -> None:
    await keep_sizes(idle)
    stateful_set, controller = await owned(idle, "StatefulSet", CULL, 1)
    await idle.idle(40, await idle.run_pod(CULL, ownerReferences=[controller]))
    assert await replicas_of(idle, stateful_set) == 1
    assert "IdleActionFailed" in await idle.reasons()


async def test_an_eviction_that_a_budget_refuses_is_tried_again(idle: Idle) -> None:
    notebook, post = await idle.run_pod(EVICT), idle.world.client.post

    async def refused(path: str, body: Any, **more: Any) -> bytes:
        if path.endswith("/eviction"):
            raise KubernetesError(429, "TooManyRequests", "Cannot evict pod as it would violate the pod's budget")
        return await post(path, body, **more)

    idle.world.client.post = refused  # type: ignore[method-assign]
    await idle.idle(40, notebook)
    assert "IdleActionFailed" in await idle.reasons()
    idle.world.client.post = post  # type: ignore[method-assign]
    await idle.idle(1, notebook)
    assert await idle.is_leaving(notebook)


class Told(EventRecorder):
    """Takes Events about pods, and keeps the pods' namespaces in their order."""

    def __init__(self) -> None:
        self.namespaces: list[str] = []

    def record(self, about: Mapping[str, str], reason: str, message: str) -> None:
        assert reason == watcher.IDLE, message
        self.namespaces.append(about["namespace"])


async def test_a_crowd_of_idle_pods_delays_the_pod_of_another_namespace_by_one(idle: Idle) -> None:
    world, pod = idle.world, await idle.run_pod(EVICT)
    idle.minutes[pod["metadata"]["uid"]] = 40
    await idle.report()
    known, node = idle.known(pod), world.cluster.objects.gpunodes[NodeName("n1")]
    names_of = [*(Namespace("crowd") for _ in range(50)), Namespace("late")]
    pods = {
        uid: structs.replace(known, uid=uid, namespace=namespace)
        for number, namespace in enumerate(names_of)
        for uid in (PodUid(f"uid-{number}"),)
    }
    told = Told()
    found = IdleWatcher(
        world.client, pods, Namespaces(told), told, lambda: 10**15, lambda: datetime.now(UTC), grace_s=0, acts=False
    )
    found.take(replace(node, usage={}), replace(node, usage=dict.fromkeys(pods, node.usage[known.uid])))
    running = asyncio.create_task(found.run(world.leader, {}, lambda *_: None))
    await world.until(lambda: not found.waiting)
    running.cancel()
    assert told.namespaces.index("late") == 1
    assert len(told.namespaces) == 51


GANG = EVICT | {names.GANG: "train", names.GANG_SIZE: "2"}


async def run_gang(idle: Idle) -> list[JsonObject]:
    """Two pods that run: single pods at first, because one call of bind waits for the other's."""
    pods = [await idle.run_pod(EVICT) for _ in range(2)]
    for pod in pods:
        path = f"{PODS}/{pod['metadata']['name']}"
        await idle.world.client.patch(path, {"metadata": {"annotations": GANG}})
        await idle.world.until(lambda pod=pod: idle.known(pod).parsed.gang is not None)
    return pods


async def test_a_rank_that_waits_for_a_busy_one_is_not_idle(idle: Idle) -> None:
    waiting, busy = await run_gang(idle)
    idle.minutes[busy["metadata"]["uid"]] = 0
    for _ in range(9):
        await idle.idle(10, waiting)
    assert not await idle.is_warned(waiting)
    assert not await idle.is_leaving(waiting)


async def test_the_pods_of_a_gang_are_warned_and_evicted_together(idle: Idle) -> None:
    pods = await run_gang(idle)
    idle.minutes[pods[1]["metadata"]["uid"]] = 0  # used for 20 minutes longer than the other one
    await idle.idle(20, pods[0])
    await idle.idle(29, *pods)
    assert [await idle.is_warned(pod) for pod in pods] == [False, False]
    await idle.idle(1, *pods)
    assert [await idle.is_warned(pod) for pod in pods] == [True, True]
    assert [await idle.is_leaving(pod) for pod in pods] == [False, False]
    await idle.idle(6, *pods)
    assert [await idle.is_leaving(pod) for pod in pods] == [True, True]
    events = json.loads(await idle.world.client.get("/api/v1/namespaces/default/events"))["items"]
    told = [event["message"] for event in events if event["reason"] == "IdleEvicted"]
    assert len(told) == 2
    assert all(text.startswith("evicted with its gang, of which no pod has been used: no kernel") for text in told)


async def test_a_gang_with_a_pod_of_unknown_use_is_left_alone(idle: Idle) -> None:
    known, unknown = await run_gang(idle)
    for _ in range(9):
        idle.minutes[unknown["metadata"]["uid"]] = None
        await idle.idle(10, known)
    assert not await idle.is_warned(known)
