"""The node's Lease at the API server, for the heartbeat: one PUT for each renewal.

The Lease's last version is remembered, because no other client writes it. Only after a conflict, a deletion or an
unknown outcome the Lease is read.
"""

from collections.abc import Callable
from datetime import datetime
from typing import Any

import msgspec

from vgpu.adapters.kubernetes import lease
from vgpu.adapters.kubernetes.client import KubernetesClient
from vgpu.domain import names
from vgpu.domain.errors import KubernetesError
from vgpu.domain.identifiers import Namespace, NodeName


class NodeLease:
    """The Lease that says that the kubelet serves this node's devices. All requests raise KubernetesError."""

    def __init__(
        self, client: KubernetesClient, namespace: Namespace, node: NodeName, now: Callable[[], datetime]
    ) -> None:
        self._client = client
        self._namespace = namespace
        self._name = names.node_lease(node)
        self._node = node
        self._now = now
        self._known: dict[str, Any] | None = None

    async def renew(self, duration_s: int) -> None:
        """Renew the Lease; it expires after `duration_s`."""
        if self._known is None:
            await self._take(duration_s)
        else:
            await self._write(self._known, self._node, duration_s)

    async def release(self) -> None:
        """Release the Lease."""
        if self._known is None:
            await lease.release(self._client, self._namespace, self._name, self._node, self._now())
        else:
            await self._write(self._known, "", 1)

    async def _take(self, duration_s: int) -> None:
        """Create the Lease, or read and renew it."""
        if not await lease.renew(self._client, self._namespace, self._name, self._node, duration_s, self._now()):
            raise KubernetesError(
                409, "Conflict", f"lease {self._name} is held by another program, or was written at the same time"
            )
        self._known = msgspec.json.decode(await self._client.get(lease.path(self._namespace, self._name), timeout=5))

    async def _write(self, known: dict[str, Any], holder: str, duration_s: int) -> None:
        body = lease.renewed(known, holder, duration_s, self._now())
        self._known = None  # unknown until the answer is there
        self._known = msgspec.json.decode(
            await self._client.put(lease.path(self._namespace, self._name), body, timeout=5)
        )
