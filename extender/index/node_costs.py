"""Costs of nodes that arrays cannot give, computed node by node."""

from collections.abc import Callable
from typing import Final

import numpy as np

from extender.index.codes import FITS
from extender.index.nodes import Ints, NodeIndex, Places
from extender.index.row_cache import RowCache
from vgpu.domain.cards.share import NodeState
from vgpu.domain.identifiers import NO_NODE, NodeName
from vgpu.placement.question import Question

MAX_ASKS: Final = 32  # of 40,000 bytes each in a cluster of 5,000 nodes

Cost = Callable[[NodeState, Question], int]


class NodeCosts:
    """The costs of one policy for the pod classes asked about last. `state` returns a node's state by name."""

    def __init__(self, index: NodeIndex, state: Callable[[NodeName], NodeState], cost: Cost) -> None:
        self._index = index
        self._state = state
        self._cost = cost
        self._known = RowCache(index, MAX_ASKS)

    def of(self, question: Question) -> Ints:
        """Return the cost of each row; 0 where pods may not use the node. Do not change the array."""
        found: Ints = self._known.of(question.ask, 1, lambda places: self._costs(places, question))[0]
        return found

    def _costs(self, places: Places, question: Question) -> Ints:
        index = self._index
        names = [index.name(place) if index.blocked[place] == FITS else NO_NODE for place in places.tolist()]
        return np.array([self._cost(self._state(name), question) if name else 0 for name in names], np.int64)
