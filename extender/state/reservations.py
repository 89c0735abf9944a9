"""The corrections to derived usage: pods that are being bound, and that were just bound, ended or deleted by force.

`Reservations` are pods whose Binding is in flight. `RecentBindings` are pods that the device plugin's last report of
held slices may lack. It does not lack them for long: where a pod takes the place of one that has ended, the next report
is equal to the last one, and is not written. `RecentReleases` is what pods held until a moment ago: when a pod
ends, kube-scheduler asks again at once, and a device plugin's older report of held slices must not refuse the next pod.
A pod deleted by force has released nothing yet: its processes may run on. It counts until a report of held slices is
newer than its deletion, for the device plugin reports such a pod as a holder until its processes have ended
(docs/adr/0146).
"""

from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Generic, TypeVar

from extender.state.objects import WatchedPod
from extender.state.store import ObjectStore
from vgpu.domain.asks.request import PodRequest
from vgpu.domain.cards.device import Card
from vgpu.domain.cards.share import Usage
from vgpu.domain.grants import usage
from vgpu.domain.grants.assignment import Assignment
from vgpu.domain.grants.usage import Usages
from vgpu.domain.identifiers import CardUuid, NodeName, PodUid

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Reservation:
    """What a pod will hold on a node when its Binding is carried out.

    `version` is the resourceVersion of the pod when it was placed: the pod existed then.
    """

    uid: PodUid
    node: NodeName
    request: PodRequest
    assignment: Assignment
    version: int


class Reservations:
    """Reservations by node and pod UID. A pod may have one on several nodes while a Binding's outcome is unknown."""

    def __init__(self, objects: ObjectStore) -> None:
        self._objects = objects
        self._changed: Callable[[NodeName], None] = lambda _: None
        self._by_node: dict[NodeName, dict[PodUid, Reservation]] = {}
        self._nodes: dict[PodUid, set[NodeName]] = {}

    def listen(self, changed: Callable[[NodeName], None]) -> None:
        """Call `changed` with the name of each node on which a reservation is new or gone."""
        self._changed = changed

    def put(self, reservation: Reservation) -> None:
        """Take what a pod will hold, before its Binding is posted; it replaces the pod's earlier one on that node."""
        self._by_node.setdefault(reservation.node, {})[reservation.uid] = reservation
        self._nodes.setdefault(reservation.uid, set()).add(reservation.node)
        self._changed(reservation.node)

    def remove(self, uid: PodUid, node: NodeName) -> None:
        """End a reservation: its Binding was refused, or a watch shows its pod bound."""
        if self.get(uid, node) is None:
            return
        _remove(self._by_node, node, uid)
        self._nodes[uid].discard(node)
        if not self._nodes[uid]:
            del self._nodes[uid]
        self._changed(node)

    def remove_when_seen(self, uid: PodUid, node: NodeName) -> None:
        """Keep the reservation of a bound pod until the watch shows the pod bound; end it where that has happened."""
        pod = self._objects.pods.get(uid)
        if self._objects.was_deleted(uid) or (pod is not None and pod.node):
            self.remove(uid, node)

    def end(self, uid: PodUid) -> None:
        """End all reservations of a pod."""
        for node in self.nodes_of(uid):
            self.remove(uid, node)

    def get(self, uid: PodUid, node: NodeName) -> Reservation | None:
        """Return a pod's reservation on a node."""
        return self._by_node.get(node, {}).get(uid)

    def on(self, node: NodeName) -> list[Reservation]:
        """Return all reservations on a node."""
        return list(self._by_node.get(node, {}).values())

    def nodes_of(self, uid: PodUid) -> list[NodeName]:
        """Return the nodes where a pod has a reservation."""
        return list(self._nodes.get(uid, ()))

    def assigned(self) -> list[tuple[WatchedPod, Assignment]]:
        """Return the pods that are being bound, with their assignments."""
        pods = self._objects.pods
        return [(pods[found.uid], found.assignment) for found in self if found.uid in pods]

    def binding(self) -> list[tuple[WatchedPod, NodeName]]:
        """Return the pods that are being bound, with their nodes."""
        pods = self._objects.pods
        return [(pods[found.uid], found.node) for found in self if found.uid in pods]

    def __len__(self) -> int:
        return sum(map(len, self._by_node.values()))

    def __iter__(self) -> Iterator[Reservation]:
        """Iterate over all reservations, as they are now."""
        return iter([reservation for reservations in self._by_node.values() for reservation in reservations.values()])


class RecentChanges(Generic[T]):
    """What has happened on each node lately. Each change is kept until a time; times are monotonic, in seconds."""

    def __init__(self) -> None:
        self._by_node: dict[NodeName, deque[tuple[float, T]]] = {}
        self._ends: deque[tuple[float, NodeName]] = deque()

    def add(self, node: NodeName, change: T, until: float) -> None:
        """Remember a change until a time, which is not before the last change's."""
        self._by_node.setdefault(node, deque()).append((until, change))
        self._ends.append((until, node))

    def due(self, now: float) -> list[NodeName]:
        """Return the nodes with changes whose time has passed since the last call."""
        found = []
        while self._ends and self._ends[0][0] <= now:
            found.append(self._ends.popleft()[1])
        return found

    def expire(self, node: NodeName, now: float) -> bool:
        """Forget the changes whose time has passed; return whether there were any."""
        changes = self._by_node.get(node)
        if changes is None:
            return False
        before = len(changes)
        while changes and changes[0][0] <= now:
            changes.popleft()
        if not changes:
            self.forget(node)
        return len(changes) < before

    def forget(self, node: NodeName) -> None:
        """Forget a node's changes."""
        self._by_node.pop(node, None)

    def on(self, node: NodeName) -> list[T]:
        """Return a node's changes, the oldest first."""
        return [change for _, change in self._by_node.get(node, ())]


class RecentBindings(RecentChanges[PodUid]):
    """Pods of each node that were bound lately."""


@dataclass(frozen=True, slots=True)
class Release:
    """What a pod held of each card from one resourceVersion to another."""

    bound: int
    ended: int
    usages: dict[CardUuid, Usage]


class RecentReleases(RecentChanges[Release]):
    """What pods of each node released lately."""

    def released_after(self, node: NodeName, reported: int) -> Usages:
        """Return what was released after the report of a resourceVersion."""
        return usage.total(release.usages for release in self.on(node) if release.ended > reported)

    def bound_after(self, node: NodeName, reported: int) -> Usages:
        """Return what was bound, and released, after the report of a resourceVersion: it cannot be in the report."""
        return usage.total(release.usages for release in self.on(node) if release.bound > reported)

    def adjust(self, node: NodeName, card: Card, reported: int) -> Card:
        """Return a card with its reported held slices less those that were released since the report.

        `reported` is the resourceVersion of the report: only a pod that was bound before and ended later is in it.
        """
        released = [
            release.usages[card.uuid]
            for release in self.on(node)
            if release.bound <= reported < release.ended and card.uuid in release.usages
        ]
        if not released:
            return card
        slices = max(0, card.held_slices - sum(less.slices for less in released))
        is_whole = card.held_whole and not any(less.wholes for less in released)
        return replace(card, held_slices=slices, held_whole=is_whole)


def _remove(by_node: dict[NodeName, dict[PodUid, Reservation]], node: NodeName, uid: PodUid) -> None:
    del by_node[node][uid]
    if not by_node[node]:
        del by_node[node]
