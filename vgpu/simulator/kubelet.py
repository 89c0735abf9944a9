"""A simulated node: its kubelet as the API server sees it.

The kubelet registers the Node, runs the pods that are bound to the node, ends those whose time is over (annotation
`simulator/runs-for-seconds`), and passes what is held to the node's device plugin. Like a real node it is the last
guard: a pod without an assignment does not start, and a pod that does not fit beside the others fails.
"""

from datetime import datetime
from typing import Final

from vgpu.adapters.kubernetes import timestamps
from vgpu.domain.asks import request
from vgpu.domain.cards.device import Node
from vgpu.domain.errors import KubernetesError
from vgpu.domain.json_types import JsonObject
from vgpu.placement import fit
from vgpu.simulator import card_usage, nodes
from vgpu.simulator.api import pods, resources
from vgpu.simulator.api.cluster import InMemoryCluster
from vgpu.simulator.api.resources import PODS, Target
from vgpu.simulator.device_plugin import DevicePlugin
from vgpu.simulator.measured import NodeMeter

ROUND_S: Final = 0.25
RUNS_FOR: Final = "simulator/runs-for-seconds"
UNASSIGNED: Final = "CreateContainerConfigError"
UNFIT: Final = "UnexpectedAdmissionError"


class Kubelet:
    """One node, until cancelled."""

    def __init__(self, cluster: InMemoryCluster, node: Node) -> None:
        self._cluster = cluster
        self._node = node
        self._meter = NodeMeter(node)
        self.plugin = DevicePlugin(cluster, node)

    async def register(self) -> None:
        """Create the Node and its GPUNode."""
        made = await self._cluster.create(Target(resources.NODES), nodes.node_object(self._node))
        await self.plugin.register(made["metadata"]["uid"])

    async def run(self) -> None:
        """Run rounds until the store is closed."""
        while not self._cluster.store.closed:
            version = self._cluster.store.version
            await self.round()
            await self._cluster.store.wait(PODS.name, version, ROUND_S)

    async def round(self) -> None:
        """Advance every pod of the node by one step, and publish what the pods hold.

        Where the Node has been deleted, its GPUNode and its pods go too, as the garbage collectors of a cluster remove
        them. A Node of this name that a client creates is taken over.
        """
        node = self._cluster.find(Target(resources.NODES, name=self._node.name))
        if node is None:
            await self._leave()
            return
        for pod in self._bound():
            await self._sync(pod)
        running = self._running()
        used, entries = card_usage.used(self._node, running), self._meter.status(running, self._cluster.now())
        try:
            await self.plugin.publish(node["metadata"]["uid"], used, entries)
            await self.plugin.renew()
        except KubernetesError:
            return  # one of the objects was deleted or changed meanwhile: the next round sees it

    async def _leave(self) -> None:
        await self.plugin.leave()
        for pod in self._bound():
            await self._forget(pod)

    def _bound(self) -> list[JsonObject]:
        every = self._cluster.store.objects(PODS.name)
        return [pod for pod in every if pod["spec"].get("nodeName") == self._node.name]

    def _running(self) -> list[JsonObject]:
        """Return the pods that hold devices: from their admission until they are terminal."""
        return [pod for pod in self._bound() if pod["status"]["phase"] == "Running"]

    async def _sync(self, pod: JsonObject) -> None:
        now, phase = self._cluster.now(), pod["status"]["phase"]
        if "deletionTimestamp" in pod["metadata"]:
            await self._forget(pod)
        elif phase == "Pending":
            await self._write(pod, started(pod, self._verdict(pod), now))
        elif phase == "Running" and has_finished(pod, now):
            ended = _containers(pod, {"terminated": {"reason": "Completed", "exitCode": 0}})
            await self._write(pod, {**pod["status"], "phase": "Succeeded", **ended})

    def _verdict(self, pod: JsonObject) -> str:
        """Return the reason why the node does not run a pod; empty where it does."""
        if request.parse(pod).request is None:
            return ""
        held = card_usage.granted(pod)
        if held is None:
            return UNASSIGNED
        asked, chosen = held
        return "" if fit.has_room_for(card_usage.state(self._node, self._running()), chosen, asked) else UNFIT

    async def _forget(self, pod: JsonObject) -> None:
        try:
            await self._cluster.delete(pods.target(pod), {"gracePeriodSeconds": 0})
        except KubernetesError:
            return  # another client was faster

    async def _write(self, pod: JsonObject, status: JsonObject) -> None:
        try:
            await self._cluster.update(
                pods.target(pod, "status"), {"metadata": {"uid": pod["metadata"]["uid"]}, "status": status}
            )
        except KubernetesError:
            return  # the pod is gone or was recreated: the next round sees the change


def started(pod: JsonObject, refusal: str, now: datetime) -> JsonObject:
    """Return the status of a pod that the node starts (no refusal), cannot start yet, or fails."""
    status = {**pod["status"], "startTime": pod["status"].get("startTime") or timestamps.seconds(now)}
    if refusal == UNFIT:
        return {
            **status,
            "phase": "Failed",
            "reason": UNFIT,
            "message": "the pod does not fit on its cards beside the others",
        }
    if refusal:
        message = "the pod has no assignment that matches its request"
        return {**status, **_containers(pod, {"waiting": {"reason": refusal, "message": message}})}
    status |= {"phase": "Running", **_containers(pod, {"running": {"startedAt": status["startTime"]}})}
    return pods.with_condition(status, "Ready", "True", now=now)


def has_finished(pod: JsonObject, now: datetime) -> bool:
    """Whether a pod has run for the time of its annotation; without a number in it it never finishes."""
    seconds = _seconds((pod["metadata"].get("annotations") or {}).get(RUNS_FOR, ""))
    started_at = pod["status"].get("startTime")
    if seconds is None or not started_at:
        return False
    return (now - datetime.fromisoformat(started_at)).total_seconds() >= seconds


def _seconds(text: str) -> float | None:
    """Read the annotation, which users write; None where it is missing or no number."""
    try:
        return float(text)
    except ValueError:
        return None


def _containers(pod: JsonObject, state: JsonObject) -> JsonObject:
    ready = "running" in state
    named = [container["name"] for container in pod["spec"]["containers"]]
    return {"containerStatuses": [{"name": name, "ready": ready, "state": state} for name in named]}
