"""What bound pods do not show yet, and what ended pods still seem to hold: the two edges of derived usage.

`Reservations` are pods whose Binding is on its way. `GivenBack` is what pods held until just now: kube-scheduler
asks at once when a pod goes, and a device plugin's report of held slices that is older must not refuse it.
"""

from collections import defaultdict, deque
from dataclasses import dataclass, replace

from vgpu.assignment import Assignment
from vgpu.device import Card
from vgpu.request import PodRequest
from vgpu.share import Usage


@dataclass(frozen=True, slots=True)
class Reservation:
    """A pod being bound, or whose Binding may yet be carried out."""

    uid: str
    node: str
    request: PodRequest
    assignment: Assignment


class Reservations:
    """Reservations by node and pod UID. A pod may have one on several nodes while an outcome is unknown."""

    def __init__(self) -> None:
        self._on: defaultdict[str, dict[str, Reservation]] = defaultdict(dict)
        self._nodes: defaultdict[str, set[str]] = defaultdict(set)

    def take(self, reservation: Reservation) -> None:
        """Add one, in place of the pod's earlier one on that node."""
        self._on[reservation.node][reservation.uid] = reservation
        self._nodes[reservation.uid].add(reservation.node)

    def drop(self, uid: str, node: str) -> bool:
        """Remove one; whether there was one."""
        if self._on[node].pop(uid, None) is None:
            return False
        self._nodes[uid].discard(node)
        if not self._nodes[uid]:
            del self._nodes[uid]
        return True

    def get(self, uid: str, node: str) -> Reservation | None:
        """Return a pod's reservation on a node."""
        return self._on[node].get(uid)

    def on(self, node: str) -> list[Reservation]:
        """Return all on a node."""
        return list(self._on[node].values())

    def nodes_of(self, uid: str) -> list[str]:
        """Return the nodes where a pod has one."""
        return list(self._nodes.get(uid, ()))


class GivenBack:
    """What pods of each node gave back lately, by card."""

    def __init__(self) -> None:
        self._on: defaultdict[str, deque[tuple[float, dict[str, Usage]]]] = defaultdict(deque)

    def note(self, node: str, until: float, taken: dict[str, Usage]) -> None:
        """Remember what a pod held, until a moment (monotonic seconds) not before that of the last one noted."""
        self._on[node].append((until, taken))

    def forget(self, node: str, now: float) -> bool:
        """Forget what is old; whether anything was."""
        on_node, before = self._on[node], len(self._on[node])
        while on_node and on_node[0][0] <= now:
            on_node.popleft()
        return len(on_node) < before

    def correct(self, node: str, card: Card) -> Card:
        """Return the card with its held slices less what was given back since the report could have been made."""
        back = [taken[card.uuid] for _, taken in self._on[node] if card.uuid in taken]
        if not back:
            return card
        slices = max(0, card.held_slices - sum(used.slices for used in back))
        return replace(card, held_slices=slices, held_whole=card.held_whole and not any(used.wholes for used in back))
