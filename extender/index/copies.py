"""For how many pods of each typical class the nodes have room. A later question looks only at rows written since."""

from collections.abc import Callable, Sequence
from dataclasses import fields
from typing import Final

import numpy as np

from extender.index.nodes import Ints, NodeIndex
from vgpu.placement import fragmentation
from vgpu.placement.room import Ask, Room, least

BLOCK: Final = 512  # rows that are looked at in one pass: its arrays stay in the processor's cache


class Copies:
    """The room of all rows for the typical classes that were asked about last."""

    def __init__(self, index: NodeIndex) -> None:
        self._index = index
        self._typical: tuple[Ask, ...] = ()
        self._version = 0
        self._known: Ints = np.zeros((0, 0), np.int64)

    def of(self, typical: tuple[Ask, ...]) -> Ints:
        """Return `fragmentation.copies` of each class on each row, as (classes, rows). Do not change the array."""
        index = self._index
        if typical != self._typical or self._known.shape[1] != index.size:
            self._typical, self._version = typical, 0
            self._known = np.zeros((len(typical), index.size), np.int64)
        if self._version != index.version:
            changed = np.flatnonzero(index.versions > self._version)
            for places in np.split(changed, range(BLOCK, len(changed), BLOCK)):
                self._known[:, places] = copies(index.room(places), typical, len(places))
            self._version = index.version
        return self._known


def copies(room: Room, typical: Sequence[Ask], rows: int) -> Ints:
    """Return `fragmentation.copies` of each class on each row of a room, as (classes, rows)."""
    found = np.zeros((len(typical), rows), np.int64)
    _fill(found, room, typical, [n for n, ask in enumerate(typical) if ask.gpus == 1], fragmentation.by_card)
    _fill(found, room, typical, [n for n, ask in enumerate(typical) if ask.gpus > 1], fragmentation.by_cards)
    return found


def _fill(
    found: Ints, room: Room, typical: Sequence[Ask], chosen: list[int], by_cards: Callable[[Room, Ask], Ints]
) -> None:
    if chosen:
        ask = _together([typical[n] for n in chosen])
        found[chosen] = least(fragmentation.by_host(room, ask), by_cards(room, ask))


def _together(asks: Sequence[Ask]) -> Ask:
    """Return classes as one, whose fields are columns: an operation with rows has the shape (classes, rows)."""
    return Ask(*(np.array([[getattr(ask, each.name)] for ask in asks], np.int64) for each in fields(Ask)))
