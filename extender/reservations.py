"""The two corrections to derived usage: pods that are being bound, and pods that have just ended.

`Reservations` are pods whose Binding is in flight. `RecentReleases` is what pods held until a moment ago: when a pod
ends, kube-scheduler asks again at once, and a device plugin's older report of held slices must not refuse the next pod.
"""

from collections import defaultdict, deque
from dataclasses import dataclass, replace

from vgpu.assignment import Assignment
from vgpu.device import Card
from vgpu.request import PodRequest
from vgpu.share import Usage


@dataclass(frozen=True, slots=True)
class Reservation:
    """What a pod will hold on a node when its Binding is carried out."""

    uid: str
    node: str
    request: PodRequest
    assignment: Assignment


class Reservations:
    """Reservations by node and pod UID. A pod may have one on several nodes while a Binding's outcome is unknown."""

    def __init__(self) -> None:
        self._by_node: defaultdict[str, dict[str, Reservation]] = defaultdict(dict)
        self._nodes: defaultdict[str, set[str]] = defaultdict(set)

    def put(self, reservation: Reservation) -> None:
        """Add a reservation; it replaces the pod's earlier one on that node."""
        self._by_node[reservation.node][reservation.uid] = reservation
        self._nodes[reservation.uid].add(reservation.node)

    def remove(self, uid: str, node: str) -> bool:
        """Remove a reservation; return whether there was one."""
        if self._by_node[node].pop(uid, None) is None:
            return False
        self._nodes[uid].discard(node)
        if not self._nodes[uid]:
            del self._nodes[uid]
        return True

    def get(self, uid: str, node: str) -> Reservation | None:
        """Return a pod's reservation on a node."""
        return self._by_node[node].get(uid)

    def on(self, node: str) -> list[Reservation]:
        """Return all reservations on a node."""
        return list(self._by_node[node].values())

    def nodes_of(self, uid: str) -> list[str]:
        """Return the nodes where a pod has a reservation."""
        return list(self._nodes.get(uid, ()))


class RecentReleases:
    """What pods of each node released lately, by card."""

    def __init__(self) -> None:
        self._by_node: defaultdict[str, deque[tuple[float, dict[str, Usage]]]] = defaultdict(deque)

    def add(self, node: str, until: float, released: dict[str, Usage]) -> None:
        """Remember a release until a time (monotonic seconds) that is not before the last release's."""
        self._by_node[node].append((until, released))

    def expire(self, node: str, now: float) -> bool:
        """Forget the releases whose time has passed; return whether there were any."""
        releases, before = self._by_node[node], len(self._by_node[node])
        while releases and releases[0][0] <= now:
            releases.popleft()
        return len(releases) < before

    def adjust(self, node: str, card: Card) -> Card:
        """Return a card with its reported held slices less those that were released since the report."""
        released = [usages[card.uuid] for _, usages in self._by_node[node] if card.uuid in usages]
        if not released:
            return card
        slices = max(0, card.held_slices - sum(usage.slices for usage in released))
        is_whole = card.held_whole and not any(usage.wholes for usage in released)
        return replace(card, held_slices=slices, held_whole=is_whole)
