"""The subresource `scale`: how many replicas a workload has, without the rest of it."""

from vgpu.domain.json_types import JsonObject
from vgpu.simulator.api import shapes


def of(workload: JsonObject) -> JsonObject:
    """Return the Scale of a workload."""
    metadata = workload["metadata"]
    kept = {key: metadata[key] for key in ("name", "namespace", "uid", "resourceVersion") if key in metadata}
    replicas = (workload.get("spec") or {}).get("replicas", 1)
    return {"apiVersion": "autoscaling/v1", "kind": "Scale", "metadata": kept, "spec": {"replicas": replicas}}


def scaled(workload: JsonObject, wanted: JsonObject) -> JsonObject:
    """Return a workload with the replicas of a Scale, whose metadata are preconditions.

    Raises:
        KubernetesError: 400, a field of the Scale has a wrong type.
    """
    shapes.check_scale(wanted)
    preconditions = {key: (wanted.get("metadata") or {}).get(key) for key in ("uid", "resourceVersion")}
    metadata = workload["metadata"] | {key: value for key, value in preconditions.items() if value}
    return {
        **workload,
        "metadata": metadata,
        "spec": {**(workload.get("spec") or {}), "replicas": wanted["spec"]["replicas"]},
    }
