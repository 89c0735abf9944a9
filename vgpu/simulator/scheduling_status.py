"""What a scheduler writes about a pod that fits on no node: a condition, and an Event where the reason is new."""

from vgpu.adapters.kubernetes import timestamps
from vgpu.domain.errors import KubernetesError
from vgpu.domain.json_types import JsonObject
from vgpu.simulator.api import pods
from vgpu.simulator.api.cluster import InMemoryCluster
from vgpu.simulator.api.resources import EVENTS, Target


async def mark_unschedulable(cluster: InMemoryCluster, pod: JsonObject, why: str, *, component: str) -> None:
    """Write the condition and the Event, unless the pod is gone, is bound by now, or has this reason already."""
    current = cluster.find(pods.target(pod))
    if current is None or current["spec"].get("nodeName") or why == last_reason(current):
        return
    status = pods.with_condition(
        current["status"], "PodScheduled", "False", now=cluster.now(), reason="Unschedulable", message=why
    )
    metadata = {"uid": pod["metadata"]["uid"]}
    try:
        await cluster.update(pods.target(pod, "status"), {"metadata": metadata, "status": status})
        await cluster.create(Target(EVENTS, pod["metadata"]["namespace"]), _event(cluster, pod, why, component))
    except KubernetesError:
        return  # the pod was deleted meanwhile


def last_reason(pod: JsonObject) -> str:
    """Return the scheduler's last message about why a pod has no node; empty where there is none."""
    conditions = pod["status"].get("conditions") or ()
    found = next((c for c in conditions if c["type"] == "PodScheduled" and c["status"] == "False"), None)
    return str(found.get("message") or "") if found else ""


def _event(cluster: InMemoryCluster, pod: JsonObject, why: str, component: str) -> JsonObject:
    time = timestamps.seconds(cluster.now())
    about = {key: pod["metadata"][key] for key in ("namespace", "name", "uid")}
    return {
        "metadata": {"generateName": f"{about['name']}."},
        "involvedObject": {"apiVersion": "v1", "kind": "Pod", **about},
        "reason": "FailedScheduling",
        "message": why,
        "type": "Warning",
        "source": {"component": component},
        "firstTimestamp": time,
        "lastTimestamp": time,
        "count": 1,
    }
