"""The picture of the cluster: who is where, what is taken of each card, and what is being taken right now.

Usage is never stored, it is derived: bound pods that are not over, by their assignments, plus reservations of pods
whose Binding is on its way. The watches write here and the verbs read; all of it happens on one event loop, so a
check and the reservation after it are one step as long as nobody awaits between them.

Who owns what: `pods`, `nodes`, `inventories` and `leases` belong to the watches, and `displaced` (by node: its cards
that count on a newer one) follows from them; reservations belong to `bind`, and end here when a watch shows their pod
bound, over or gone.
"""

from collections import Counter, OrderedDict, defaultdict
from collections.abc import Callable
from dataclasses import replace
from typing import Final

from extender import doubts, objects
from extender.objects import Inventory, KubeNode, Lease, Pod
from extender.placement_cache import Answers
from extender.reservations import GivenBack, Reservation, Reservations
from vgpu import names, usage
from vgpu.assignment import Assignment
from vgpu.device import Card
from vgpu.reasons import Reason
from vgpu.request import PodRequest
from vgpu.share import NodeState

REMEMBERED_GONE: Final = 10_000
HELD_LAG_S: Final = 5.0  # what a pod gave back may stand in the plugin's report of held slices for so long


class Cluster:
    """The picture. `clock` is monotonic, in seconds."""

    def __init__(self, slice_mib: int, clock: Callable[[], float]) -> None:
        self.slice_mib = slice_mib
        self.clock = clock
        self.answers = Answers()
        self.pods: dict[str, Pod] = {}
        self.nodes: dict[str, KubeNode] = {}
        self.inventories: dict[str, Inventory] = {}
        self.leases: dict[str, tuple[Lease, float]] = {}
        self._on_node: defaultdict[str, dict[str, Pod]] = defaultdict(dict)
        self._reserved = Reservations()
        self._gone: OrderedDict[str, None] = OrderedDict()
        self._given_back = GivenBack()
        self._owners: dict[str, str] = {}
        self.displaced: dict[str, dict[str, str]] = {}
        self._states: dict[str, NodeState] = {}

    def standing(self, node: str) -> NodeState | Reason:
        """What can be taken on a node now, or why nothing can."""
        inventory = self.inventories.get(node)
        if inventory is None or not inventory.node.cards:
            return Reason.NO_INVENTORY
        if self.is_away(node):
            return Reason.PLUGIN_AWAY
        if inventory.node.slice_mib != self.slice_mib:
            return Reason.SLICE_SIZE_MISMATCH
        return self.state(node)

    def is_away(self, node: str) -> bool:
        """Whether the node's device plugin is away: by the kubelet's word, or by the plugin's own Lease."""
        kubelet = self.nodes.get(node)
        return kubelet is None or kubelet.offers_nothing or not self.is_held(names.node_lease(node))

    def is_held(self, lease_name: str) -> bool:
        """Whether a Lease has a holder who renewed it lately, by this program's own clock."""
        lease, seen = self.leases.get(lease_name, (None, 0.0))
        return lease is not None and bool(lease.holder) and self.clock() - seen <= lease.duration_s

    def state(self, node: str) -> NodeState:
        """Cards of a node with what is taken of them; the node must have an inventory."""
        if self._given_back.forget(node, self.clock()):
            self._states.pop(node, None)
        if node not in self._states:
            self._states[node] = self._derive(self.inventories[node])
        return self._states[node]

    def reserve(self, reservation: Reservation) -> None:
        """Take what a pod will hold, before its Binding is posted."""
        self._reserved.take(reservation)
        self._states.pop(reservation.node, None)

    def release(self, uid: str, node: str) -> None:
        """Give a reservation back: its Binding was refused, or its pod is now seen for itself."""
        if self._reserved.drop(uid, node):
            self._states.pop(node, None)

    def await_watch(self, uid: str, node: str) -> None:
        """Keep the reservation of a pod that is bound until the watch shows it, unless it has already."""
        known = self.pods.get(uid)
        if uid in self._gone or (known is not None and known.node):
            self.release(uid, node)

    def reservation(self, uid: str, node: str) -> Reservation | None:
        """Return what is reserved for a pod on a node."""
        return self._reserved.get(uid, node)

    def upsert_pod(self, pod: Pod) -> None:
        """Take a pod's present state."""
        if pod.is_over:
            self._give_back(self.pods.get(pod.uid))
        self._forget(self.pods.get(pod.uid))
        self.pods[pod.uid] = pod
        if pod.node or pod.is_over:
            self._drop_reservations(pod.uid)
        if pod.node and not pod.is_over:
            self._on_node[pod.node][pod.uid] = pod
            self._states.pop(pod.node, None)

    def delete_pod(self, uid: str) -> None:
        """Forget a pod that is gone."""
        self._give_back(self.pods.get(uid))
        self._forget(self.pods.pop(uid, None))
        self._drop_reservations(uid)
        self._gone[uid] = None
        if len(self._gone) > REMEMBERED_GONE:
            self._gone.popitem(last=False)

    def upsert_inventories(self, *inventories: Inventory) -> None:
        """Take nodes' cards as their device plugins report them."""
        known = self.inventories
        news = [each for each in inventories if _claims(known.get(each.node.name)) != _claims(each)]
        for each in inventories:
            known[each.node.name] = each
            self._states.pop(each.node.name, None)
        if news:
            self._settle_owners()

    def delete_inventories(self, *nodes: str) -> None:
        """Forget nodes' cards."""
        for node in nodes:
            self.inventories.pop(node, None)
        self._settle_owners()

    def see_lease(self, lease: Lease) -> None:
        """Note a Lease, and by our own clock when it last changed."""
        old, seen = self.leases.get(lease.name, (None, 0.0))
        self.leases[lease.name] = (lease, seen if old == lease else self.clock())

    def _forget(self, pod: Pod | None) -> None:
        if pod is not None and pod.node:
            self._on_node[pod.node].pop(pod.uid, None)
            self._states.pop(pod.node, None)

    def _give_back(self, pod: Pod | None) -> None:
        """Note what a pod that ended held, so that a report of held slices older than its end does not count it."""
        held = None if pod is None or pod.is_over else trusted(pod)
        inventory = self.inventories.get(pod.node) if pod else None
        if pod is not None and held is not None and inventory is not None and inventory.node.slice_mib:
            self._given_back.note(pod.node, self.clock() + HELD_LAG_S, usage.on_node(inventory.node, [held]))

    def _drop_reservations(self, uid: str) -> None:
        for node in self._reserved.nodes_of(uid):
            self.release(uid, node)

    def _settle_owners(self) -> None:
        """One UUID on two nodes belongs to the newest GPUNode: a card moves with its node's new object."""
        in_age = sorted(self.inventories.values(), key=lambda i: (objects.age_key(i.created), i.node.name))
        claims = [(card.uuid, inventory.node.name) for inventory in in_age for card in inventory.node.cards]
        self._owners = dict(claims)
        self.displaced = {}
        for uuid, node in claims:
            if self._owners[uuid] != node:
                self.displaced.setdefault(node, {})[uuid] = self._owners[uuid]
        self._states.clear()

    def _derive(self, inventory: Inventory) -> NodeState:
        node = inventory.node
        taken = usage.on_node(node, self._holders(node.name))
        cards = (self._given_back.correct(node.name, self._owned(card, node.name)) for card in node.cards)
        return NodeState.of(replace(node, cards=tuple(cards)), taken, self._devices(node.name, node.slice_mib))

    def _devices(self, node: str, slice_mib: int) -> dict[str, int]:
        """What the kubelet counts for the node's pods, whether their assignments can be trusted or not."""
        bound = self._on_node[node]
        requests = [pod.parsed.request for pod in bound.values()]
        requests += [held.request for held in self._reserved.on(node) if held.uid not in bound]
        total = Counter[str]()
        for request in requests:
            total.update(request.devices(slice_mib) if request else {})
        return dict(total)

    def _holders(self, node: str) -> list[tuple[PodRequest, Assignment]]:
        bound = self._on_node[node]
        reserved = [(r.request, r.assignment) for r in self._reserved.on(node) if r.uid not in bound]
        return [held for pod in bound.values() if (held := trusted(pod)) is not None] + reserved

    def _owned(self, card: Card, node: str) -> Card:
        return card if self._owners[card.uuid] == node else replace(card, healthy=False, reason=doubts.DUPLICATE)


def _claims(inventory: Inventory | None) -> tuple[str, frozenset[str]] | None:
    return (inventory.created, frozenset(card.uuid for card in inventory.node.cards)) if inventory else None


def trusted(pod: Pod) -> tuple[PodRequest, Assignment] | None:
    """A bound pod's request and assignment, where the one answers the other: anything else counts nothing.

    Whatever such a pod really holds on its node is in the slices that the device plugin reports as held.
    """
    request, chosen = pod.parsed.request, pod.assignment
    return (request, chosen) if pod.node and request is not None and isinstance(chosen, Assignment) else None
