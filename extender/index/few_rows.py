"""The room of few rows, whose cards are one array: tens of numpy calls on short arrays instead of hundreds.

A call costs about a microsecond, however short its arrays are. On many rows the arrays no longer fit into the
processor's cache, and `NodeIndex.room`, which goes from card to card, is faster.
"""

from collections.abc import Callable
from typing import Final

import numpy as np

from extender.index.nodes import Ints, NodeIndex, Places
from vgpu.placement.room import NEVER, CardRoom, NodeRoom, PodAsk, fits, tightness, without

MAX_ROWS: Final = 32


class FewRows(NodeRoom):
    """A room of which `cards` is one CardRoom, of arrays of the shape (cards, 1, rows)."""

    __slots__ = ()

    def total(self, number: Callable[[CardRoom], Ints]) -> Ints:
        """Return the sum of a number over all cards, as (rows), or as (classes, rows) where an Ask has columns."""
        found: Ints = number(self.cards[0]).sum(axis=0)
        return found[0] if len(found) == 1 else found

    def without_empty(self, ask: PodAsk) -> list[CardRoom]:
        """Return the cards without the first ones that a pod of whole cards can have."""
        card = self.cards[0]
        is_fit = fits(card, ask)
        return [without(card, ask, is_fit & (is_fit.cumsum(axis=0) <= ask.gpus))]

    def without_tightest(self, ask: PodAsk) -> list[CardRoom]:
        """Return the cards without a pod's shares of the tightest ones that fit, of equal ones the first."""
        card = self.cards[0]
        free = tightness(card, ask)
        numbers = np.arange(len(free)).reshape(-1, 1, 1)
        taken = np.zeros(free.shape, np.int64)
        for _ in range(ask.gpus):
            is_next = numbers == free.argmin(axis=0)
            taken += is_next
            free += NEVER * is_next
        return [without(card, ask, taken)]


def room(index: NodeIndex, places: Places) -> NodeRoom:
    """Return the room of some rows: up to `MAX_ROWS` as FewRows, more as `NodeIndex.room` returns it."""
    if len(places) > MAX_ROWS:
        return index.room(places)
    return FewRows(index.host[0, places], index.host[1, places], [index.cards_of(places)])
