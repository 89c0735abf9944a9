"""A simple scheduling loop: places the pending pods of one schedulerName, one after the other.

The loop filters nodes by labels, taints and extended resources, asks the extender to filter and prioritize, then
binds. A pod that fits on no node gets the condition and the Event that kube-scheduler would write, and is tried again
later. Binding runs beside the loop; a pod counts as placed while it is being bound.
"""

import asyncio
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import Final

from vgpu.domain import names
from vgpu.domain.errors import KubernetesError
from vgpu.domain.json_types import JsonObject
from vgpu.simulator import resource_fit, scheduling_status
from vgpu.simulator.api import pods, resources
from vgpu.simulator.api.cluster import InMemoryCluster
from vgpu.simulator.api.resources import PODS
from vgpu.simulator.backoff import BackoffQueue
from vgpu.simulator.extender_client import ExtenderClient, ExtenderError

ROUND_S: Final = 0.25


@dataclass(frozen=True, slots=True)
class Profile:
    """Which pods a scheduler takes, and what it leaves to an extender.

    Attributes:
        name: the schedulerName.
        extender: the extender to ask, or None.
        managed: resources for which pods are passed to the extender (`managedResources`).
        ignored: resources that the scheduler does not compare with allocatable (`ignoredByScheduler`).
    """

    name: str
    extender: ExtenderClient | None = None
    managed: AbstractSet[str] = frozenset()
    ignored: AbstractSet[str] = frozenset()

    def extender_for(self, pod: JsonObject) -> ExtenderClient | None:
        """Return the extender where the pod asks for a managed resource."""
        return self.extender if resource_fit.requested(pod).keys() & self.managed else None


def vgpu_profile(extender: ExtenderClient) -> Profile:
    """Return the profile of the default installation."""
    ours = frozenset((*names.USER_RESOURCES, *names.KUBELET_RESOURCES))
    return Profile(names.SCHEDULER, extender, managed=ours, ignored=ours)


@dataclass(frozen=True, slots=True)
class Unschedulable:
    """No node fits a pod; `why` is kube-scheduler's message."""

    why: str


class Scheduler:
    """One scheduler, until cancelled."""

    def __init__(self, cluster: InMemoryCluster, profile: Profile) -> None:
        self._cluster = cluster
        self._profile = profile
        self._queue = BackoffQueue()
        self._assumed: dict[str, str] = {}  # nodes of the pods that are being bound, by UID
        self._binding: set[asyncio.Task[None]] = set()

    async def run(self) -> None:
        """Schedule until the store is closed."""
        while not self._cluster.store.closed:
            version = self._cluster.store.version
            waiting = [pod for pod in self._cluster.store.objects(PODS.name) if self._is_waiting(pod)]
            self._queue.keep([pod["metadata"]["uid"] for pod in waiting])
            for pod in self._queue.due(waiting, self._cluster.now()):
                await self._attempt(pod)
            await self._cluster.store.wait(PODS.name, version, ROUND_S)

    def _is_waiting(self, pod: JsonObject) -> bool:
        return (
            pod["spec"]["schedulerName"] == self._profile.name
            and not pod["spec"].get("nodeName")
            and not pod["spec"].get("schedulingGates")
            and "deletionTimestamp" not in pod["metadata"]
            and pod["metadata"]["uid"] not in self._assumed
        )

    async def _attempt(self, pod: JsonObject) -> None:
        """Run one scheduling cycle."""
        try:
            chosen = await self._choose(pod)
        except ExtenderError as error:
            chosen = Unschedulable(str(error))
        if isinstance(chosen, Unschedulable):
            await self._give_up(pod, chosen.why)
            return
        self._assumed[pod["metadata"]["uid"]] = chosen
        task = asyncio.create_task(self._bind(pod, chosen))
        self._binding.add(task)
        task.add_done_callback(self._binding.discard)

    async def _choose(self, pod: JsonObject) -> str | Unschedulable:
        refusals = self._filter(pod)
        fitting = [node for node, why in refusals.items() if not why]
        extender = self._profile.extender_for(pod)
        if extender is not None and fitting:
            verdict = await extender.filter(pod, fitting)
            refusals |= {node: verdict.refused.get(node, "") for node in fitting}
            fitting = list(verdict.fitting)
        if not fitting:
            return Unschedulable(resource_fit.failure_message(refusals))
        return await extender.best(pod, fitting) if extender is not None and len(fitting) > 1 else fitting[0]

    def _filter(self, pod: JsonObject) -> dict[str, str]:
        """Return why each node is ruled out by labels, taints or extended resources; empty where it is not."""
        wanted, placed = (
            resource_fit.requested(pod),
            [self._as_assumed(p) for p in self._cluster.store.objects(PODS.name)],
        )
        refusals = {}
        for node in self._cluster.store.objects(resources.NODES.name):
            name = node["metadata"]["name"]
            taken = resource_fit.requested_on(placed, name)
            by_rules = resource_fit.rule_refusal(node, pod)
            refusals[name] = by_rules or resource_fit.refusal(node, wanted, taken, self._profile.ignored)
        return refusals

    def _as_assumed(self, pod: JsonObject) -> JsonObject:
        node = self._assumed.get(pod["metadata"]["uid"])
        return {**pod, "spec": {**pod["spec"], "nodeName": node}} if node else pod

    async def _bind(self, pod: JsonObject, node: str) -> None:
        extender, metadata = self._profile.extender_for(pod), pod["metadata"]
        try:
            if extender is not None:
                await extender.bind(pod, node)
            else:
                binding = {"metadata": {"uid": metadata["uid"]}, "target": {"kind": "Node", "name": node}}
                await self._cluster.bind(pods.target(pod, "binding"), binding)
        except (ExtenderError, KubernetesError) as error:
            await self._give_up(pod, str(error))
        finally:
            del self._assumed[metadata["uid"]]

    async def _give_up(self, pod: JsonObject, why: str) -> None:
        self._queue.pause(pod["metadata"]["uid"], self._cluster.now())
        await scheduling_status.mark_unschedulable(self._cluster, pod, why, component=self._profile.name)
