"""The state of the cluster that decisions look at: what is taken of each card, and which nodes can be used.

Usage is never stored, it is derived: from bound pods that are not terminal, by their assignments, and from reservations
of pods whose Binding is in flight. The watches write here and the verbs read. Everything runs on one event loop, so a
check and the reservation after it are one step as long as no code between them awaits.

The watches own the objects (`objects`, `leases`). `bind` owns the reservations; a reservation ends here when a watch
shows its pod bound, terminal or deleted, or when a list of all pods that is newer than the pod does not show the pod.
Derived node states are cached until an object or a reservation changes; the index is written from them.
"""

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from operator import attrgetter
from typing import Final

from extender.index.copies import Copies
from extender.index.nodes import NodeIndex
from extender.index.ranking import Ranking
from extender.index.row import IndexRow
from extender.index.supply import Supplies, Supply
from extender.state import bound_usage, card_owners, card_states
from extender.state.bound_usage import BoundUsage
from extender.state.card_owners import CardOwners
from extender.state.demand import DemandKeeper
from extender.state.held_room import Holds
from extender.state.host_usage import HostPod, HostUsage
from extender.state.leases import Leases
from extender.state.node_rows import NodeRows
from extender.state.objects import GpuNode, KubeNode, WatchedPod
from extender.state.reservations import RecentReleases, Release, Reservation, Reservations
from extender.state.store import ObjectStore
from vgpu.domain import names
from vgpu.domain.asks.request import PodRequest
from vgpu.domain.cards.device import Card, Node
from vgpu.domain.cards.reasons import Reason
from vgpu.domain.cards.share import NO_USAGE, UNKNOWN_HOST, HostRoom, NodeState, Usage
from vgpu.domain.grants import usage
from vgpu.domain.grants.assignment import Assignment
from vgpu.placement import racks
from vgpu.placement.models import Models
from vgpu.placement.room import PodAsk
from vgpu.placement.weights import PolicyWeights

DEFAULT_WEIGHTS: Final = PolicyWeights()
_held_slices: Final = attrgetter("held_slices")
HELD_REPORT_LAG_S: Final = 5.0  # a device plugin's report of held slices may be this much older than a pod's end


class Cluster:
    """Derived state. `clock` is monotonic, in seconds; `weights` are those of the packing policies."""

    def __init__(self, slice_mib: int, clock: Callable[[], float], weights: PolicyWeights = DEFAULT_WEIGHTS) -> None:
        self.slice_mib = slice_mib
        self.weights = weights
        self.objects = ObjectStore()
        self.leases = Leases(clock, self._take_lease)
        self.owners = CardOwners()
        self.holds = Holds()
        self._clock = clock
        self._bound = BoundUsage()
        self._reservations = Reservations()
        self._releases = RecentReleases()
        self._states: dict[str, NodeState] = {}
        self._before: dict[str, NodeState] = {}  # the last states of nodes that have changed since
        self._hosts = HostUsage()
        models = Models()
        self.rows = NodeRows(self._row, clock, models)
        room_for = Copies(self.rows.index)
        self.ranking = Ranking(self.rows.index, room_for, self.state)
        self._supplies = Supplies(self.rows.index, room_for, self.state, models)
        self.demand = DemandKeeper(slice_mib, models, self.supply, weights.fragmentation)

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

    def request(self, pod: WatchedPod) -> PodRequest | None:
        """Return what a pod asks for, with the cards that affinity to the pods on them allows and rules out now."""
        return self.objects.neighbours.request(pod, self._binding())

    def preferred(self, pod: WatchedPod, request: PodRequest) -> PodRequest | None:
        """Return what `request` returned, with the cards that the pod prefers too; None where it prefers none now."""
        if not request.options.prefers_neighbours:
            return None
        return self.objects.neighbours.preferred(pod, request, self._binding())

    def rack_tiers(self, pod: WatchedPod, asked: Sequence[str]) -> Mapping[str, int]:
        """Return the tier of each node by its rack, for a pod with a policy for racks; else empty."""
        request = pod.parsed.request
        if request is None or request.options.rack_policy is None:
            return {}
        pods = self.objects.pods
        binding = [
            (pods[reservation.uid], reservation.node) for reservation in self._reservations if reservation.uid in pods
        ]
        used = [self._rack(node) for node in self.objects.jobs.nodes(pod, binding)]
        return racks.tiers(request.options.rack_policy, {name: self._rack(name) for name in asked}, used)

    async def index(self, pause: Callable[[float], Awaitable[None]]) -> NodeIndex:
        """Return every node as arrays, up to date until the next change; long work is done in slices with pauses."""
        self._invalidate(*self._releases.due(self._clock()))
        return await self.rows.update(pause)

    def supply(self, typical: tuple[PodAsk, ...]) -> Supply:
        """Return the room that all usable nodes have for classes of pods; the index must be up to date."""
        return self._supplies.of(typical, self._clock())

    def is_plugin_away(self, node: str) -> bool:
        """Whether a node's device plugin does not serve: the kubelet offers nothing, or the plugin's Lease is old."""
        kubelet = self.objects.nodes.get(node)
        return kubelet is None or kubelet.offers_nothing or not self.leases.is_fresh(names.node_lease(node))

    def state(self, node: str) -> NodeState:
        """Return what is taken of a node's cards now; the node must have a GPUNode."""
        if self._releases.expire(node, self._clock()):
            self._invalidate(node)
        if node not in self._states:
            self._states[node] = self._derive(self.objects.gpunodes[node])
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

    def reserved_on(self, uid: str) -> list[str]:
        """Return the nodes on which a pod has a reservation."""
        return self._reservations.nodes_of(uid)

    def reservation(self, uid: str, node: str) -> Reservation | None:
        """Return a pod's reservation on a node."""
        return self._reservations.get(uid, node)

    def upsert_pod(self, pod: WatchedPod) -> None:
        """Take a pod that is new or changed, from a watch."""
        if pod.is_terminal:
            self._note_release(pod)
        self._put_pod(pod, bound_at=pod.version)

    def delete_pod(self, pod: WatchedPod) -> None:
        """Take a pod's deletion, from a watch: the pod in its last version."""
        self._note_release(pod)
        self._remove_pod(pod.uid)

    def count_reservations(self) -> int:
        """Return how many pods have a Binding in flight."""
        return len(list(self._reservations))

    def replace_pods(self, pods: Iterable[WatchedPod], version: int) -> None:
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

    def replace_nodes(self, nodes: Iterable[KubeNode]) -> None:
        """Take the list of all Nodes."""
        listed = {node.name: node for node in nodes}
        self.delete_nodes(*self.objects.nodes.keys() - listed.keys())
        self.upsert_nodes(*listed.values())

    def upsert_nodes(self, *nodes: KubeNode) -> None:
        """Take Nodes that are new or changed."""
        changed = [node for node in nodes if self.objects.nodes.get(node.name) != node]
        self.objects.nodes.update({node.name: node for node in changed})
        self._invalidate(*(node.name for node in changed))

    def delete_nodes(self, *nodes: str) -> None:
        """Take the deletion of Nodes."""
        for node in nodes:
            self.objects.nodes.pop(node, None)
        self._invalidate(*nodes)

    def upsert_gpunodes(self, *gpunodes: GpuNode) -> None:
        """Take GPUNodes that are new or changed.

        A report of what containers use changes no card: the node's state stays, and so does the version since which
        the report of held slices is as it is.
        """
        for gpunode in gpunodes:
            before = self.objects.gpunodes.get(gpunode.node.name)
            if before is not None and before.differs_in_usage_only(gpunode):
                self.objects.gpunodes[gpunode.node.name] = replace(gpunode, version=before.version)
                continue
            self.objects.gpunodes[gpunode.node.name] = gpunode
            if before is None or before.version != gpunode.version or gpunode.version < 0:
                self._invalidate(gpunode.node.name, *self.owners.put(gpunode))

    def delete_gpunodes(self, *nodes: str) -> None:
        """Take the deletion of GPUNodes."""
        for node in nodes:
            self.objects.gpunodes.pop(node, None)
            self._releases.forget(node)
            self._bound.forget(node)
            self._invalidate(node, *self.owners.remove(node))
            self._before.pop(node, None)

    def _put_pod(self, pod: WatchedPod, *, bound_at: int) -> None:
        before = self.objects.pods.get(pod.uid)
        self.objects.put_pod(pod, bound_at)
        if pod.node or pod.is_terminal:
            self._end_reservations(pod.uid)
        if not bound_usage.holds_alike(before, pod):
            self._bound.change(before, pod)
            self._invalidate(before.node if before else "", pod.node)

    def _remove_pod(self, uid: str) -> None:
        pod = self.objects.pods.get(uid)
        self.objects.remove_pod(uid)
        self._end_reservations(uid)
        self._bound.change(pod, None)
        self._invalidate(pod.node if pod else "")

    def _note_release(self, last: WatchedPod) -> None:
        """Remember what an ending pod held: the device plugin's last report may be older than the end.

        A pod that its kubelet never admitted held nothing.
        """
        known = self.objects.pods.get(last.uid)
        if known is None or known.is_terminal or not last.has_started:
            return
        held, gpunode = bound_usage.granted(known), self.objects.gpunodes.get(known.node)
        if held is not None and gpunode is not None and gpunode.node.slice_mib:
            until, released = self._clock() + HELD_REPORT_LAG_S, usage.on_node(gpunode.node, [held])
            self._releases.add(known.node, Release(self.objects.bound_at(last.uid), last.version, until, released))

    def _end_reservations(self, uid: str) -> None:
        for node in self._reservations.nodes_of(uid):
            self.release(uid, node)

    def _binding(self) -> list[tuple[WatchedPod, Assignment]]:
        """Return the pods whose Binding is in flight."""
        in_flight = ((reservation.uid, reservation.assignment) for reservation in self._reservations)
        return [(self.objects.pods[uid], chosen) for uid, chosen in in_flight if uid in self.objects.pods]

    def _rack(self, node: str) -> str:
        kubelet = self.objects.nodes.get(node)
        return kubelet.rack if kubelet else ""

    def _host_room(self, node: str) -> HostRoom:
        kubelet = self.objects.nodes.get(node)
        return self._hosts.room(node, kubelet.host) if kubelet else UNKNOWN_HOST

    def _invalidate(self, *nodes: str) -> None:
        """Take nodes whose states have changed; an empty name is no node."""
        for node in nodes:
            if node in self._states:
                self._before[node] = self._states.pop(node)
            if node:
                self.rows.mark(node)

    def _take_lease(self, name: str) -> None:
        if node := names.node_of_lease(name):
            self.rows.index.put_lease(node, *self.leases.term(name))

    def _row(self, name: str) -> IndexRow | None:
        """Return a node's row in the index: the parts of `usable_state`, without what time changes."""
        gpunode, kubelet = self.objects.gpunodes.get(name), self.objects.nodes.get(name)
        if gpunode is None or not gpunode.node.cards:
            return None
        renewed, duration_s = self.leases.term(names.node_lease(name))
        if kubelet is None or kubelet.offers_nothing:
            return IndexRow(name, Reason.PLUGIN_AWAY, renewed=renewed, duration_s=duration_s)
        if gpunode.node.slice_mib != self.slice_mib:
            return IndexRow(name, Reason.SLICE_SIZE_MISMATCH, renewed=renewed, duration_s=duration_s)
        state = self.state(name)
        left = kubelet.left(state.devices, names.SLICE), kubelet.left(state.devices, names.CARD)
        return IndexRow(name, None, state, left, renewed, duration_s)

    def _derive(self, gpunode: GpuNode) -> NodeState:
        node, pods = gpunode.node, self.objects.pods_on(gpunode.node.name)
        bound = self._bound.on(node, pods.values())
        reserved = [each for each in self._reservations.on(node.name) if each.uid not in pods]
        more = usage.on_node(node, [(each.request, each.assignment) for each in reserved]) if reserved else {}
        devices = dict(bound.devices)
        for each in reserved:
            bound_usage.add_amounts(devices, each.request.devices(node.slice_mib))
        added = {card: bound.cards.get(card, NO_USAGE) + each for card, each in more.items()}
        taken = bound.cards | added if added else bound.cards
        before = self._before.pop(node.name, None)
        cards = card_states.of_cards(self._cards(gpunode, more), node.slice_mib, taken, before.cards if before else ())
        host, links = self._host_room(node.name), self.weights.topology
        return NodeState(node.name, node.slice_mib, cards, devices, host, links)

    def _cards(self, gpunode: GpuNode, reserved: usage.Usages) -> Sequence[Card]:
        """Return a node's cards as reported, corrected by what is known beside the report."""
        node, cards = gpunode.node, gpunode.node.cards
        if self.owners.are_contested:
            cards = tuple(self._owned(card, node.name) for card in cards)
        if self._releases.on(node.name):
            cards = tuple(self._releases.adjust(node.name, card, gpunode.version) for card in cards)
        unreported = self._unreported(node, gpunode.version, reserved)
        return tuple(_with_unreported(card, unreported) for card in cards) if unreported else cards

    def _unreported(self, node: Node, version: int, reserved: usage.Usages) -> Mapping[str, Usage]:
        """Return what pods took since the report of held slices at a resourceVersion, where there is a report."""
        if not any(map(_held_slices, node.cards)):
            return {}
        pods = self.objects.pods_on(node.name)
        since = [pod for uid, pod in pods.items() if self.objects.bound_at(uid) > version]
        held = [each for pod in since if (each := bound_usage.granted(pod)) is not None]
        return usage.total([usage.on_node(node, held), reserved]) if held else reserved

    def _owned(self, card: Card, node: str) -> Card:
        is_owned = self.owners.owns(node, card.uuid)
        return card if is_owned else replace(card, healthy=False, reason=card_owners.DUPLICATE)


def _with_unreported(card: Card, unreported: usage.Usages) -> Card:
    """Return a card whose report of held slices has what pods took since the report, where it has anything.

    Otherwise a holder that the accounts do not know would vanish in the larger one of the two figures.
    """
    more = unreported.get(card.uuid)
    return card if more is None or not card.held_slices else replace(card, held_slices=card.held_slices + more.slices)
