"""The subresource `scale`: how many replicas a workload has, without the rest of it."""

from vgpu.domain.json_types import JsonObject


def of(workload: JsonObject) -> JsonObject:
    """Return the Scale of a workload."""
    metadata = workload["metadata"]
    kept = {key: metadata[key] for key in ("name", "namespace", "uid", "resourceVersion") if key in metadata}
    replicas = workload.get("spec", {}).get("replicas", 1)
    return {"apiVersion": "autoscaling/v1", "kind": "Scale", "metadata": kept, "spec": {"replicas": replicas}}


def scaled(workload: JsonObject, wanted: JsonObject) -> JsonObject:
    """Return a workload with the replicas of a Scale, whose metadata are preconditions."""
    preconditions = {key: wanted.get("metadata", {}).get(key) for key in ("uid", "resourceVersion")}
    metadata = workload["metadata"] | {key: value for key, value in preconditions.items() if value}
    return {**workload, "metadata": metadata, "spec": {**workload["spec"], "replicas": wanted["spec"]["replicas"]}}
