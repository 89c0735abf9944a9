"""How much room all usable nodes have: what the prices of typical pods are made of."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from extender.index.codes import UNDECIDED
from extender.index.copies import Copies
from extender.index.nodes import NodeIndex
from vgpu.domain.cards.share import NodeState
from vgpu.domain.identifiers import NodeName
from vgpu.placement import room
from vgpu.placement.costs import fragmentation
from vgpu.placement.models import Models
from vgpu.placement.room import PodAsk


@dataclass(frozen=True, slots=True)
class Supply:
    """Sums over all usable nodes.

    Attributes:
        copies: for how many pods of each class there is room, in thousandths.
        free: what is free on all cards, in thousandths of a card.
        slices: of the mean card, at least 1.
    """

    copies: Mapping[PodAsk, int]
    free: int
    slices: int


class Supplies:
    """Adds up the rows of an index, which must be up to date. `state` returns a node's state by name."""

    def __init__(
        self, index: NodeIndex, room_for: Copies, state: Callable[[NodeName], NodeState], models: Models
    ) -> None:
        self._index = index
        self._room_for = room_for
        self._state = state
        self._models = models

    def of(self, typical: tuple[PodAsk, ...], now: float) -> Supply:
        """Return the room of the nodes that can be used at a monotonic time; wide nodes are looked at one by one."""
        index = self._index
        every = np.arange(index.size)
        is_usable = index.is_usable(every, now)
        free = index.room(every[is_usable])
        names = [index.name(place) for place in np.flatnonzero(is_usable & (index.blocked == UNDECIDED)).tolist()]
        wide = [room.room_of(self._state(name), self._models) for name in names]
        copies = self._room_for.of(typical)[:, is_usable].sum(axis=1).tolist()
        more = [sum(int(fragmentation.copies(node_room, ask)) for node_room in wide) for ask in typical]
        slices = sum(int(np.sum(card.total_slices)) for node_room in (free, *wide) for card in node_room.cards)
        return Supply(
            copies=dict(zip(typical, map(sum, zip(copies, more, strict=True)), strict=True)),
            free=sum(int(np.sum(node_room.share)) for node_room in (free, *wide)),
            slices=max(1, slices // max(1, int(index.cards[is_usable].sum()))),
        )
