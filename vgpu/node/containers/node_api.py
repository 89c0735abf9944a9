"""The requests to the API server about one node: its pods, and its GPUNode."""

from http import HTTPStatus
from typing import Any, Final, Protocol

import msgspec

from vgpu.adapters import deep_json
from vgpu.adapters.kubernetes import client
from vgpu.domain import names
from vgpu.domain.errors import KubernetesError
from vgpu.domain.identifiers import NodeName
from vgpu.node.containers import bound_pod
from vgpu.node.containers.bound_pod import BoundPod, PodKey

READ_TIMEOUT_S: Final = 3.0  # one second did not suffice for a pod of a megabyte on a busy machine


class SinglePodReader(Protocol):
    """Reads single pods from the API server, because the watch may lag."""

    async def pod(self, key: PodKey) -> BoundPod | None:
        """Return the pod of that name, if it is bound to this node. Raises KubernetesError."""


class NodeApi:
    """The requests about one node. All of them raise KubernetesError."""

    def __init__(self, api: client.KubernetesClient, node: NodeName) -> None:
        self._api = api
        self._node = node

    async def pod(self, key: PodKey) -> BoundPod | None:
        """Read a pod by a quorum read; None where there is none, or it is bound to another node."""
        try:
            raw = await self._api.get(names.pod_path(*key), timeout=READ_TIMEOUT_S)
        except KubernetesError as error:
            if error.status == HTTPStatus.NOT_FOUND:
                return None
            raise
        pod = await deep_json.decode(bound_pod.decode, raw)
        return pod if pod.node == self._node else None

    async def publish(self, status: dict[str, Any]) -> None:
        """Write the status of this node's GPUNode; create the GPUNode, owned by the Node, where there is none."""
        path = f"{names.GPUNODES_PATH}/{self._node}"
        try:
            await self._api.patch(f"{path}/status", {"status": status})
        except KubernetesError as error:
            if error.status != HTTPStatus.NOT_FOUND:
                raise
            await self._api.post(names.GPUNODES_PATH, await self._gpunode())
            await self._api.patch(f"{path}/status", {"status": status})

    async def stored_status(self) -> dict[str, Any]:
        """Return the status of this node's GPUNode; empty where there is none."""
        selected = {"fieldSelector": f"metadata.name={self._node}"}
        listed = msgspec.json.decode(await self._api.get(names.GPUNODES_PATH, selected))
        status: dict[str, Any] = next((item.get("status") or {} for item in listed["items"]), {})
        return status

    async def count_nodes(self) -> int:
        """Return how many GPUNodes there are."""
        page = msgspec.json.decode(await self._api.get(names.GPUNODES_PATH, {"limit": "1"}))
        remaining: int = (page.get("metadata") or {}).get("remainingItemCount") or 0
        return len(page["items"]) + remaining

    async def other_nodes(self) -> list[dict[str, Any]]:
        """Return every other GPUNode."""
        listed = msgspec.json.decode(await self._api.get(names.GPUNODES_PATH, {"resourceVersion": "0"}))
        return [item for item in listed["items"] if item["metadata"]["name"] != self._node]

    async def _gpunode(self) -> dict[str, Any]:
        node = msgspec.json.decode(await self._api.get(f"/api/v1/nodes/{self._node}"))
        owner = {"apiVersion": "v1", "kind": "Node", "name": self._node, "uid": node["metadata"]["uid"]}
        metadata = {"name": self._node, "ownerReferences": [owner]}
        return {"apiVersion": names.API_VERSION, "kind": "GPUNode", "metadata": metadata, "spec": {"cards": []}}


def pods_path() -> str:
    """Return the path of all pods; narrow it by the field `spec.nodeName`."""
    return "/api/v1/pods"
