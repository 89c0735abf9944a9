"""Is a pod's assignment trusted? The one rule, used by the extender, the node's proof and the simulator.

Users can write annotations, so an assignment counts only where it grants exactly what its pod asks for. The caller sees
to the rest: that the pod is bound, and that its node has the cards.
"""

from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from vgpu.domain.asks.request import Parsed
from vgpu.domain.errors import MalformedAssignment
from vgpu.domain.grants import assignment as codec
from vgpu.domain.grants.assignment import Assignment
from vgpu.domain.problem import clipped


class DistrustReason(StrEnum):
    """Why an assignment is not trusted."""

    INVALID_REQUEST = "InvalidRequest"
    NO_ASSIGNMENT = "NoAssignment"
    MALFORMED_ASSIGNMENT = "MalformedAssignment"
    FOREIGN_ASSIGNMENT = "ForeignAssignment"


@dataclass(frozen=True, slots=True)
class Distrust:
    """An assignment that must not be used: the reason's code, and what is wrong in words."""

    reason: DistrustReason
    detail: str


NOTHING_ASSIGNED: Final = Assignment({})
_UNASSIGNED: Final = Distrust(DistrustReason.NO_ASSIGNMENT, "the pod has no assignment: the extender did not bind it")


def judge(parsed: Parsed, annotation: str) -> Assignment | Distrust:
    """Return the assignment that a pod's annotation holds, where it can be trusted.

    `annotation` is empty where the pod has none. A pod that asks for no GPU and has none is assigned nothing.
    """
    if parsed.problems:
        return Distrust(DistrustReason.INVALID_REQUEST, f"the pod's request is not valid: {parsed.problems[0]}")
    if not annotation:
        return NOTHING_ASSIGNED if parsed.request is None else _UNASSIGNED
    try:
        assignment = codec.decode(annotation)
    except MalformedAssignment as error:
        return Distrust(
            DistrustReason.MALFORMED_ASSIGNMENT, f"the pod's assignment cannot be read: {clipped(str(error))}"
        )
    if parsed.request is None:
        return Distrust(DistrustReason.FOREIGN_ASSIGNMENT, "the pod has an assignment and asks for nothing")
    if not assignment.answers(parsed.request):
        return Distrust(
            DistrustReason.FOREIGN_ASSIGNMENT, "the pod's assignment grants something else than the pod asks for"
        )
    return assignment
