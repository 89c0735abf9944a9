"""The summary of a node's cards: the columns of `kubectl get gpunodes`."""

from collections import Counter
from collections.abc import Sequence
from typing import Final

from vgpu.domain import quantity
from vgpu.domain.cards.device import Card
from vgpu.domain.cards.share import CardState
from vgpu.domain.quantity import FULL_CORES

_MAX_CONFLICTS: Final = 512


def summary_of(states: Sequence[CardState], *, is_ready: bool, conflicts: Sequence[str] = ()) -> dict[str, int | str]:
    """Return what `kubectl get gpunodes` shows of a node.

    Free memory and compute are those of the cards that take new containers: healthy and not cordoned. Compute is in
    cards: the time of two half cards is one.
    """
    cards = [state.card for state in states]
    models = Counter(card.model for card in cards)
    healthy = sum(card.healthy for card in cards)
    usable = [state for state in states if state.card.healthy and not state.card.cordoned]
    return {
        "ready": is_ready,
        "health": f"{healthy}/{len(cards)}",
        "cordoned": sum(card.cordoned for card in cards),
        "freeMemory": quantity.human_mib(sum(state.free_mib for state in usable)),
        "freeCompute": f"{sum(state.free_cores for state in usable) / FULL_CORES:g} of {len(cards)} cards",
        "conflicts": "; ".join(conflicts)[:_MAX_CONFLICTS],
        "cards": len(cards),
        "healthy": healthy,
        "models": ", ".join(f"{count} x {model}" for model, count in sorted(models.items())),
        "memory": quantity.human_mib(sum(card.memory_mib for card in cards)),
        "held": quantity.human_mib(sum(_held_mib(state.card, state.slice_mib) for state in states)),
    }


def _held_mib(card: Card, slice_mib: int) -> int:
    """Return the MiB held of a card, with the exact size of its last, partial slice."""
    return card.memory_mib if card.held_whole else min(card.memory_mib, card.held_slices * slice_mib)
