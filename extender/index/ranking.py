"""Scores of nodes by a policy's cost. One node alone gets the best score; see `vgpu.placement.rank`."""

import itertools
from collections.abc import Callable, Mapping, Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from extender.index.changes import Changes
from extender.index.codes import UNDECIDED
from extender.index.copies import Copies
from extender.index.growth import Growth
from extender.index.node_costs import NodeCosts
from extender.index.nodes import Ints, Names, NodeIndex, Places
from vgpu.domain.asks.policy import PackingPolicy
from vgpu.domain.cards.share import NodeState
from vgpu.domain.identifiers import NodeName
from vgpu.placement import rank, room
from vgpu.placement.policies import POLICIES
from vgpu.placement.question import Question

BEST: Final = 10  # of kube-scheduler's scores for an extender
Scores = dict[int, list[bytes]]  # by score, the names of the nodes as JSON


class Ranking:
    """Ranks the nodes of an index, which must be up to date. `state` returns a node's state by name."""

    def __init__(self, index: NodeIndex, room_for: Copies, state: Callable[[NodeName], NodeState]) -> None:
        self._index = index
        self._state = state
        self._kept: dict[PackingPolicy, Callable[[Question], Ints]] = {
            PackingPolicy.FRAGMENTATION: Changes(index, room_for).costs,
            PackingPolicy.FGD: Growth(index).costs,
        }
        self._node_costs = {
            policy: NodeCosts(index, state, row.node_state) for policy, row in POLICIES.items() if row.node_state
        }

    def score(
        self,
        names: Sequence[NodeName],
        policy: PackingPolicy,
        question: Question,
        now: float,
        tiers: Mapping[NodeName, int] = rank.NO_TIERS,
    ) -> Scores:
        """Score the nodes named: those that can be used at a monotonic time by rank, the others 0.

        A node in a lower one of `tiers` comes before all nodes in higher ones (`vgpu.placement.racks`).
        """
        index = self._index
        places = index.places(names)
        is_usable = index.is_usable(places, now)
        encoded = index.encode(names, places)
        usable = places[is_usable]
        found = np.zeros(len(names), np.int64)
        if len(usable):
            costs, tolerance = self._costs(usable, policy, question), POLICIES[policy].tolerance
            levels = np.array([tiers.get(name, 0) for name in names], np.int64)[is_usable] if tiers else None
            found[is_usable] = by_rank(costs, index.order[usable], tolerance(question.demand.weights), levels)
        return by_score(found, encoded)

    def prepare(self, policy: PackingPolicy, question: Question) -> None:
        """Compute what is kept of the rows that were written since the question was asked."""
        if policy in self._kept:
            self._kept[policy](question)
        if policy in self._node_costs:
            self._node_costs[policy].of(question)

    def usable(self, names: Sequence[NodeName], now: float) -> list[NodeName]:
        """Return those of the nodes named that can be used at a monotonic time."""
        is_usable = self._index.is_usable(self._index.places(names), now)
        return [names[n] for n in np.flatnonzero(is_usable).tolist()]

    def ordered(self, names: Sequence[NodeName], policy: PackingPolicy, question: Question) -> list[NodeName]:
        """Return nodes that can be used, best first."""
        places = self._index.places(names)
        if not len(places):
            return []
        costs, tolerance = self._costs(places, policy, question), POLICIES[policy].tolerance(question.demand.weights)
        return [names[n] for n in in_order(costs, self._index.order[places], tolerance).tolist()]

    def best(self, places: Places, policy: PackingPolicy, question: Question) -> int:
        """Return the row, of at least one in `places`, that gets the best score."""
        costs, tolerance = self._costs(places, policy, question), POLICIES[policy].tolerance
        equal = places[costs <= costs.min() + tolerance(question.demand.weights)]
        return int(equal[self._index.order[equal].argmin()])

    def _costs(self, places: Places, policy: PackingPolicy, question: Question) -> Ints:
        """Return the cost of each row; nodes that arrays cannot describe are looked at one by one."""
        if policy in self._kept:
            found = np.asarray(self._kept[policy](question))
            costs = found[places] if found.ndim else np.full(len(places), found, np.int64)
        else:
            found = POLICIES[policy].node(self._index.room(places), question)
            costs = np.broadcast_to(found, len(places)).astype(np.int64)
        if policy in self._node_costs:
            costs += self._node_costs[policy].of(question)[places]
        is_wide = np.flatnonzero(self._index.blocked[places] == UNDECIDED)
        if len(is_wide):
            costs[is_wide] = self._exactly(places[is_wide], policy, question)
        return costs

    def _exactly(self, places: Places, policy: PackingPolicy, question: Question) -> Ints:
        row, states = POLICIES[policy], (self._state(self._index.name(place)) for place in places.tolist())
        costs = [row.cost(state, room.room_of(state, question.models), question) for state in states]
        return np.array(costs, np.int64)


def by_rank(costs: Ints, order: NDArray[np.uint64], tolerance: int, tiers: Ints | None = None) -> Ints:
    """Return the score of each node: `BEST` for the smallest cost, and falling with the rank; `order` breaks ties.

    Costs that are above the least by at most the tolerance are equal to it. Lower `tiers` come first.
    """
    ranked = in_order(costs, order, tolerance, tiers)
    rest = max(1, len(ranked) - 1)
    falling = (BEST - 1) * np.arange(rest, rest - len(ranked), -1) // rest
    falling[:1] = BEST
    found = np.empty(len(ranked), np.int64)
    found[ranked] = falling
    return found


def in_order(costs: Ints, order: NDArray[np.uint64], tolerance: int, tiers: Ints | None = None) -> Places:
    """Return the positions of nodes by their tiers, then by their costs, equal ones by `order`."""
    if tiers is None:
        return np.lexsort((order, np.maximum(costs, costs.min() + tolerance)))
    least = costs[tiers == tiers.min()].min()
    return np.lexsort((order, np.maximum(costs, least + tolerance), tiers))


def by_score(scores: Ints, encoded: Names) -> Scores:
    """Return the names of each score, in the order in which they came; lower scores first.

    Not np.unique: its first call imports numpy.ma, which takes a request hundreds of milliseconds.
    """
    names = encoded[scores.astype(np.uint8).argsort(kind="stable")].tolist()
    ends = list(itertools.accumulate(np.bincount(scores).tolist(), initial=0))
    return {score: names[first:end] for score, (first, end) in enumerate(itertools.pairwise(ends)) if first < end}
