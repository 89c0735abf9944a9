"""Scores of nodes by a policy's cost. One node alone gets the best score; see `vgpu.placement.rank`."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from extender.index.nodes import Ints, NodeIndex
from vgpu.placement.policies import COMPARATORS
from vgpu.policy import PackingPolicy

Scores = dict[int, list[bytes]]  # by score, the names of the nodes as JSON


def score(index: NodeIndex, names: Sequence[str], policy: PackingPolicy, now: float) -> Scores:
    """Score the nodes named: those that can be used at a monotonic time by rank, the others 0."""
    places = index.places(names)
    is_usable = index.is_usable(places, now)
    encoded = index.encode(names, places)
    usable = places[is_usable]
    found = np.zeros(len(names), np.int64)
    if len(usable):
        view: Any = index.view(usable)  # a policy's cost uses operators only: ints in, int out; arrays in, array out
        costs: Any = COMPARATORS[policy].node(view)
        found[is_usable] = by_rank(costs, index.order[usable])
    return {int(each): encoded[found == each].tolist() for each in np.unique(found)}


def by_rank(costs: Ints, order: NDArray[np.uint64], best: int = 10) -> Ints:
    """Return the score of each node: `best` for the smallest cost, and falling with the rank; `order` breaks ties."""
    ranked = np.lexsort((order, costs))
    rest = max(1, len(ranked) - 1)
    falling = (best - 1) * (rest - np.arange(len(ranked))) // rest
    falling[:1] = best
    found = np.empty(len(ranked), np.int64)
    found[ranked] = falling
    return found
