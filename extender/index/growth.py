"""How much more of each row typical pods cannot use when a pod is placed there: the expensive part of `fgd`."""

from typing import Final

import numpy as np

from extender.index.copies import together
from extender.index.nodes import Ints, NodeIndex, Places
from extender.index.row_cache import RowCache
from vgpu.placement.costs import fgd
from vgpu.placement.question import Question
from vgpu.placement.room import PodAsk

MAX_ASKS: Final = 32  # of 1.3 MB each, for 32 typical pods and 5,000 nodes


class Growth:
    """The growth for the pod classes that were asked about last."""

    def __init__(self, index: NodeIndex) -> None:
        self._index = index
        self._known = RowCache(index, MAX_ASKS)

    def costs(self, question: Question) -> Ints:
        """Return what a pod costs on each row."""
        ask, typical = question.ask, question.demand.asks
        grown = self._known.of((ask, typical), len(typical), lambda places: self._grown(ask, typical, places))
        costs: Ints = fgd.priced(list(grown), question.demand)
        return costs

    def _grown(self, ask: PodAsk, typical: tuple[PodAsk, ...], places: Places) -> Ints:
        if not typical:
            return np.zeros((0, len(places)), np.int64)
        found: Ints = fgd.growth(self._index.room(places), ask, together(typical))
        return found
