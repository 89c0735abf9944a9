"""What is taken of each node's cards, and whether pods may use the node.

A state is derived and never stored: from bound pods that are not terminal, by their assignments, and from reservations
of pods whose Binding is in flight. A derived state is kept until something that it follows from changes.
"""

from collections.abc import Callable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field, replace
from operator import attrgetter
from typing import Final

from extender.index.row import IndexRow
from extender.state import bound_usage, card_states, gang_members
from extender.state.bound_usage import BoundUsage
from extender.state.card_owners import CardOwners
from extender.state.gang_members import GangKey
from extender.state.host_usage import HostUsage
from extender.state.leases import Leases
from extender.state.objects import GpuNode
from extender.state.reservations import RecentBindings, RecentReleases, Reservations
from extender.state.store import ObjectStore
from vgpu.domain import names
from vgpu.domain.cards import ownership
from vgpu.domain.cards.device import Card, Node
from vgpu.domain.cards.links import LinkWeights
from vgpu.domain.cards.reasons import Reason
from vgpu.domain.cards.share import NO_USAGE, UNKNOWN_HOST, CardState, HostRoom, NodeState, Usage
from vgpu.domain.grants import usage
from vgpu.domain.identifiers import CardUuid, NodeName, PodUid

_held_slices: Final = attrgetter("held_slices")


@dataclass(frozen=True, slots=True)
class NodeAccounts:
    """What is added up of the pods of each node, as they come and go.

    Attributes:
        bound: what bound pods take of cards.
        hosts: what all pods take of CPU and memory.
        bindings: pods that were bound a moment ago.
        releases: what pods held that ended a moment ago.
        departures: what pods took that were deleted by force a moment ago, and may hold still.
    """

    bound: BoundUsage = field(default_factory=BoundUsage)
    hosts: HostUsage = field(default_factory=HostUsage)
    bindings: RecentBindings = field(default_factory=RecentBindings)
    releases: RecentReleases = field(default_factory=RecentReleases)
    departures: RecentReleases = field(default_factory=RecentReleases)


class NodeStates:
    """The states of all nodes. `clock` is monotonic, in seconds; `links` weighs the links between cards."""

    def __init__(
        self,
        slice_mib: int,
        clock: Callable[[], float],
        objects: ObjectStore,
        leases: Leases,
        owners: CardOwners,
        reservations: Reservations,
        links: LinkWeights,
    ) -> None:
        self.accounts = NodeAccounts()
        self._bindings = self.accounts.bindings
        self._releases, self._departures = self.accounts.releases, self.accounts.departures
        self._slice_mib = slice_mib
        self._clock = clock
        self._objects = objects
        self._leases = leases
        self._owners = owners
        self._reservations = reservations
        self._links = links
        self._states: dict[NodeName, NodeState] = {}
        self._with_jobs: set[NodeName] = set()
        self._old: set[NodeName] = set()  # nodes that have changed since their state was derived
        self._listeners: list[Callable[[NodeName], None]] = []

    def listen(self, changed: Callable[[NodeName], None]) -> None:
        """Call `changed` with the name of each node whose state has changed."""
        self._listeners.append(changed)

    def of(self, node: NodeName) -> NodeState:
        """Return what is taken of a node's cards now; the node must have a GPUNode."""
        if self._owners.are_contested:
            self._owners.review()
        now = self._clock()
        if self._bindings.expire(node, now) | self._releases.expire(node, now) | self._departures.expire(node, now):
            self.invalidate(node)
        state = self._states.get(node)
        if state is None or node in self._old:
            state = self._states[node] = self._derive(self._objects.gpunodes[node], state.cards if state else ())
            self._old.discard(node)
        return state

    def usable(self, node: NodeName) -> NodeState | Reason:
        """Return what is taken of a node's cards now, or why the node cannot be used."""
        return self.blocked(node) or self.of(node)

    def blocked(self, node: NodeName) -> Reason | None:
        """Return why a node cannot be used whatever is free on it; None where it can."""
        gpunode = self._objects.gpunodes.get(node)
        if gpunode is None or not gpunode.node.cards:
            return Reason.NO_INVENTORY
        if self.is_plugin_away(node):
            return Reason.PLUGIN_AWAY
        return Reason.SLICE_SIZE_MISMATCH if gpunode.node.slice_mib != self._slice_mib else None

    def unusable(self, node: NodeName) -> Reason | None:
        """Return why no pod can be placed on a node now, also where its Node object says so; None where pods can."""
        kubelet = self._objects.nodes.get(node)
        return self.blocked(node) or (kubelet.marks.closed if kubelet else None)

    def is_plugin_away(self, node: NodeName) -> bool:
        """Whether a node's device plugin does not serve: the kubelet offers nothing, or the plugin's Lease is old."""
        kubelet = self._objects.nodes.get(node)
        return kubelet is None or kubelet.offers_nothing or not self._leases.is_fresh(names.node_lease(node))

    def row(self, node: NodeName) -> IndexRow | None:
        """Return a node's row in the index: the parts of `usable`, without what time changes."""
        gpunode, kubelet = self._objects.gpunodes.get(node), self._objects.nodes.get(node)
        if gpunode is None or not gpunode.node.cards:
            return None
        renewed, duration_s = self._leases.term(names.node_lease(node))
        if kubelet is None or kubelet.offers_nothing:
            return IndexRow(node, Reason.PLUGIN_AWAY, renewed=renewed, duration_s=duration_s)
        if gpunode.node.slice_mib != self._slice_mib:
            return IndexRow(node, Reason.SLICE_SIZE_MISMATCH, renewed=renewed, duration_s=duration_s)
        state = self.of(node)
        left = kubelet.left(state.devices, names.SLICE), kubelet.left(state.devices, names.CARD)
        return IndexRow(node, None, state, left, renewed, duration_s)

    def invalidate(self, *nodes: NodeName) -> None:
        """Take nodes whose states have changed; an empty name is no node."""
        for node in nodes:
            if node in self._states:
                self._old.add(node)
            for changed in self._listeners if node else ():
                changed(node)

    def expire(self) -> None:
        """Invalidate the nodes that time has changed.

        They have pods or releases that a report of held slices must show by now, or cards whose owner's plugin fell
        silent.
        """
        self._owners.review()
        now = self._clock()
        self.invalidate(*self._bindings.due(now), *self._releases.due(now), *self._departures.due(now))

    def forget(self, node: NodeName) -> None:
        """Take the deletion of a node's GPUNode."""
        for noted in (self._bindings, self._releases, self._departures):
            noted.forget(node)
        self.accounts.bound.forget(node)
        self.invalidate(node)
        self._states.pop(node, None)
        self._with_jobs.discard(node)
        self._old.discard(node)

    def _derive(self, gpunode: GpuNode, before: Sequence[CardState]) -> NodeState:
        """Derive a node's state; `before` are the states that its cards had last."""
        node, pods = gpunode.node, self._objects.pods_on(gpunode.node.name)
        bound = self.accounts.bound.on(node, pods.values())
        reserved = [reservation for reservation in self._reservations.on(node.name) if reservation.uid not in pods]
        held = [(reservation.request, reservation.assignment) for reservation in reserved]
        more = usage.on_node(node, held) if reserved else {}
        devices = dict(bound.devices)
        for reservation in reserved:
            bound_usage.add_amounts(devices, reservation.request.devices(node.slice_mib))
        reported = self._cards(gpunode, more)
        if self._departures.on(node.name):
            more = usage.total([more, self._departures.released_after(node.name, gpunode.version)])
        added = {card: bound.cards.get(card, NO_USAGE) + taken for card, taken in more.items()}
        taken = bound.cards | added if added else bound.cards
        cards = card_states.of_cards(reported, node.slice_mib, taken, before)
        host, jobs = self._host_room(node.name), bound.jobs.sets
        if reserved:
            jobs = bound.jobs.with_reserved((one.uid, self._gang(one.uid), one.assignment) for one in reserved)
        self._with_jobs.add(node.name) if jobs else self._with_jobs.discard(node.name)
        return NodeState(node.name, node.slice_mib, cards, devices, host, self._links, jobs)

    def with_jobs(self) -> AbstractSet[NodeName]:
        """Return the nodes that had jobs with shares of several cards when their states were derived last."""
        return self._with_jobs

    def _gang(self, uid: PodUid) -> GangKey | None:
        pod = self._objects.pods.get(uid)
        return gang_members.key_of(pod) if pod is not None else None

    def _host_room(self, node: NodeName) -> HostRoom:
        kubelet = self._objects.nodes.get(node)
        return self.accounts.hosts.room(node, kubelet.host) if kubelet else UNKNOWN_HOST

    def _cards(self, gpunode: GpuNode, reserved: usage.Usages) -> Sequence[Card]:
        """Return a node's cards as reported, corrected by what is known beside the report."""
        node, cards, releases = gpunode.node, gpunode.node.cards, self._releases
        if self._owners.are_contested:
            cards = tuple(self._owned(card, node.name) for card in cards)
        if releases.on(node.name):
            cards = tuple(releases.adjust(node.name, card, gpunode.version) for card in cards)
        if self._departures.on(node.name):
            reserved = usage.total([reserved, self._departures.bound_after(node.name, gpunode.version)])
        unreported = self._unreported(node, gpunode.version, reserved)
        return tuple(_with_unreported(card, unreported) for card in cards) if unreported else cards

    def _unreported(self, node: Node, version: int, reserved: usage.Usages) -> Mapping[CardUuid, Usage]:
        """Return what pods took since the report of held slices at a resourceVersion, where there is a report."""
        if not any(map(_held_slices, node.cards)):
            return {}
        pods, lately = self._objects.pods_on(node.name), set(self._bindings.on(node.name))
        since = [pods[uid] for uid in lately if uid in pods and self._objects.bound_at(uid) > version]
        held = [granted for pod in since if (granted := bound_usage.granted(pod)) is not None]
        return usage.total([usage.on_node(node, held), reserved]) if held else reserved

    def _owned(self, card: Card, node: NodeName) -> Card:
        return ownership.on_node(card, node, self._owners.owner(card.uuid))


def _with_unreported(card: Card, unreported: usage.Usages) -> Card:
    """Return a card whose report of held slices has what pods took since the report, where it has anything.

    Otherwise a holder that the accounts do not know would vanish in the larger one of the two figures.
    """
    more = unreported.get(card.uuid)
    return card if more is None or not card.held_slices else replace(card, held_slices=card.held_slices + more.slices)
