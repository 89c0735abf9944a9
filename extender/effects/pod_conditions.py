"""Writes a condition into a pod's status."""

from datetime import datetime
from typing import Final

from extender.state.objects import WatchedPod
from vgpu.adapters.kubernetes import timestamps
from vgpu.adapters.kubernetes.client import KubernetesClient, PatchKind
from vgpu.domain import names

TRUE: Final = "True"
FALSE: Final = "False"


async def write(
    client: KubernetesClient, pod: WatchedPod, kind: str, status: str, reason: str, message: str, now: datetime
) -> None:
    """Add a condition, or replace the one of its kind. Raises KubernetesError, 409 where another pod has its name."""
    condition = {
        "type": kind,
        "status": status,
        "reason": reason,
        "message": message,
        "lastTransitionTime": timestamps.seconds(now),
    }
    body = {"metadata": {"uid": pod.uid}, "status": {"conditions": [condition]}}
    await client.patch(f"{names.pod_path(pod.namespace, pod.name)}/status", body, kind=PatchKind.STRATEGIC)
