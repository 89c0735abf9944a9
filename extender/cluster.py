"""The state of the cluster that decisions look at: what is taken of each card, and which nodes can be used.

Usage is never stored, it is derived: from bound pods that are not terminal, by their assignments, and from reservations
of pods whose Binding is in flight. The watches write here and the verbs read. Everything runs on one event loop, so a
check and the reservation after it are one step as long as no code between them awaits.

The watches own the objects (`objects`, `leases`). `bind` owns the reservations; a reservation ends here when a watch
shows its pod bound, terminal or deleted, or when a list of all pods that is newer than the pod does not show the pod.
Derived node states are cached until an object or a reservation changes.
"""

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Final

from extender import card_owners
from extender.card_owners import CardOwners
from extender.demand import DemandKeeper
from extender.host_usage import HostPod, HostUsage
from extender.leases import Leases
from extender.objects import GpuNode, Pod
from extender.reservations import RecentReleases, Release, Reservation, Reservations
from extender.store import ObjectStore
from vgpu import names, usage
from vgpu.assignment import Assignment
from vgpu.device import Card
from vgpu.reasons import Reason
from vgpu.request import PodRequest
from vgpu.share import UNKNOWN_HOST, HostRoom, NodeState

HELD_REPORT_LAG_S: Final = 5.0  # a device plugin's report of held slices may be this much older than a pod's end


class Cluster:
    """Derived state. `clock` is monotonic, in seconds."""

    def __init__(self, slice_mib: int, clock: Callable[[], float]) -> None:
        self.slice_mib = slice_mib
        self.objects = ObjectStore()
        self.leases = Leases(clock)
        self.owners = CardOwners()
        self._clock = clock
        self._reservations = Reservations()
        self._releases = RecentReleases()
        self._states: dict[str, NodeState] = {}
        self._hosts = HostUsage()
        self.demand = DemandKeeper(slice_mib, self._usable_states)

    def now(self) -> float:
        """Return the monotonic time in seconds."""
        return self._clock()

    def usable_state(self, node: str) -> NodeState | Reason:
        """Return what is taken of a node's cards now, or why the node cannot be used."""
        gpunode = self.objects.gpunodes.get(node)
        if gpunode is None or not gpunode.node.cards:
            return Reason.NO_INVENTORY
        if self.is_plugin_away(node):
            return Reason.PLUGIN_AWAY
        if gpunode.node.slice_mib != self.slice_mib:
            return Reason.SLICE_SIZE_MISMATCH
        return self.state(node)

    def is_plugin_away(self, node: str) -> bool:
        """Whether a node's device plugin does not serve: the kubelet offers nothing, or the plugin's Lease is old."""
        kubelet = self.objects.nodes.get(node)
        return kubelet is None or kubelet.offers_nothing or not self.leases.is_fresh(names.node_lease(node))

    def state(self, node: str) -> NodeState:
        """Return what is taken of a node's cards now; the node must have a GPUNode."""
        if self._releases.expire(node, self._clock()):
            self._invalidate(node)
        if node not in self._states:
            self._states[node] = replace(self._derive(self.objects.gpunodes[node]), host=self._host_room(node))
        return self._states[node]

    def upsert_host_pod(self, pod: HostPod) -> None:
        """Take what a pod, with GPUs or without, takes of its node's CPU and memory."""
        self._invalidate(*self._hosts.put(pod))

    def delete_host_pod(self, uid: str) -> None:
        """Take the deletion of a pod."""
        self._invalidate(*self._hosts.remove(uid))

    def replace_host_pods(self, pods: Iterable[HostPod]) -> None:
        """Take the list of all pods."""
        listed = {pod.uid: pod for pod in pods}
        self._invalidate(*self._hosts.retain(listed))
        for pod in listed.values():
            self.upsert_host_pod(pod)

    def host_changed(self, node: str) -> None:
        """Take another amount of CPU or memory of a node."""
        self._invalidate(node)

    def reserve(self, reservation: Reservation) -> None:
        """Take what a pod will hold, before its Binding is posted."""
        self._reservations.put(reservation)
        self._invalidate(reservation.node)

    def release(self, uid: str, node: str) -> None:
        """End a reservation: its Binding was refused, or a watch shows its pod bound."""
        if self._reservations.remove(uid, node):
            self._invalidate(node)

    def release_when_seen(self, uid: str, node: str) -> None:
        """Keep the reservation of a bound pod until the watch shows the pod bound; end it where that has happened."""
        pod = self.objects.pods.get(uid)
        if self.objects.was_deleted(uid) or (pod is not None and pod.node):
            self.release(uid, node)

    def reservation(self, uid: str, node: str) -> Reservation | None:
        """Return a pod's reservation on a node."""
        return self._reservations.get(uid, node)

    def upsert_pod(self, pod: Pod) -> None:
        """Take a pod that is new or changed, from a watch."""
        if pod.is_terminal:
            self._note_release(pod)
        self._put_pod(pod, bound_at=pod.version)

    def delete_pod(self, pod: Pod) -> None:
        """Take a pod's deletion, from a watch: the pod in its last version."""
        self._note_release(pod)
        self._remove_pod(pod.uid)

    def count_reservations(self) -> int:
        """Return how many pods have a Binding in flight."""
        return len(list(self._reservations))

    def replace_pods(self, pods: Iterable[Pod], version: int) -> None:
        """Take the list of all pods at a resourceVersion.

        A pod that existed at an earlier version and is not listed is gone, and so is its reservation. A pod that is
        younger than the list may be missing in it: the watch that follows shows it. A list does not say when a pod
        ended, so no report of held slices is corrected.
        """
        listed = {pod.uid: pod for pod in pods}
        for uid in self.objects.pods.keys() - listed.keys():
            self._remove_pod(uid)
        for reservation in self._reservations:
            if reservation.uid not in listed and reservation.version <= version:
                self.release(reservation.uid, reservation.node)
        for pod in listed.values():
            known = self.objects.pods.get(pod.uid)
            if known is None or known.version != pod.version or pod.version < 0:
                self._put_pod(pod, bound_at=0)

    def upsert_gpunodes(self, *gpunodes: GpuNode) -> None:
        """Take GPUNodes that are new or changed."""
        for each in gpunodes:
            before = self.objects.gpunodes.get(each.node.name)
            self.objects.gpunodes[each.node.name] = each
            if before is None or before.version != each.version or each.version < 0:
                self._invalidate(each.node.name, *self.owners.put(each))

    def delete_gpunodes(self, *nodes: str) -> None:
        """Take the deletion of GPUNodes."""
        for node in nodes:
            self.objects.gpunodes.pop(node, None)
            self._releases.forget(node)
            self._invalidate(node, *self.owners.remove(node))

    def _put_pod(self, pod: Pod, *, bound_at: int) -> None:
        before = self.objects.pods.get(pod.uid)
        self.objects.put_pod(pod, bound_at)
        if pod.node or pod.is_terminal:
            self._end_reservations(pod.uid)
        self._invalidate(before.node if before else "", pod.node)

    def _remove_pod(self, uid: str) -> None:
        pod = self.objects.pods.get(uid)
        self.objects.remove_pod(uid)
        self._end_reservations(uid)
        self._invalidate(pod.node if pod else "")

    def _note_release(self, last: Pod) -> None:
        """Remember what an ending pod held: the device plugin's last report may be older than the end.

        A pod that its kubelet never admitted held nothing.
        """
        known = self.objects.pods.get(last.uid)
        if known is None or known.is_terminal or not last.has_started:
            return
        held, gpunode = granted(known), self.objects.gpunodes.get(known.node)
        if held is not None and gpunode is not None and gpunode.node.slice_mib:
            until, released = self._clock() + HELD_REPORT_LAG_S, usage.on_node(gpunode.node, [held])
            self._releases.add(known.node, Release(self.objects.bound_at(last.uid), last.version, until, released))

    def _end_reservations(self, uid: str) -> None:
        for node in self._reservations.nodes_of(uid):
            self.release(uid, node)

    def _host_room(self, node: str) -> HostRoom:
        kubelet = self.objects.nodes.get(node)
        return self._hosts.room(node, kubelet.host) if kubelet else UNKNOWN_HOST

    def _usable_states(self) -> list[NodeState]:
        states = (self.usable_state(name) for name in self.objects.gpunodes)
        return [state for state in states if isinstance(state, NodeState)]

    def _invalidate(self, *nodes: str) -> None:
        for node in nodes:
            self._states.pop(node, None)

    def _derive(self, gpunode: GpuNode) -> NodeState:
        node = gpunode.node
        taken = usage.on_node(node, self._holders(node.name))
        is_reported = any(card.held_slices for card in node.cards)
        unreported = usage.on_node(node, self._holders(node.name, after=gpunode.version)) if is_reported else {}
        owned = (self._owned(card, node.name) for card in node.cards)
        adjusted = (self._releases.adjust(node.name, card, gpunode.version) for card in owned)
        cards = tuple(_with_unreported(card, unreported) for card in adjusted)
        return NodeState.of(replace(node, cards=cards), taken, self._devices(node.name, node.slice_mib))

    def _devices(self, node: str, slice_mib: int) -> dict[str, int]:
        """Return what the kubelet counts for the node's pods, whether their assignments are trusted or not."""
        bound = self.objects.pods_on(node)
        requests = [pod.parsed.request for pod in bound.values()]
        requests += [held.request for held in self._reservations.on(node) if held.uid not in bound]
        total = Counter[str]()
        for request in requests:
            total.update(request.devices(slice_mib) if request else {})
        return dict(total)

    def _holders(self, node: str, after: int | None = None) -> list[tuple[PodRequest, Assignment]]:
        """Return what pods and reservations hold on a node: those since the resourceVersion `after`."""
        bound = self.objects.pods_on(node)
        reserved = [(r.request, r.assignment) for r in self._reservations.on(node) if r.uid not in bound]
        since = [pod for uid, pod in bound.items() if after is None or self.objects.bound_at(uid) > after]
        return [held for pod in since if (held := granted(pod)) is not None] + reserved

    def _owned(self, card: Card, node: str) -> Card:
        is_owned = self.owners.owns(node, card.uuid)
        return card if is_owned else replace(card, healthy=False, reason=card_owners.DUPLICATE)


def _with_unreported(card: Card, unreported: usage.Usages) -> Card:
    """Return a card whose report of held slices has what pods took since the report, where it has anything.

    Otherwise a holder that the accounts do not know would vanish in the larger one of the two figures.
    """
    more = unreported.get(card.uuid)
    return card if more is None or not card.held_slices else replace(card, held_slices=card.held_slices + more.slices)


def granted(pod: Pod) -> tuple[PodRequest, Assignment] | None:
    """Return a bound pod's request and assignment; None where the assignment is not trusted, so that it counts nothing.

    What such a pod really holds on its node is in the slices that the device plugin reports as held.
    """
    request, chosen = pod.parsed.request, pod.assignment
    return (request, chosen) if pod.node and request is not None and isinstance(chosen, Assignment) else None
