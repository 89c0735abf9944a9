"""Why a card or a node was refused: closed codes, each with words that a person can act on.

kube-scheduler counts nodes by identical text, so the texts are few and begin with a word; details (how much is free
where) go into the pod's event and into `explain`.
"""

from enum import StrEnum
from typing import Final


class Reason(StrEnum):
    """A refusal's code. Those of a card come first, those of a node after them."""

    CARD_INSUFFICIENT_MEMORY = "CardInsufficientMemory"
    CARD_INSUFFICIENT_CORES = "CardInsufficientCores"
    CARD_HELD_WHOLE = "CardHeldWhole"
    CARD_IN_USE = "CardInUse"
    CARD_CORDONED = "CardCordoned"
    CARD_UNHEALTHY = "CardUnhealthy"
    CARD_EXCLUSIVE = "CardExclusive"
    CARD_MODE_UNSUPPORTED = "CardModeUnsupported"
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


WORDS: Final[dict[Reason, str]] = {
    Reason.CARD_INSUFFICIENT_MEMORY: "no card has the GPU memory free",
    Reason.CARD_INSUFFICIENT_CORES: "no card has the GPU time free",
    Reason.CARD_HELD_WHOLE: "the cards are held whole",
    Reason.CARD_IN_USE: "whole cards are asked and none is empty",
    Reason.CARD_CORDONED: "the cards are cordoned",
    Reason.CARD_UNHEALTHY: "the cards are unhealthy",
    Reason.CARD_EXCLUSIVE: "the cards are given out whole only",
    Reason.CARD_MODE_UNSUPPORTED: "the cards are in a mode that is not supported",
    Reason.CARD_TOO_SMALL: "the cards are smaller than the request",
    Reason.GPU_MODEL_MISMATCH: "no card of the model asked for",
    Reason.GPU_UUID_MISMATCH: "no card with the UUID asked for",
    Reason.NOT_ENOUGH_CARDS: "fewer cards than asked for",
    Reason.NO_INVENTORY: "the node has no GPUs, or no device plugin reported them",
    Reason.PLUGIN_AWAY: "the node's device plugin is away",
    Reason.KUBELET_OFFERS_LESS: "the kubelet offers fewer devices than its cards have free",
    Reason.SLICE_SIZE_MISMATCH: "the node cuts its cards by another slice size",
    Reason.NOT_ADMITTED: "the webhook has not admitted the pod",
    Reason.INVALID_REQUEST: "the pod's GPU request cannot be read",
}

# Refusals that no pod's end can cure: kube-scheduler's preemption skips such nodes.
UNRESOLVABLE: Final = frozenset(
    {
        Reason.CARD_TOO_SMALL,
        Reason.CARD_CORDONED,
        Reason.CARD_UNHEALTHY,
        Reason.CARD_EXCLUSIVE,
        Reason.CARD_MODE_UNSUPPORTED,
        Reason.GPU_MODEL_MISMATCH,
        Reason.GPU_UUID_MISMATCH,
        Reason.NOT_ENOUGH_CARDS,
        Reason.NO_INVENTORY,
        Reason.PLUGIN_AWAY,
        Reason.SLICE_SIZE_MISMATCH,
        Reason.NOT_ADMITTED,
        Reason.INVALID_REQUEST,
    }
)


def text(reason: Reason) -> str:
    """Say the refusal in kube-scheduler's events: `CardInsufficientMemory: no card has the GPU memory free`."""
    return f"{reason}: {WORDS[reason]}"
