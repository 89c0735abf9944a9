"""What the picture shows and does not believe, in words for whoever looks at the object: pure."""

from collections.abc import Mapping
from typing import Final

from extender.objects import Pod
from vgpu.assignment import Assignment
from vgpu.request import PodRequest

UNTRUSTED: Final = "AssignmentNotTrusted"
DUPLICATE: Final = "DuplicateUUID"


def of_assignment(pod: Pod) -> str:
    """Why a bound pod's assignment counts nothing; empty where it counts, or where none is wanted."""
    if not pod.node or pod.is_over:
        return ""
    if pod.parsed.problems:
        return f"its request is not valid: {pod.parsed.problems[0]}"
    if pod.assignment_error:
        return f"its assignment cannot be read: {pod.assignment_error}"
    return _of_grants(pod.assignment, pod.parsed.request)


def _of_grants(chosen: Assignment | None, request: PodRequest | None) -> str:
    if request is None:
        return "it has an assignment and asks for nothing" if chosen else ""
    if chosen is None:
        return "it has no assignment"
    return "" if chosen.answers(request) else "its assignment grants something else than it asks for"


def of_cards(displaced: Mapping[str, str]) -> str:
    """Say which cards of a GPUNode count on other nodes: `displaced` is the owning node by UUID."""
    cards = ", ".join(f"{uuid} on {node}" for uuid, node in sorted(displaced.items()))
    return f"cards that a newer GPUNode has too count there and not here: {cards}"
