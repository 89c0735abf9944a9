"""What the picture shows and does not believe, in words for whoever looks at the object: pure."""

from collections.abc import Mapping
from typing import Final

from extender.objects import Pod
from vgpu.trust import Distrust

UNTRUSTED: Final = "AssignmentNotTrusted"
DUPLICATE: Final = "DuplicateUUID"


def of_assignment(pod: Pod) -> str:
    """Why a bound pod's assignment counts nothing; empty where it counts, or where none is wanted."""
    is_bound = pod.node and not pod.is_over
    return pod.assignment.detail if is_bound and isinstance(pod.assignment, Distrust) else ""


def of_cards(displaced: Mapping[str, str]) -> str:
    """Say which cards of a GPUNode count on other nodes: `displaced` is the owning node by UUID."""
    cards = ", ".join(f"{uuid} on {node}" for uuid, node in sorted(displaced.items()))
    return f"cards that a newer GPUNode has too count there and not here: {cards}"
