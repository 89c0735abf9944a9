"""What the choice of a gang's room rests on: the gang's pods, and the nodes and cards that were chosen. Pure.

Where it differs later, the room is no longer what the gang needs, or is no longer there, and is chosen anew.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from extender.state.held_room import Usages
from extender.state.objects import WatchedPod
from vgpu.domain.asks.node_rules import NodeMarks, NodeRules
from vgpu.domain.asks.request import PodRequest
from vgpu.domain.cards.device import Card
from vgpu.domain.identifiers import CardUuid, NodeName, PodUid
from vgpu.placement.snapshot import NodeView


@dataclass(frozen=True, slots=True)
class MemberBasis:
    """What counts of a pod of the gang."""

    uid: PodUid
    request: PodRequest | None
    rules: NodeRules


@dataclass(frozen=True, slots=True)
class NodeBasis:
    """What counts of a node: its labels and taints, and the chosen cards without what is taken of them."""

    marks: NodeMarks
    cards: tuple[Card, ...]


@dataclass(frozen=True, slots=True)
class RoomBasis:
    """The pods, and the chosen nodes; None for a node that takes no pods."""

    members: tuple[MemberBasis, ...]
    nodes: Mapping[NodeName, NodeBasis | None]


def of(pods: Iterable[WatchedPod], usages: Mapping[NodeName, Usages], views: Mapping[NodeName, NodeView]) -> RoomBasis:
    """Return the basis of a room; `views` lacks the nodes that take no pods."""
    members = tuple(MemberBasis(pod.uid, pod.parsed.request, pod.rules) for pod in pods)
    return RoomBasis(members, {name: _of_node(views.get(name), cards) for name, cards in usages.items()})


def permitted(pods: Sequence[WatchedPod], views: Collection[NodeView]) -> dict[NodeRules, frozenset[NodeName]]:
    """Return the nodes on which pods may be by their rules; pods of a gang have equal rules most of the time."""
    return {
        rules: frozenset(view.name for view in views if rules.refusal(view.name, view.marks) is None)
        for rules in {pod.rules for pod in pods}
    }


def _of_node(view: NodeView | None, chosen: Collection[CardUuid]) -> NodeBasis | None:
    if view is None:
        return None
    cards = (state.card for state in view.state.cards if state.card.uuid in chosen)
    return NodeBasis(view.marks, tuple(replace(card, held_slices=0, held_whole=False) for card in cards))
