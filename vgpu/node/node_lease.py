"""The node's Lease at the API server, for the heartbeat."""

from collections.abc import Callable
from datetime import datetime

from vgpu import names
from vgpu.adapters.kubernetes import lease
from vgpu.adapters.kubernetes.client import Client
from vgpu.errors import KubernetesError
from vgpu.node.heartbeat import DURATION_S


class NodeLease:
    """The Lease that says that the kubelet serves this node's devices. All requests raise KubernetesError."""

    def __init__(self, client: Client, namespace: str, node: str, now: Callable[[], datetime]) -> None:
        self._client = client
        self._namespace = namespace
        self._node = node
        self._now = now

    async def renew(self) -> None:
        """Renew the Lease."""
        name = names.node_lease(self._node)
        if not await lease.renew(self._client, self._namespace, name, self._node, DURATION_S, self._now()):
            raise KubernetesError(
                409, "Conflict", f"lease {name} is held by another program, or was written at the same time"
            )

    async def release(self) -> None:
        """Release the Lease."""
        await lease.release(self._client, self._namespace, names.node_lease(self._node), self._node, self._now())
