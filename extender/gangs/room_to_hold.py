"""Which room is to be kept free for a gang: where it fits once the pods that hold cards there have ended. Pure.

Nodes of which little is taken come first, because few pods must end there, and as few nodes are taken as have room.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from extender.state.held_room import Usages
from vgpu.domain import names
from vgpu.domain.cards.share import NO_USAGE, UNKNOWN_HOST, CardState, NodeState
from vgpu.domain.grants import usage
from vgpu.domain.identifiers import NodeName, PodUid
from vgpu.placement import gang
from vgpu.placement.gang_attempt import Member, MemberPlace, Steps
from vgpu.placement.policies import DefaultPolicies
from vgpu.placement.snapshot import NodeView


def target(
    members: Sequence[Member], views: Iterable[NodeView], defaults: DefaultPolicies
) -> Steps[Mapping[NodeName, Usages] | None]:
    """Return what the members take of each card, by node, if no pod held cards; None where even so they do not fit."""
    ordered = sorted(views, key=lambda view: (_taken(view.state), view.name))
    count = 1
    while True:
        emptied = [_emptied(view) for view in ordered[:count]]
        places = yield from gang.steps(members, emptied, defaults)
        if isinstance(places, dict):
            return _usages(members, places, {view.name: view.state for view in emptied})
        if count >= len(ordered):
            return None
        count *= 2


def _taken(state: NodeState) -> float:
    """Return the part of a node's slices that is taken, from 0 to 1."""
    total = sum(card.total_slices for card in state.cards)
    return 1 - state.free_slices / total if total else 1.0


def _emptied(view: NodeView) -> NodeView:
    """Return a node without pods. Its kubelet offers no card whole that is shared now, and no slices of a whole one."""
    cards = tuple(_empty(card) for card in view.state.cards)
    offered = {names.SLICE: sum(card.total_slices for card in cards), names.CARD: len(cards)}
    return replace(view, state=replace(view.state, cards=cards, devices={}, host=UNKNOWN_HOST), allocatable=offered)


def _empty(state: CardState) -> CardState:
    return replace(state, card=replace(state.card, held_slices=0, held_whole=False), usage=NO_USAGE)


def _usages(
    members: Sequence[Member], places: Mapping[PodUid, MemberPlace], states: Mapping[NodeName, NodeState]
) -> Mapping[NodeName, Usages]:
    found: dict[NodeName, Usages] = {}
    for member in members:
        place = places[member.uid]
        state = states[place.node]
        taken = usage.of_pod(place.assignment, member.request, state.slice_mib, state.card_slices)
        found[place.node] = usage.total([found.get(place.node, {}), taken])
    return found
