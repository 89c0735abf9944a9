"""Pods that wait for a node on which other pods are being evicted for them (`status.nominatedNodeName`).

The cards that such a pod will get are reserved against pods of lower priority, and of equal priority, as kube-scheduler
reserves what it counts itself.
"""

from collections import defaultdict

from extender.state.objects import WatchedPod
from vgpu.domain.identifiers import NodeName, PodUid


class Nominations:
    """Pending pods by the node that they are nominated for."""

    def __init__(self) -> None:
        self._by_node: defaultdict[NodeName, dict[PodUid, WatchedPod]] = defaultdict(dict)
        self._nodes: dict[PodUid, NodeName] = {}

    def put(self, pod: WatchedPod) -> None:
        """Take a pod that is new or changed."""
        if pod.uid in self._nodes:
            self.remove(pod.uid)
        node = pod.scheduling.nominated_node
        if node and not pod.node and not pod.is_terminal and not pod.scheduling.is_terminating:
            self._by_node[node][pod.uid] = pod
            self._nodes[pod.uid] = node

    def remove(self, uid: PodUid) -> None:
        """Take a pod's deletion."""
        node = self._nodes.pop(uid, None)
        if node is not None:
            del self._by_node[node][uid]
            if not self._by_node[node]:
                del self._by_node[node]

    def nodes(self) -> list[NodeName]:
        """Return the nodes that pods are nominated for."""
        return list(self._by_node)

    def before(self, pod: WatchedPod, node: NodeName) -> list[WatchedPod]:
        """Return the other pods whose cards on a node are reserved against a pod, the highest priority first."""
        if node not in self._by_node:
            return []
        rank = _rank(pod) if pod.uid in self._by_node[node] else (-pod.scheduling.priority, "~")
        ranked = sorted((other for other in self._by_node[node].values() if other.uid != pod.uid), key=_rank)
        return [other for other in ranked if _rank(other) < rank]


def _rank(pod: WatchedPod) -> tuple[int, str]:
    """Sort by priority. Equal pods nominated for one node have an order, so that they do not block each other."""
    return -pod.scheduling.priority, pod.uid
