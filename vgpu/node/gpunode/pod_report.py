"""A pod in `status.refusals` of a GPUNode, where the extender finds what it has to tell the pod's owner."""

from typing import Any

from vgpu.node.containers.bound_pod import BoundPod


def pod_report(pod: BoundPod, reason: str, message: str, *, evict: bool) -> dict[str, Any]:
    """Return the JSON of a report; `evict` asks the extender to evict the pod."""
    return {
        "podUID": pod.uid,
        "pod": f"{pod.namespace}/{pod.name}",
        "reason": reason,
        "message": message,
        "evict": evict,
    }
