"""Costs of nodes that arrays cannot give, computed node by node. A later question looks only at rows written since."""

from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Final

import numpy as np

from extender.index.codes import FITS
from extender.index.nodes import Ints, NodeIndex
from vgpu.placement.question import Question
from vgpu.share import NodeState

MAX_ASKS: Final = 32  # of 40,000 bytes each in a cluster of 5,000 nodes

Cost = Callable[[NodeState, Question], int]


class NodeCosts:
    """The costs of one policy for the pod classes asked about last. `state` returns a node's state by name."""

    def __init__(self, index: NodeIndex, state: Callable[[str], NodeState], cost: Cost) -> None:
        self._index = index
        self._state = state
        self._cost = cost
        self._known: OrderedDict[Hashable, tuple[int, Ints]] = OrderedDict()  # by what a pod asks

    def of(self, question: Question) -> Ints:
        """Return the cost of each row; 0 where pods may not use the node. Do not change the array."""
        index, ask = self._index, question.ask
        version, costs = self._known.get(ask, (0, np.zeros(0, np.int64)))
        if len(costs) != index.size:
            version, costs = 0, np.zeros(index.size, np.int64)
        if version != index.version:
            for place in np.flatnonzero(index.versions > version).tolist():
                is_open = index.name(place) and index.blocked[place] == FITS
                costs[place] = self._cost(self._state(index.name(place)), question) if is_open else 0
        self._known[ask] = index.version, costs
        self._known.move_to_end(ask)
        if len(self._known) > MAX_ASKS:
            self._known.popitem(last=False)
        return costs
