"""The node's Lease at the API server."""

from collections.abc import Callable
from datetime import datetime

from vgpu import names
from vgpu.adapters.kubernetes import lease
from vgpu.adapters.kubernetes.client import Client
from vgpu.errors import KubernetesError
from vgpu.node.heartbeat import DURATION_S


class NodeLease:
    """The Lease that says this node's plugin is known to its kubelet. Errors are KubernetesError."""

    def __init__(self, client: Client, namespace: str, node: str, now: Callable[[], datetime]) -> None:
        self._client = client
        self._namespace = namespace
        self._node = node
        self._now = now

    async def renew(self) -> None:
        """Say that we are here."""
        name = names.node_lease(self._node)
        if not await lease.renew(self._client, self._namespace, name, self._node, DURATION_S, self._now()):
            raise KubernetesError(409, "Conflict", f"lease {name} is held by somebody else, or was written just now")

    async def release(self) -> None:
        """Say that we are not."""
        await lease.release(self._client, self._namespace, names.node_lease(self._node), self._node, self._now())
