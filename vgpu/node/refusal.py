"""Why a container may not start: closed codes, said in the pod's status and in its event."""

from dataclasses import dataclass
from enum import StrEnum

from vgpu.reasons import Reason
from vgpu.trust import DistrustReason


class NodeReason(StrEnum):
    """What can be wrong between the kubelet's IDs and what was decided for the pod."""

    ALLOCATION_LOST = "AllocationLost"
    HOLDER_UNKNOWN = "HolderUnknown"
    HELD_TWICE = "HeldTwice"
    STATIC_POD = "StaticPod"
    NOT_ADMITTED = "NotAdmitted"
    CARD_MISMATCH = "CardMismatch"
    FILES_FAILED = "FilesFailed"
    MIG_ENABLED = "MIGEnabled"


@dataclass(frozen=True, slots=True)
class Refusal:
    """A container's refusal.

    Attributes:
        reason: a code of the node, of an assignment that is not trusted, or of placement.
        detail: what a person needs to act on it.
    """

    reason: NodeReason | DistrustReason | Reason
    detail: str

    @property
    def is_permanent(self) -> bool:
        """Whether only another pod in its place helps, because this one's IDs stay what they are.

        A pod that was not decided for at all is not meant: another would come the same way, again and again.
        """
        return self.reason in (NodeReason.CARD_MISMATCH, NodeReason.HELD_TWICE)

    def __str__(self) -> str:
        return f"{self.reason}: {self.detail}"
