"""What all pods, with cards or without, request of their nodes' CPU and memory. It ranks nodes and refuses nothing."""

from collections.abc import Iterable, Iterator

import msgspec

from vgpu.domain.asks import host_request
from vgpu.domain.asks.host_request import HostRequest
from vgpu.domain.cards.share import HostRoom
from vgpu.domain.identifiers import NodeName, PodUid


class HostPod(msgspec.Struct, frozen=True, gc=False):
    """What is kept of a pod that has nothing to do with GPUs: `node` is empty where it holds nothing."""

    uid: PodUid
    node: NodeName
    request: HostRequest


class HostUsage:
    """The requests of running pods, added up by node. Pods that request nothing are not kept."""

    def __init__(self) -> None:
        self._pods: dict[PodUid, HostPod] = {}
        self._nodes: dict[NodeName, HostRequest] = {}

    def put(self, pod: HostPod) -> list[NodeName]:
        """Take a pod that is new or changed; return the nodes whose sums change."""
        before = self._pods.get(pod.uid)
        if before == pod:
            return []
        changed = self.remove(pod.uid)
        if pod.node and pod.request != host_request.NOTHING:
            self._pods[pod.uid] = pod
            self._nodes[pod.node] = self._nodes.get(pod.node, host_request.NOTHING) + pod.request
            changed.append(pod.node)
        return changed

    def remove(self, uid: PodUid) -> list[NodeName]:
        """Take the deletion of a pod; return its node."""
        known = self._pods.pop(uid, None)
        if known is None:
            return []
        left = self._nodes.pop(known.node) - known.request
        if left != host_request.NOTHING:
            self._nodes[known.node] = left
        return [known.node]

    def retain(self, uids: Iterable[PodUid]) -> Iterator[NodeName]:
        """Remove every pod that a list of all pods does not show; yields the nodes whose sums change."""
        for uid in self._pods.keys() - set(uids):
            yield from self.remove(uid)

    def room(self, node: NodeName, allocatable: HostRequest) -> HostRoom:
        """Return what is free on a node; plenty where the node does not say what it has."""
        if allocatable == host_request.NOTHING:
            return HostRoom()
        taken = self._nodes.get(node, host_request.NOTHING)
        cpu_milli, memory_mib = allocatable.cpu_milli - taken.cpu_milli, allocatable.memory_mib - taken.memory_mib
        return HostRoom(max(0, cpu_milli), max(0, memory_mib))
