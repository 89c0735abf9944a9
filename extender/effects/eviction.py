"""Evicts a pod by the API's own eviction, which keeps PodDisruptionBudgets."""

from extender.state.objects import WatchedPod
from vgpu.adapters.kubernetes.client import KubernetesClient
from vgpu.domain import names


async def evict(client: KubernetesClient, pod: WatchedPod) -> None:
    """Evict a pod, and no other pod of its name.

    Raises KubernetesError: 429 where a PodDisruptionBudget does not allow it now, 404 where the pod is gone, 409 where
    another pod has its name.
    """
    metadata = {"namespace": pod.namespace, "name": pod.name}
    options = {"preconditions": {"uid": pod.uid}}
    body = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": metadata, "deleteOptions": options}
    await client.post(f"{names.pod_path(pod.namespace, pod.name)}/eviction", body)
