"""The device plugin of a simulated node, as the API server sees it: GPUNode, devices on the Node, and the Lease."""

import contextlib
from datetime import timedelta
from typing import Final

from vgpu.adapters.kubernetes import timestamps
from vgpu.domain import names
from vgpu.domain.cards import card_status
from vgpu.domain.cards.device import Node
from vgpu.domain.cards.share import Usage
from vgpu.domain.errors import KubernetesError
from vgpu.domain.identifiers import CardUuid
from vgpu.domain.json_types import JsonObject
from vgpu.simulator import nodes
from vgpu.simulator.api import resources
from vgpu.simulator.api.cluster import InMemoryCluster
from vgpu.simulator.api.resources import Target

LEASE_S: Final = 1.0
LEASE_DURATION_S: Final = 3


class DevicePlugin:
    """Publishes the cards of one node."""

    def __init__(self, cluster: InMemoryCluster, node: Node) -> None:
        self._cluster = cluster
        self._node = node
        self._lease = Target(resources.LEASES, names.NAMESPACE, names.node_lease(node.name))
        self._gpunode = Target(resources.GPUNODES, name=node.name)
        self._renewed = cluster.now()

    async def register(self, owner_uid: str) -> None:
        """Create the GPUNode, owned by its Node, and the Lease."""
        await self.publish(owner_uid, {}, {})
        await self._write_lease(self._node.name)

    async def leave(self) -> None:
        """Remove the GPUNode and release the Lease, where that is not done: the Node is gone."""
        if self._cluster.find(self._gpunode) is not None:
            await self._delete_gpunode()
        lease = self._cluster.find(self._lease)
        if lease is not None and (lease.get("spec") or {}).get("holderIdentity"):
            await self.release()

    async def publish(self, owner_uid: str, used: dict[CardUuid, Usage], measured: JsonObject) -> None:
        """Publish what is held of each card, and what containers and cards use; writes only what has changed.

        A GPUNode that is missing, or of another Node of this name, is made anew. Raises KubernetesError where one of
        the objects is deleted meanwhile.
        """
        await self._own_gpunode(owner_uid)

        def with_status(old: JsonObject) -> JsonObject:
            return {**old, "status": nodes.gpunode_status(self._node, used, self._cordoned(old)) | measured}

        await self._cluster.patch(self._status_of(resources.GPUNODES), with_status)
        devices = nodes.devices(self._node, used)

        def with_devices(old: JsonObject) -> JsonObject:
            known = {**nodes.node_object(self._node)["status"], **(old.get("status") or {})}
            amounts = {key: {**(known.get(key) or {}), **more} for key, more in devices.items()}
            return {**old, "status": {**known, **amounts}}

        await self._cluster.patch(self._status_of(resources.NODES), with_devices)

    async def renew(self) -> None:
        """Renew the Lease where that is due."""
        if self._cluster.now() - self._renewed >= timedelta(seconds=LEASE_S):
            await self._write_lease(self._node.name)

    async def release(self) -> None:
        """Release the Lease, as a plugin that stops does: filter then refuses the node at once."""
        await self._write_lease("")

    def _cordoned(self, gpunode: JsonObject) -> dict[CardUuid, str]:
        """Return the cards that the spec cordons, each with the time since when: that of the status, or now."""
        now = timestamps.seconds(self._cluster.now())
        return {uuid: since or now for uuid, since in card_status.cordons(gpunode).items()}

    async def _own_gpunode(self, owner_uid: str) -> None:
        found = self._cluster.find(self._gpunode)
        owners = (found["metadata"].get("ownerReferences") or ()) if found is not None else ()
        if found is not None and not all(owner.get("uid") == owner_uid for owner in owners):
            await self._delete_gpunode()
            found = None
        if found is None:
            await self._cluster.create(Target(resources.GPUNODES), nodes.gpunode_object(self._node, owner_uid))

    async def _delete_gpunode(self) -> None:
        with contextlib.suppress(KubernetesError):  # another client was faster
            await self._cluster.delete(self._gpunode, {})

    def _status_of(self, resource: resources.Resource) -> Target:
        return Target(resource, name=self._node.name, subresource="status")

    async def _write_lease(self, holder: str) -> None:
        self._renewed = self._cluster.now()
        spec = {
            "holderIdentity": holder,
            "leaseDurationSeconds": LEASE_DURATION_S,
            "renewTime": timestamps.micros(self._renewed),
        }
        if self._cluster.find(self._lease) is None:
            await self._cluster.create(self._lease, {"metadata": {"name": self._lease.name}, "spec": spec})
        else:
            await self._cluster.patch(self._lease, lambda old: {**old, "spec": spec})
