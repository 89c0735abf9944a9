"""For how many pods of each typical class the nodes have room."""

from collections.abc import Callable, Sequence
from dataclasses import fields

import numpy as np

from extender.index import few_rows
from extender.index.nodes import Ints, NodeIndex, Places
from extender.index.row_cache import RowCache
from vgpu.placement.costs import fragmentation
from vgpu.placement.room import NodeRoom, PodAsk, least


class Copies:
    """The room of all rows for the typical classes that were asked about last."""

    def __init__(self, index: NodeIndex) -> None:
        self._index = index
        self._known = RowCache(index, max_keys=1)

    def of(self, typical: tuple[PodAsk, ...]) -> Ints:
        """Return `fragmentation.copies` of each class on each row, as (classes, rows). Do not change the array."""

        def compute(places: Places) -> Ints:
            return copies(few_rows.room(self._index, places), typical, len(places))

        return self._known.of(typical, len(typical), compute)


def copies(room: NodeRoom, typical: Sequence[PodAsk], rows: int) -> Ints:
    """Return `fragmentation.copies` of each class on each row of a room, as (classes, rows)."""
    found = np.zeros((len(typical), rows), np.int64)
    _fill(found, room, typical, [n for n, ask in enumerate(typical) if ask.gpus == 1], fragmentation.by_card)
    _fill(found, room, typical, [n for n, ask in enumerate(typical) if ask.gpus > 1], fragmentation.by_cards)
    return found


def together(asks: Sequence[PodAsk]) -> PodAsk:
    """Return classes as one, whose fields are columns: an operation with rows has the shape (classes, rows)."""
    return PodAsk(*(np.array([[getattr(ask, field.name)] for ask in asks], np.int64) for field in fields(PodAsk)))


def _fill(
    found: Ints,
    room: NodeRoom,
    typical: Sequence[PodAsk],
    chosen: list[int],
    by_cards: Callable[[NodeRoom, PodAsk], Ints],
) -> None:
    if chosen:
        ask = together([typical[n] for n in chosen])
        found[chosen] = least(fragmentation.by_host(room, ask), by_cards(room, ask))
