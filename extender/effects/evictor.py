"""Nominates pods, and evicts pods as kube-scheduler does: for preemption, and parts of gangs.

A pod that is evicted first gets the condition DisruptionTarget, by which its controllers and kube-scheduler know the
reason. Then it is deleted. Its UID is a precondition, so that a recreated pod of its name is not deleted. Evictions by
the API's subresource, which keep PodDisruptionBudgets, are in `eviction`.
"""

from collections.abc import Callable
from datetime import datetime
from http import HTTPStatus

from extender.effects import pod_conditions
from extender.effects.event_recorder import EventRecorder
from extender.state.objects import WatchedPod
from vgpu.adapters.kubernetes.client import KubernetesClient
from vgpu.domain import names
from vgpu.domain.errors import KubernetesError
from vgpu.domain.identifiers import NodeName


class Evictor:
    """The requests of nominations and evictions. All of them raise KubernetesError."""

    def __init__(self, client: KubernetesClient, recorder: EventRecorder, now: Callable[[], datetime]) -> None:
        self._client = client
        self._recorder = recorder
        self._now = now

    async def nominate(self, pod: WatchedPod, node: NodeName) -> None:
        """Write the node on which room is made for a pod."""
        body = {"metadata": {"uid": pod.uid}, "status": {"nominatedNodeName": node}}
        await self._client.patch(f"{_path(pod)}/status", body)

    async def evict(self, victim: WatchedPod, preemptor: WatchedPod) -> None:
        """Delete a victim of a preemption; a victim that no longer exists counts as deleted."""
        # by the reason kube-scheduler knows that the pod makes room for another
        disrupted = ("PreemptionByScheduler", "vgpu-extender: evicted to make room for a pod of higher priority")
        await self._delete(victim, *disrupted)
        message = f"evicted for pod {preemptor.namespace}/{preemptor.name} of higher priority"
        self._recorder.record(victim.reference, "Preempted", message)

    async def delete(self, pod: WatchedPod, reason: str, message: str) -> None:
        """Delete a pod for a reason of its own; a pod that no longer exists counts as deleted."""
        await self._delete(pod, reason, f"vgpu-extender: {message}")
        self._recorder.record(pod.reference, reason, message)

    async def _delete(self, pod: WatchedPod, reason: str, message: str) -> None:
        disrupted = ("DisruptionTarget", pod_conditions.TRUE, reason, message)
        try:
            await pod_conditions.write(self._client, pod, *disrupted, self._now())
            await self._client.delete(_path(pod), {"preconditions": {"uid": pod.uid}})
        except KubernetesError as error:
            if error.status != HTTPStatus.NOT_FOUND:
                raise


def _path(pod: WatchedPod) -> str:
    return names.pod_path(pod.namespace, pod.name)
