"""What the pods of a node hold of its cards, by their assignments."""

from collections import defaultdict
from collections.abc import Iterable

from vgpu import assignment, names, request
from vgpu.assignment import Assignment
from vgpu.device import Node
from vgpu.errors import MalformedAssignment
from vgpu.request import PodRequest
from vgpu.share import CardState, NodeState, Usage
from vgpu.simulator.api.resources import Json


def wanted(pod: Json) -> PodRequest | None:
    """What a pod asks of GPUs; None where nothing, or nothing that can be read."""
    parsed = request.parse(pod)
    return None if parsed.problems else parsed.request


def assigned(pod: Json) -> Assignment | None:
    """What a pod was given, where it can be read and answers what it asks for."""
    text = (pod["metadata"].get("annotations") or {}).get(names.ASSIGNMENT)
    asked = wanted(pod)
    if text is None or asked is None:
        return None
    try:
        chosen = assignment.decode(text)
    except MalformedAssignment:
        return None
    return chosen if chosen.answers(asked) else None


def used(node: Node, pods: Iterable[Json]) -> dict[str, Usage]:
    """What pods take of each card of a node."""
    totals = {card.uuid: card.slices(node.slice_mib) for card in node.cards}
    taken: defaultdict[str, Usage] = defaultdict(Usage)
    for pod in pods:
        asked, chosen = wanted(pod), assigned(pod)
        if asked is not None and chosen is not None:
            for gpu, usage in assignment.usage(chosen, asked, node.slice_mib, totals).items():
                taken[gpu] += usage
    return dict(taken)


def state(node: Node, pods: Iterable[Json]) -> NodeState:
    """Return a node's cards with what pods take of them."""
    taken = used(node, pods)
    cards = (CardState(card, node.slice_mib, taken.get(card.uuid, Usage())) for card in node.cards)
    return NodeState(node.name, node.slice_mib, tuple(cards))
