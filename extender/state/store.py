"""The objects that the watches show: pods, Nodes and GPUNodes, as they are; `NodeStates` derives from them."""

from collections import OrderedDict
from collections.abc import Mapping
from typing import Final

from extender.state.beside.job_racks import JobPods
from extender.state.change_journal import ChangeJournal
from extender.state.gang_members import GangMembers
from extender.state.nominations import Nominations
from extender.state.objects import GpuNode, KubeNode, WatchedPod
from vgpu.domain.identifiers import NodeName, PodUid

MAX_DELETED: Final = 10_000


class ObjectStore:
    """The last version of every object, with an index of the pods by node.

    Attributes:
        changed_pods: the UIDs of the pods that have changed.
        changed_nodes: the names of the nodes of which a GPUNode, or what follows from the objects, has changed.
    """

    def __init__(self) -> None:
        self.changed_pods = ChangeJournal[PodUid]()
        self.changed_nodes = ChangeJournal[NodeName]()
        self.pods: dict[PodUid, WatchedPod] = {}
        self.nodes: dict[NodeName, KubeNode] = {}
        self.gpunodes: dict[NodeName, GpuNode] = {}
        self.nominations = Nominations()
        self.gangs = GangMembers()
        self.jobs = JobPods()
        self.waiting: dict[PodUid, None] = {}  # pods without a node, in the order in which they came
        self._running: dict[NodeName, dict[PodUid, WatchedPod]] = {}
        self._bound_at: dict[PodUid, int] = {}
        self._deleted: OrderedDict[PodUid, None] = OrderedDict()

    def put_pod(self, pod: WatchedPod, bound_at: int) -> None:
        """Store a pod that is new or changed; `bound_at` is kept of the first version that is bound."""
        before = self.pods.get(pod.uid)
        if before is not None:
            self._unindex(before)
        if pod.node:
            self._bound_at.setdefault(pod.uid, bound_at)
        self.pods[pod.uid] = pod
        self.changed_pods.add(pod.uid)
        self.nominations.put(pod)
        self.gangs.put(pod)
        self.jobs.put(pod)
        if pod.waits_for_node:
            self.waiting[pod.uid] = None
        else:
            self.waiting.pop(pod.uid, None)
        if pod.node and not pod.is_terminal:
            self._running.setdefault(pod.node, {})[pod.uid] = pod

    def remove_pod(self, uid: PodUid) -> None:
        """Remove a deleted pod; the UIDs of the last 10,000 are remembered."""
        before = self.pods.pop(uid, None)
        if before is not None:
            self._unindex(before)
            self.changed_pods.add(uid)
        self.nominations.remove(uid)
        self.gangs.remove(uid)
        self.waiting.pop(uid, None)
        self.jobs.remove(uid)
        self._bound_at.pop(uid, None)
        self._deleted[uid] = None
        if len(self._deleted) > MAX_DELETED:
            self._deleted.popitem(last=False)

    def put_gpunode(self, gpunode: GpuNode) -> None:
        """Store a GPUNode that is new or changed."""
        self.gpunodes[gpunode.node.name] = gpunode
        self.changed_nodes.add(gpunode.node.name)

    def remove_gpunode(self, name: NodeName) -> None:
        """Remove a deleted GPUNode."""
        self.gpunodes.pop(name, None)
        self.changed_nodes.add(name)

    def was_deleted(self, uid: PodUid) -> bool:
        """Whether a watch has shown the deletion of a pod."""
        return uid in self._deleted

    def bound_at(self, uid: PodUid) -> int:
        """Return the resourceVersion at which a pod was bound; 0 where only a list has shown the pod."""
        return self._bound_at.get(uid, 0)

    def pods_on(self, node: NodeName) -> Mapping[PodUid, WatchedPod]:
        """Return the pods that are bound to a node and not terminal, by UID."""
        return self._running.get(node, {})

    def _unindex(self, pod: WatchedPod) -> None:
        running = self._running.get(pod.node)
        if running is None:
            return
        running.pop(pod.uid, None)
        if not running:
            del self._running[pod.node]
