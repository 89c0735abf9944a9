"""What a pod changes on each row, by class of pods: the part of `fragmentation` that does not depend on the prices."""

from typing import Final

import numpy as np

from extender.index import few_rows
from extender.index.copies import Copies, copies
from extender.index.nodes import Ints, NodeIndex, Places
from extender.index.row_cache import RowCache
from vgpu.placement.costs import fragmentation
from vgpu.placement.costs.fragmentation import NodeChange
from vgpu.placement.question import Question
from vgpu.placement.room import PodAsk, after

MAX_ASKS: Final = 32  # of 1.5 MB each, for 32 typical pods and 5,000 nodes


class Changes:
    """The changes of the pod classes that were asked about last."""

    def __init__(self, index: NodeIndex, room_for: Copies) -> None:
        self._index = index
        self._room_for = room_for
        self._known = RowCache(index, MAX_ASKS)
        self._last: tuple[Question, int, Ints] | None = None  # with the version of the index

    def costs(self, question: Question) -> Ints:
        """Return what a pod costs on each row. Do not change the array."""
        version = self._index.version
        if self._last is None or self._last[1] != version or not _is_same(self._last[0], question):
            self._last = question, version, self._priced(question)
        return self._last[2]

    def _priced(self, question: Question) -> Ints:
        ask, typical = question.ask, question.demand.asks
        before = self._room_for.of(typical)
        found = self._known.of(
            (ask, typical), len(typical) + 4, lambda places: self._changed(ask, typical, before, places)
        )
        costs: Ints = fragmentation.priced(NodeChange(list(found[:-4]), *found[-4:]), question.demand)
        return costs

    def _changed(self, ask: PodAsk, typical: tuple[PodAsk, ...], before: Ints, places: Places) -> Ints:
        """Return the fields of a Change: `lost` by typical class, and the others."""
        room = few_rows.room(self._index, places)
        left = after(room, ask)
        lost = before[:, places] - copies(left, typical, len(places))
        return np.concatenate([lost, np.stack([room.share, room.cpu_milli, left.share, left.cpu_milli])])


def _is_same(one: Question, other: Question) -> bool:
    """Whether two questions have one answer: a demand is made anew when its prices change."""
    return one.demand is other.demand and one.ask == other.ask
