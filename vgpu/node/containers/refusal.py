"""Why a container may not start: a closed set of codes, shown in the pod's status and in an Event."""

from dataclasses import dataclass
from enum import StrEnum

from vgpu.domain import names
from vgpu.domain.cards.reasons import Reason
from vgpu.domain.grants.assignment_trust import DistrustReason


class NodeReason(StrEnum):
    """The reasons that only the node finds: the kubelet's IDs do not agree with the pod's assignment."""

    ALLOCATION_LOST = "AllocationLost"
    HOLDER_UNKNOWN = "HolderUnknown"
    HELD_TWICE = "HeldTwice"
    STATIC_POD = "StaticPod"
    NOT_ADMITTED = "NotAdmitted"
    CARD_MISMATCH = "CardMismatch"
    FILES_FAILED = "FilesFailed"
    FILES_COVERED = "FilesCovered"
    MIG_ENABLED = "MIGEnabled"
    SPACE_NOT_READY = names.SPACE_NOT_READY


@dataclass(frozen=True, slots=True)
class ContainerRefusal:
    """A container's refusal.

    Attributes:
        reason: a code of the node, of an assignment that is not trusted, or of placement.
        detail: what is wrong, for people.
    """

    reason: NodeReason | DistrustReason | Reason
    detail: str

    @property
    def is_permanent(self) -> bool:
        """Whether only another pod helps, because this pod keeps its device IDs.

        A pod without a trusted assignment is not meant: the pod that replaces it would be refused too.
        """
        return self.reason in (NodeReason.CARD_MISMATCH, NodeReason.HELD_TWICE)

    def __str__(self) -> str:
        return f"{self.reason}: {self.detail}"
