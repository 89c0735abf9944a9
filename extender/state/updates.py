"""Takes what the watches show into the state: stores each object, and says which nodes change by it."""

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Final

from extender.state import bound_usage
from extender.state.beside.card_neighbours import CardNeighbours
from extender.state.card_owners import CardOwners
from extender.state.host_usage import HostPod
from extender.state.node_states import NodeStates
from extender.state.objects import GpuNode, KubeNode, WatchedPod
from extender.state.reservations import RecentReleases, Release, Reservations
from extender.state.store import ObjectStore
from vgpu.domain.grants import usage
from vgpu.domain.identifiers import NO_NODE, NodeName, PodUid

HELD_REPORT_LAG_S: Final = 5.0  # a device plugin's report of held slices may lack what has changed in this time


class StateUpdates:
    """Writes the objects, and ends the reservations of pods that are bound or gone. `clock` is monotonic, in seconds.

    `bind` owns the reservations; one ends here when a watch shows its pod bound, terminal or deleted, or when a list of
    all pods that is newer than the pod does not show the pod.
    """

    def __init__(
        self,
        objects: ObjectStore,
        owners: CardOwners,
        neighbours: CardNeighbours,
        reservations: Reservations,
        states: NodeStates,
        clock: Callable[[], float],
    ) -> None:
        self._objects = objects
        self._owners = owners
        self._neighbours = neighbours
        self._reservations = reservations
        self._states = states
        self._accounts = states.accounts
        self._clock = clock

    def upsert_host_pod(self, pod: HostPod) -> None:
        """Take what a pod, with GPUs or without, takes of its node's CPU and memory."""
        self._states.invalidate(*self._accounts.hosts.put(pod))

    def delete_host_pod(self, uid: PodUid) -> None:
        """Take the deletion of a pod."""
        self._states.invalidate(*self._accounts.hosts.remove(uid))

    def replace_host_pods(self, pods: Iterable[HostPod]) -> None:
        """Take the list of all pods."""
        listed = {pod.uid: pod for pod in pods}
        self._states.invalidate(*self._accounts.hosts.retain(listed))
        for pod in listed.values():
            self.upsert_host_pod(pod)

    def upsert_pod(self, pod: WatchedPod) -> None:
        """Take a pod that is new or changed, from a watch."""
        if pod.is_terminal:
            self._note_release(pod)
        self._put_pod(pod, bound_at=pod.version)

    def delete_pod(self, pod: WatchedPod) -> None:
        """Take a pod's deletion, from a watch: the pod in its last version.

        A kubelet lets a pod become terminal before it removes it. A pod that is not was deleted by force.
        """
        if pod.is_terminal:
            self._note_release(pod)
        else:
            self._note_departure(pod)
        self._remove_pod(pod.uid)

    def replace_pods(self, pods: Iterable[WatchedPod], version: int) -> None:
        """Take the list of all pods at a resourceVersion.

        A pod that existed at an earlier version and is not listed is gone, and so is its reservation. A pod that is
        younger than the list may be missing in it: the watch that follows shows it. A list does not say when a pod
        ended, so no report of held slices is corrected.
        """
        listed = {pod.uid: pod for pod in pods}
        for uid in self._objects.pods.keys() - listed.keys():
            self._remove_pod(uid)
        for reservation in self._reservations:
            if reservation.uid not in listed and reservation.version <= version:
                self._reservations.remove(reservation.uid, reservation.node)
        for pod in listed.values():
            known = self._objects.pods.get(pod.uid)
            if known is None or known.version != pod.version or pod.version < 0:
                self._put_pod(pod, bound_at=0)

    def replace_nodes(self, nodes: Iterable[KubeNode]) -> None:
        """Take the list of all Nodes."""
        listed = {node.name: node for node in nodes}
        self.delete_nodes(*self._objects.nodes.keys() - listed.keys())
        self.upsert_nodes(*listed.values())

    def upsert_nodes(self, *nodes: KubeNode) -> None:
        """Take Nodes that are new or changed."""
        changed = [node for node in nodes if self._objects.nodes.get(node.name) != node]
        self._objects.nodes.update({node.name: node for node in changed})
        self._states.invalidate(*(node.name for node in changed))

    def delete_nodes(self, *nodes: NodeName) -> None:
        """Take the deletion of Nodes."""
        for node in nodes:
            self._objects.nodes.pop(node, None)
        self._states.invalidate(*nodes)

    def upsert_gpunodes(self, *gpunodes: GpuNode) -> None:
        """Take GPUNodes that are new or changed.

        A report of what containers use changes no card: the node's state stays, and so does the version since which
        the report of held slices is as it is.
        """
        known = self._objects.gpunodes
        for gpunode in gpunodes:
            before = known.get(gpunode.node.name)
            if before is not None and before.differs_in_usage_only(gpunode):
                self._objects.put_gpunode(replace(gpunode, version=before.version))
                continue
            self._objects.put_gpunode(gpunode)
            if before is None or before.version != gpunode.version or gpunode.version < 0:
                self._states.invalidate(gpunode.node.name, *self._owners.put(gpunode))

    def delete_gpunodes(self, *nodes: NodeName) -> None:
        """Take the deletion of GPUNodes."""
        for node in nodes:
            self._objects.remove_gpunode(node)
            self._states.invalidate(*self._owners.remove(node))
            self._states.forget(node)

    def _put_pod(self, pod: WatchedPod, *, bound_at: int) -> None:
        before = self._objects.pods.get(pod.uid)
        self._objects.put_pod(pod, bound_at)
        if pod.node and bound_at and (before is None or not before.node):
            self._accounts.bindings.add(pod.node, pod.uid, self._clock() + HELD_REPORT_LAG_S)
        self._neighbours.put(pod)
        if pod.node or pod.is_terminal:
            self._reservations.end(pod.uid)
        if not bound_usage.holds_alike(before, pod):
            self._accounts.bound.change(before, pod)
            self._states.invalidate(before.node if before else NO_NODE, pod.node)

    def _remove_pod(self, uid: PodUid) -> None:
        pod = self._objects.pods.get(uid)
        self._objects.remove_pod(uid)
        self._neighbours.remove(uid)
        self._reservations.end(uid)
        self._accounts.bound.change(pod, None)
        self._states.invalidate(pod.node if pod else NO_NODE)

    def _note_release(self, last: WatchedPod) -> None:
        """Remember what an ending pod held: the device plugin's last report may be older than the end.

        A pod that its kubelet never admitted held nothing.
        """
        known = self._objects.pods.get(last.uid)
        if known is not None and not known.is_terminal and last.has_started:
            self._note(self._accounts.releases, known, last)

    def _note_departure(self, last: WatchedPod) -> None:
        """Remember what a pod took that was deleted by force: its node may start it, or run it, for some time."""
        known = self._objects.pods.get(last.uid)
        if known is not None and not known.is_terminal:
            self._note(self._accounts.departures, known, last)

    def _note(self, noted: RecentReleases, known: WatchedPod, last: WatchedPod) -> None:
        held, gpunode = bound_usage.granted(known), self._objects.gpunodes.get(known.node)
        if held is not None and gpunode is not None and gpunode.node.slice_mib:
            released = usage.on_node(gpunode.node, [held])
            release = Release(self._objects.bound_at(last.uid), last.version, released)
            noted.add(known.node, release, self._clock() + HELD_REPORT_LAG_S)
