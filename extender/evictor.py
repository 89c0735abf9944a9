"""Carries out a preemption: nominates the pod for its node, and evicts pods as kube-scheduler does.

A victim first gets the condition DisruptionTarget, by which its controllers and kube-scheduler know the reason, and is
then deleted. Its UID is a precondition, so that a recreated pod of its name is not deleted.
"""

from collections.abc import Callable
from datetime import datetime
from http import HTTPStatus
from typing import Any

from extender.event_recorder import EventRecorder
from extender.objects import Pod
from vgpu import names
from vgpu.adapters.kubernetes import timestamps
from vgpu.adapters.kubernetes.client import Client, PatchKind
from vgpu.errors import KubernetesError


class Evictor:
    """The requests of a preemption. All of them raise KubernetesError."""

    def __init__(self, client: Client, recorder: EventRecorder, now: Callable[[], datetime]) -> None:
        self._client = client
        self._recorder = recorder
        self._now = now

    async def nominate(self, pod: Pod, node: str) -> None:
        """Write the node on which room is made for a pod."""
        body = {"metadata": {"uid": pod.uid}, "status": {"nominatedNodeName": node}}
        await self._client.patch(f"{_path(pod)}/status", body)

    async def evict(self, victim: Pod, preemptor: Pod) -> None:
        """Delete a victim; a victim that no longer exists counts as deleted."""
        try:
            await self._client.patch(f"{_path(victim)}/status", self._disrupted(victim), kind=PatchKind.STRATEGIC)
            await self._client.delete(_path(victim), {"preconditions": {"uid": victim.uid}})
        except KubernetesError as error:
            if error.status != HTTPStatus.NOT_FOUND:
                raise
        message = f"evicted for pod {preemptor.namespace}/{preemptor.name} of higher priority"
        self._recorder.record(victim.reference, "Preempted", message)

    def _disrupted(self, victim: Pod) -> dict[str, Any]:
        condition = {
            "type": "DisruptionTarget",
            "status": "True",
            "reason": "PreemptionByScheduler",  # by it kube-scheduler knows that the pod makes room for another
            "message": "vgpu-extender: evicted to make room for a pod of higher priority",
            "lastTransitionTime": timestamps.seconds(self._now()),
        }
        return {"metadata": {"uid": victim.uid}, "status": {"conditions": [condition]}}


def _path(pod: Pod) -> str:
    return names.pod_path(pod.namespace, pod.name)
