"""Why a container may not start: closed codes, said in the pod's status and in its event."""

from dataclasses import dataclass
from enum import StrEnum

from vgpu.reasons import Reason


class Mismatch(StrEnum):
    """What can be wrong between the kubelet's IDs and what was decided for the pod."""

    ALLOCATION_LOST = "AllocationLost"
    HOLDER_UNKNOWN = "HolderUnknown"
    HELD_TWICE = "HeldTwice"
    STATIC_POD = "StaticPod"
    NOT_ADMITTED = "NotAdmitted"
    INVALID_REQUEST = "InvalidRequest"
    NO_ASSIGNMENT = "NoAssignment"
    MALFORMED_ASSIGNMENT = "MalformedAssignment"
    FOREIGN_ASSIGNMENT = "ForeignAssignment"
    CARD_MISMATCH = "CardMismatch"
    FILES_FAILED = "FilesFailed"
    MIG_ENABLED = "MIGEnabled"


@dataclass(frozen=True, slots=True)
class Refusal:
    """A container's refusal.

    Attributes:
        reason: ours, or one of placement's.
        detail: what a person needs to act on it.
        heals: whether waiting may help; else only another pod in its place does, for the IDs stay.
    """

    reason: Mismatch | Reason
    detail: str
    heals: bool = False

    def __str__(self) -> str:
        return f"{self.reason}: {self.detail}"
