"""The watches that keep the picture true: pods, nodes, GPUNodes and Leases."""

import asyncio
from dataclasses import dataclass
from typing import Protocol

from extender import doubts, objects
from extender.cluster import Cluster
from extender.event_recorder import Teller
from extender.objects import Inventory, KubeNode, Lease, Pod
from extender.unschedulable import Waiting
from vgpu import names
from vgpu.adapters.kubernetes.client import Client
from vgpu.adapters.kubernetes.reflector import Reflector


class PodWatch:
    """Feeds pods; those that have nothing to do with GPUs arrive as None."""

    def __init__(self, cluster: Cluster, waiting: Waiting, teller: Teller) -> None:
        self._cluster = cluster
        self._waiting = waiting
        self._teller = teller

    def replace(self, objects: list[Pod | None]) -> None:
        """Take a full list."""
        pods = {pod.uid: pod for pod in objects if pod is not None}
        for uid in self._cluster.pods.keys() - pods.keys():
            self._cluster.delete_pod(uid)
        for pod in pods.values():
            self.upsert(pod)

    def upsert(self, obj: Pod | None) -> None:
        """Take one pod."""
        if obj is not None:
            self._cluster.upsert_pod(obj)
            self._waiting.note(obj)
            if doubt := doubts.of_assignment(obj):
                self._teller.tell(obj.reference, doubts.UNTRUSTED, f"nothing is counted for this pod: {doubt}")

    def delete(self, obj: Pod | None) -> None:
        """Forget one pod."""
        if obj is not None:
            self._cluster.delete_pod(obj.uid)


class NodeWatch:
    """Feeds what kubelets would allocate."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster

    def replace(self, objects: list[KubeNode]) -> None:
        """Take a full list."""
        self._cluster.nodes = {node.name: node for node in objects}

    def upsert(self, obj: KubeNode) -> None:
        """Take one node."""
        self._cluster.nodes[obj.name] = obj

    def delete(self, obj: KubeNode) -> None:
        """Forget one node."""
        self._cluster.nodes.pop(obj.name, None)


class InventoryWatch:
    """Feeds GPUNodes."""

    def __init__(self, cluster: Cluster, teller: Teller) -> None:
        self._cluster = cluster
        self._teller = teller

    def replace(self, objects: list[Inventory]) -> None:
        """Take a full list."""
        self._cluster.delete_inventories(
            *self._cluster.inventories.keys() - {inventory.node.name for inventory in objects}
        )
        self._take(*objects)

    def upsert(self, obj: Inventory) -> None:
        """Take one node's cards."""
        self._take(obj)

    def delete(self, obj: Inventory) -> None:
        """Forget one node's cards."""
        self._cluster.delete_inventories(obj.node.name)

    def _take(self, *objects: Inventory) -> None:
        self._cluster.upsert_inventories(*objects)
        for node, displaced in self._cluster.displaced.items():
            about = self._cluster.inventories[node].reference
            self._teller.tell(about, doubts.DUPLICATE, doubts.of_cards(displaced))


class LeaseWatch:
    """Feeds the Leases of our namespace: every plugin's, and the extender's own."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster

    def replace(self, objects: list[Lease]) -> None:
        """Take a full list."""
        for name in self._cluster.leases.keys() - {lease.name for lease in objects}:
            self._cluster.leases.pop(name)
        for lease in objects:
            self._cluster.see_lease(lease)

    def upsert(self, obj: Lease) -> None:
        """Take one Lease."""
        self._cluster.see_lease(obj)

    def delete(self, obj: Lease) -> None:
        """Forget one Lease."""
        self._cluster.leases.pop(obj.name, None)


class Synced(Protocol):
    """Says whether the picture is whole."""

    @property
    def is_synced(self) -> bool:
        """Whether every watch has had its first list."""


@dataclass(frozen=True, slots=True)
class Watches:
    """The four reflectors."""

    pods: Reflector
    nodes: Reflector
    inventories: Reflector
    leases: Reflector

    @property
    def is_synced(self) -> bool:
        """Whether every watch has had its first list: before that no verb may answer."""
        return all(each.synced.is_set() for each in self._all())

    async def wait(self) -> None:
        """Return when the picture is whole."""
        await asyncio.gather(*(each.synced.wait() for each in self._all()))

    async def run(self) -> None:
        """Keep the picture true until cancelled."""
        async with asyncio.TaskGroup() as group:
            for each in self._all():
                group.create_task(each.run())

    def _all(self) -> tuple[Reflector, ...]:
        return self.pods, self.nodes, self.inventories, self.leases


def watches(client: Client, cluster: Cluster, waiting: Waiting, teller: Teller, namespace: str) -> Watches:
    """Build the reflectors that feed `cluster` and `waiting`, and tell what is odd; our Leases are in `namespace`."""
    leases = f"/apis/coordination.k8s.io/v1/namespaces/{namespace}/leases"
    return Watches(
        pods=Reflector(client, "/api/v1/pods", PodWatch(cluster, waiting, teller), decode=objects.pod_or_none),
        nodes=Reflector(client, "/api/v1/nodes", NodeWatch(cluster), decode=objects.node),
        inventories=Reflector(client, names.GPUNODES_PATH, InventoryWatch(cluster, teller), decode=objects.inventory),
        leases=Reflector(client, leases, LeaseWatch(cluster), decode=objects.lease),
    )
