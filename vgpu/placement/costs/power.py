"""The policy `power`: the fewest cards, and then the fewest nodes, in use."""

from typing import Final

from vgpu.domain.cards.share import CardState
from vgpu.placement.question import Question
from vgpu.placement.room import Ints, NodeRoom, after

_NODE: Final = 1 << 20  # cost of a node that was idle: above any free share of a node's cards
_CARD_IN_USE: Final = 1 << 24  # cost of a card that was idle: above a node
_IDLE_CARD: Final = 1 << 30  # above the free slices of any card


def cost(room: NodeRoom, question: Question) -> Ints:
    """Return what a pod switches on: cards first, then the node; then the least that is free."""
    left = after(room, question.ask)
    is_idle = _idle(room) == _present(room)
    return (_idle(room) - _idle(left)) * _CARD_IN_USE + is_idle * _NODE + room.share


def card_order(state: CardState) -> int:
    """Sort cards in use before idle ones, and the tightest first."""
    return state.free_slices + _IDLE_CARD * state.is_empty


def _idle(room: NodeRoom) -> Ints:
    return room.total(lambda card: card.is_empty * 1)


def _present(room: NodeRoom) -> Ints:
    return room.total(lambda card: (card.total_slices > 0) * 1)
