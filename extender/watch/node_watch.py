"""Takes what the watch of Nodes shows."""

from extender.effects.waker import Waker
from extender.state import objects as reading
from extender.state.cluster import Cluster
from extender.state.objects import KubeNode
from extender.watch.watches import WatchedKind


class NodeWatch:
    """Takes Nodes: what their kubelets would allocate."""

    def __init__(self, cluster: Cluster, waker: Waker) -> None:
        self.kind = WatchedKind("nodes", "/api/v1/nodes", self, reading.node)
        self._cluster = cluster
        self._waker = waker

    def replace(self, objects: list[KubeNode], version: str) -> None:  # noqa: ARG002 - the reflector's protocol
        """Take a full list."""
        more = [node.name for node in objects if self._offers_more(node)]
        self._cluster.updates.replace_nodes(objects)
        for node in more:
            self._waker.changed(node)

    def upsert(self, obj: KubeNode) -> None:
        """Take a Node that is new or changed."""
        offers_more = self._offers_more(obj)
        self._cluster.updates.upsert_nodes(obj)
        if offers_more:
            self._waker.changed(obj.name)

    def delete(self, obj: KubeNode) -> None:
        """Take a Node's deletion."""
        self._cluster.updates.delete_nodes(obj.name)

    def _offers_more(self, node: KubeNode) -> bool:
        """Whether the kubelet offers more devices than before."""
        before = self._cluster.objects.nodes.get(node.name)
        known = before.allocatable if before is not None else {}
        return any(amount > known.get(resource, 0) for resource, amount in node.allocatable.items())
