"""Why a card or a node was refused: a closed set of codes, each with a text for people.

kube-scheduler counts nodes with identical texts, so there are few texts, and each begins with its code. Details, such
as how much is free on which card, are in the pod's Event.
"""

from collections.abc import Mapping
from enum import StrEnum
from typing import Final


class Reason(StrEnum):
    """A refusal's code; the codes of a card come before those of a node."""

    CARD_INSUFFICIENT_MEMORY = "CardInsufficientMemory"
    CARD_INSUFFICIENT_CORES = "CardInsufficientCores"
    CARD_HELD_WHOLE = "CardHeldWhole"
    CARD_IN_USE = "CardInUse"
    CARD_RESERVED = "CardReserved"
    CARD_KEPT_FOR_GANG = "CardKeptForGang"
    CARD_AFFINITY = "CardAffinity"
    CARD_ANTI_AFFINITY = "CardAntiAffinity"
    CARD_SPACE_GROUP_FULL = "CardSpaceGroupFull"
    CARD_CORDONED = "CardCordoned"
    CARD_UNHEALTHY = "CardUnhealthy"
    CARD_EXCLUSIVE = "CardExclusive"
    CARD_MODE_UNSUPPORTED = "CardModeUnsupported"
    CARD_WITHOUT_SPACE = "CardWithoutSpace"
    CARD_TOO_SMALL = "CardTooSmall"
    GPU_MODEL_MISMATCH = "GpuModelMismatch"
    GPU_UUID_MISMATCH = "GpuUuidMismatch"

    NOT_ENOUGH_CARDS = "NotEnoughCards"
    NO_INVENTORY = "NoInventory"
    PLUGIN_AWAY = "PluginAway"
    KUBELET_OFFERS_LESS = "KubeletOffersLess"
    SLICE_SIZE_MISMATCH = "SliceSizeMismatch"
    NOT_ADMITTED = "NotAdmitted"
    INVALID_REQUEST = "InvalidRequest"
    NOT_JUDGED = "NotJudged"
    NODE_INSUFFICIENT_CPU = "NodeInsufficientCpu"
    NODE_INSUFFICIENT_MEMORY = "NodeInsufficientMemory"
    NODE_TAINTED = "NodeTainted"
    NODE_UNSCHEDULABLE = "NodeUnschedulable"
    NODE_NOT_READY = "NodeNotReady"
    NODE_AFFINITY_MISMATCH = "NodeAffinityMismatch"
    SCHEDULER_REFUSED = "SchedulerRefused"
    SCHEDULING_GATED = "SchedulingGated"

    GANG_SIZE_UNKNOWN = "GangSizeUnknown"
    GANG_INCOMPLETE = "GangIncomplete"
    GANG_INSUFFICIENT_CARDS = "GangInsufficientCards"
    GANG_PLANNED_ELSEWHERE = "GangPlannedElsewhere"
    GANG_WAITS = "GangWaits"


WORDS: Final[dict[Reason, str]] = {
    Reason.CARD_INSUFFICIENT_MEMORY: "no card has the GPU memory free",
    Reason.CARD_INSUFFICIENT_CORES: "no card has the GPU time free",
    Reason.CARD_HELD_WHOLE: "the cards are held whole",
    Reason.CARD_IN_USE: "whole cards are asked for and none is empty",
    Reason.CARD_RESERVED: "the cards are reserved for a pod of higher priority",
    Reason.CARD_KEPT_FOR_GANG: "the cards are kept free for a gang that has waited for long",
    Reason.CARD_AFFINITY: "no card has the pods on it that the pod must be beside",
    Reason.CARD_ANTI_AFFINITY: "the cards have pods on them that must not be beside the pod",
    Reason.CARD_SPACE_GROUP_FULL: "the pod's group in space has as many containers on the cards as MPS serves",
    Reason.CARD_CORDONED: "the cards are cordoned",
    Reason.CARD_UNHEALTHY: "the cards are unhealthy",
    Reason.CARD_EXCLUSIVE: "the cards are given out as a whole only",
    Reason.CARD_MODE_UNSUPPORTED: "the cards are in a mode that is not supported",
    Reason.CARD_WITHOUT_SPACE: "no MPS daemons for groups in space: no vgpu-space runs there, or the cards are too old",
    Reason.CARD_TOO_SMALL: "the cards are smaller than the request",
    Reason.GPU_MODEL_MISMATCH: "no card of the model asked for",
    Reason.GPU_UUID_MISMATCH: "no card with the UUID asked for",
    Reason.NOT_ENOUGH_CARDS: "fewer cards than asked for",
    Reason.NO_INVENTORY: "the node has no GPUs, or no device plugin reported them",
    Reason.PLUGIN_AWAY: "the node's device plugin is not running",
    Reason.KUBELET_OFFERS_LESS: "the kubelet offers fewer devices than its cards have free",
    Reason.SLICE_SIZE_MISMATCH: "the node has another slice size than the scheduler",
    Reason.NOT_ADMITTED: "the webhook has not admitted the pod",
    Reason.INVALID_REQUEST: "the pod's GPU request cannot be read",
    Reason.NOT_JUDGED: "the time did not suffice for the node; the next attempt goes on",
    Reason.GANG_SIZE_UNKNOWN: "the size of the pod's gang is not known",
    Reason.GANG_INCOMPLETE: "the pod's gang has fewer pods than its size",
    Reason.GANG_INSUFFICIENT_CARDS: "the free cards do not suffice for the whole gang",
    Reason.GANG_PLANNED_ELSEWHERE: "another node is planned for this pod of its gang",
    Reason.GANG_WAITS: "the pod's gang waits for its other pods, or for its next attempt",
    Reason.NODE_INSUFFICIENT_CPU: "the node has not the CPU free",
    Reason.NODE_INSUFFICIENT_MEMORY: "the node has not the host memory free",
    Reason.NODE_TAINTED: "the node has a taint that the pod does not tolerate",
    Reason.NODE_UNSCHEDULABLE: "the node is closed for new pods (kubectl cordon)",
    Reason.NODE_NOT_READY: "the node is not Ready: its kubelet does not answer, or says that it cannot run pods",
    Reason.NODE_AFFINITY_MISMATCH: "the pod's nodeSelector or node affinity excludes the node",
    Reason.SCHEDULER_REFUSED: "the cards have room, and kube-scheduler refuses for another reason",
    Reason.SCHEDULING_GATED: "the pod has scheduling gates, so that nothing schedules it",
}

CARD_WORDS: Final[dict[Reason, str]] = {  # about one card
    Reason.CARD_INSUFFICIENT_MEMORY: "not enough memory is free",
    Reason.CARD_INSUFFICIENT_CORES: "not enough time is free",
    Reason.CARD_HELD_WHOLE: "a container holds the whole card",
    Reason.CARD_IN_USE: "the whole card is asked for, and containers use parts of it",
    Reason.CARD_RESERVED: "reserved for a pod of higher priority",
    Reason.CARD_KEPT_FOR_GANG: "kept free for a gang that has waited for long",
    Reason.CARD_AFFINITY: "no pod on it has the labels of the pod's gpu-affinity",
    Reason.CARD_ANTI_AFFINITY: "a gpu-anti-affinity or gang-cards: own, of the pod or of a pod on it, keeps them apart",
    Reason.CARD_SPACE_GROUP_FULL: "the pod's group in space has as many containers on it as MPS serves, 48",
    Reason.CARD_CORDONED: "an administrator has cordoned it",
    Reason.CARD_UNHEALTHY: "unhealthy",
    Reason.CARD_EXCLUSIVE: "given out as a whole only",
    Reason.CARD_MODE_UNSUPPORTED: "in a mode that is not supported",
    Reason.CARD_WITHOUT_SPACE: "serves no groups in space: no vgpu-space runs on the node, or the card is before Volta",
    Reason.CARD_TOO_SMALL: "smaller than the request",
    Reason.GPU_MODEL_MISMATCH: "not of a model that the pod accepts",
    Reason.GPU_UUID_MISMATCH: "not one of the cards that the pod accepts",
}

# What nothing but another request or other cards can end.
NEVER: Final = frozenset(
    {
        Reason.CARD_TOO_SMALL,
        Reason.CARD_EXCLUSIVE,
        Reason.CARD_MODE_UNSUPPORTED,
        Reason.GPU_MODEL_MISMATCH,
        Reason.GPU_UUID_MISMATCH,
        Reason.NOT_ENOUGH_CARDS,
        Reason.NO_INVENTORY,
    }
)

# Refusals that remain when other pods end: kube-scheduler's preemption skips such nodes.
UNRESOLVABLE: Final = NEVER | frozenset(
    {
        Reason.CARD_KEPT_FOR_GANG,  # against pods of higher priority nothing is kept
        Reason.CARD_CORDONED,
        Reason.CARD_UNHEALTHY,
        Reason.CARD_WITHOUT_SPACE,
        Reason.PLUGIN_AWAY,
        Reason.SLICE_SIZE_MISMATCH,
        Reason.NOT_ADMITTED,
        Reason.INVALID_REQUEST,
        Reason.GANG_SIZE_UNKNOWN,
        Reason.GANG_INCOMPLETE,
        Reason.GANG_INSUFFICIENT_CARDS,  # room for one pod would start no gang
        Reason.GANG_PLANNED_ELSEWHERE,
        Reason.GANG_WAITS,
        Reason.NODE_TAINTED,
        Reason.NODE_UNSCHEDULABLE,
        Reason.NODE_NOT_READY,
        Reason.NODE_AFFINITY_MISMATCH,
        Reason.SCHEDULER_REFUSED,
        Reason.SCHEDULING_GATED,
    }
)

# What kube-scheduler refuses by itself, without asking the extender.
FOREIGN: Final = frozenset(
    {
        Reason.NODE_TAINTED,
        Reason.NODE_UNSCHEDULABLE,
        Reason.NODE_NOT_READY,
        Reason.NODE_AFFINITY_MISMATCH,
        Reason.SCHEDULER_REFUSED,
    }
)

# What explanations and simulations say, and no verb.
ONLY_EXPLAINED: Final = FOREIGN | {
    Reason.NODE_INSUFFICIENT_CPU,
    Reason.NODE_INSUFFICIENT_MEMORY,
    Reason.SCHEDULING_GATED,
}

# Of UNRESOLVABLE, what an administrator can end on a card that the pod accepts.
CURABLE: Final = frozenset({Reason.CARD_CORDONED, Reason.CARD_UNHEALTHY})


def ordered(nodes: Mapping[Reason, int]) -> list[tuple[Reason, int]]:
    """Order reasons as people need them: what other pods' end cures, what an administrator can end, what stays.

    `nodes` counts the nodes by reason; of one kind the most frequent reason comes first. Where a pod names a card
    that is cordoned, its node says `CardCordoned` and every other node `GpuUuidMismatch`: the cordon comes first.
    """
    return sorted(nodes.items(), key=lambda item: (_permanence(item[0]), -item[1], item[0]))


def _permanence(reason: Reason) -> int:
    return (reason in UNRESOLVABLE) + (reason in NEVER)


def text(reason: Reason) -> str:
    """Return the text for kube-scheduler's events: `CardInsufficientMemory: no card has the GPU memory free`."""
    return f"{reason}: {WORDS[reason]}"
