"""The summary of a node's cards: the columns of `kubectl get gpunodes`."""

from collections import Counter
from collections.abc import Sequence

from vgpu import quantity
from vgpu.device import Card


def summary_of(cards: Sequence[Card], slice_mib: int) -> dict[str, int | str]:
    """Return the number of cards, how many are healthy, their models, their memory, and how much of it is held."""
    models = Counter(card.model for card in cards)
    return {
        "cards": len(cards),
        "healthy": sum(card.healthy for card in cards),
        "models": ", ".join(f"{count} x {model}" for model, count in sorted(models.items())),
        "memory": quantity.human_mib(sum(card.memory_mib for card in cards)),
        "held": quantity.human_mib(sum(_held_mib(card, slice_mib) for card in cards)),
    }


def _held_mib(card: Card, slice_mib: int) -> int:
    """Return the MiB held of a card, with the exact size of its last, partial slice."""
    return card.memory_mib if card.held_whole else min(card.memory_mib, card.held_slices * slice_mib)
