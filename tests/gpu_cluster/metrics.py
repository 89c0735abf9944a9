"""What the device plugin of the node serves at /metrics."""

import httpx
from prometheus_client.parser import text_string_to_metric_families

from cluster import api, parts
from cluster.cluster import GpuCluster


def of_pod(cluster: GpuCluster, pod: str, name: str) -> float:
    """Return a container's series of this name; 0 where the pod has none."""
    return sum(value for labels, value in _series(cluster, name) if labels.get("pod") == pod)


def of_cards(cluster: GpuCluster, name: str) -> dict[str, float]:
    """Return each card's series of this name, by UUID."""
    return {labels["gpu_uuid"]: value for labels, value in _series(cluster, name)}


def _series(cluster: GpuCluster, name: str) -> list[tuple[dict[str, str], float]]:
    (node,) = cluster.nodes
    with httpx.Client(transport=api.Transport(cluster.within), timeout=10) as client:
        text = client.get(f"http://{node.name}:{parts.METRICS_PORT}/metrics").text
    families = text_string_to_metric_families(text)
    return [(sample.labels, sample.value) for family in families for sample in family.samples if sample.name == name]
