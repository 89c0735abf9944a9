"""A node's row: what the arrays have of a node, made of its state."""

from dataclasses import dataclass, field
from typing import Final

import msgspec

from extender.index.codes import CODES, FITS
from vgpu.domain.cards.device import CardMode
from vgpu.domain.cards.reasons import Reason
from vgpu.domain.cards.share import CardState, NodeState
from vgpu.domain.identifiers import NodeName
from vgpu.placement import room
from vgpu.placement.models import Models

FIELDS: Final = (
    "free_slices",
    "free_mib",
    "free_cores",
    "total_slices",
    "memory_mib",
    "closed_to_shares",  # why no share fits on the card, whatever its size; FITS where some may
    "closed_to_wholes",
    "model",  # the number of the model's name
    "open_slices",  # what policies look at: free, and 0 where the card takes no new pods
    "open_cores",
    "model_bit",
    "serves_space",
)


class IndexRow(msgspec.Struct, frozen=True, gc=False):
    """What is known of one node.

    Attributes:
        name: the node's name.
        blocked: why no pod may use the node, whatever is free on it; None where pods may.
        state: what is taken of the node's cards; None where the node is blocked.
        left: how many more devices the kubelet would hand out: slices, cards.
        renewed: when the Lease of the node's device plugin changed last, in monotonic seconds.
        duration_s: the Lease's duration; None where it has no holder.
    """

    name: NodeName
    blocked: Reason | None = None
    state: NodeState | None = None
    left: tuple[int, int] = (0, 0)
    renewed: float = 0.0
    duration_s: float | None = None


@dataclass(slots=True)
class ModelNames:
    """The model names of cards, numbered as they are first seen."""

    names: list[str] = field(default_factory=list)
    _numbers: dict[str, int] = field(default_factory=dict)

    def number(self, name: str) -> int:
        """Return a model's number."""
        found = self._numbers.get(name)
        if found is None:
            found = self._numbers[name] = len(self.names)
            self.names.append(name)
        return found


def card(state: CardState, names: ModelNames, models: Models) -> tuple[int, ...]:
    """Return the fields of a card."""
    closed, free = _closed(state), room.card_room(state, models)
    return (
        state.free_slices,
        state.free_mib,
        state.free_cores,
        free.total_slices,
        state.card.memory_mib,
        max(closed, _closed_to_shares(state)),
        max(closed, FITS if state.is_empty else CODES[Reason.CARD_IN_USE]),
        names.number(state.card.model),
        free.free_slices,
        free.free_cores,
        free.model,
        state.card.serves_space,
    )


def _closed_to_shares(state: CardState) -> int:
    held = CODES[Reason.CARD_HELD_WHOLE] if state.is_held_whole else FITS
    return max(held, CODES[Reason.CARD_EXCLUSIVE]) if state.card.mode is CardMode.EXCLUSIVE else held


def _closed(state: CardState) -> int:
    if state.card.mode is CardMode.UNKNOWN:
        return CODES[Reason.CARD_MODE_UNSUPPORTED]
    if not state.card.healthy:
        return CODES[Reason.CARD_UNHEALTHY]
    return CODES[Reason.CARD_CORDONED] if state.card.cordoned else FITS
