"""What simulated pods were assigned, and what they take of their node's cards."""

from collections.abc import Iterable

from vgpu.domain import names
from vgpu.domain.asks import request
from vgpu.domain.asks.request import PodRequest
from vgpu.domain.cards.device import Node
from vgpu.domain.cards.share import NodeState, Usage
from vgpu.domain.grants import assignment_trust, usage
from vgpu.domain.grants.assignment import Assignment
from vgpu.domain.grants.assignment_trust import Distrust
from vgpu.domain.identifiers import CardUuid
from vgpu.domain.json_types import JsonObject


def granted(pod: JsonObject) -> tuple[PodRequest, Assignment] | None:
    """Return a pod's request and its assignment; None where it asks for no GPU, or its assignment is not trusted."""
    parsed = request.parse(pod)
    annotations = pod["metadata"].get("annotations") or {}
    assignment = assignment_trust.judge(parsed, annotations.get(names.ASSIGNMENT, ""))
    if parsed.request is None or isinstance(assignment, Distrust):
        return None
    return parsed.request, assignment


def gpus(pod: JsonObject) -> frozenset[CardUuid]:
    """Return the UUIDs of the cards that a pod was assigned."""
    held = granted(pod)
    return held[1].gpus() if held else frozenset()


def used(node: Node, pods: Iterable[JsonObject]) -> dict[CardUuid, Usage]:
    """Return what pods take of each card of a node."""
    return usage.on_node(node, filter(None, map(granted, pods)))


def state(node: Node, pods: Iterable[JsonObject]) -> NodeState:
    """Return a node's cards with what pods take of them."""
    return NodeState.of(node, used(node, pods), {})
