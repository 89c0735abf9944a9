"""The policy `fragmentation` on arrays: the product's functions of the cost, with a cache of the rows that changed."""

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any

import numpy as np

from benchmarks.placement.fleet import Array, FleetArrays
from vgpu.placement.costs import fragmentation
from vgpu.placement.costs.fragmentation import NodeChange
from vgpu.placement.demand import EMPTY, Demand, TypicalPods
from vgpu.placement.room import CardRoom, NodeRoom, PodAsk, after, least


class Classes:
    """Typical classes as rows of arrays, so that one call calculates for all of them."""

    def __init__(self, asks: Sequence[PodAsk]) -> None:
        self.asks = tuple(asks)
        self._groups = [
            ([n for n, ask in enumerate(asks) if ask.gpus == 1], fragmentation.by_card),
            ([n for n, ask in enumerate(asks) if ask.gpus > 1], fragmentation.by_cards),
        ]

    def columns(self, chosen: Sequence[int]) -> PodAsk:
        """Return some classes as one, whose fields are rows."""
        return PodAsk(
            *(np.array([[getattr(self.asks[n], field.name) for n in chosen]], np.int64) for field in fields(PodAsk))
        )

    def copies(self, room: NodeRoom, rows: int) -> Array:
        """Return `fragmentation.copies` for all nodes of a room and all classes."""
        found = np.zeros((rows, len(self.asks)), np.int64)
        for chosen, by_cards in self._groups:
            if chosen:
                ask = self.columns(chosen)
                found[:, chosen] = least(fragmentation.by_host(room, ask), by_cards(room, ask))
        return found


@dataclass(slots=True)
class LearnedClass:
    """What is known of one class of pods: by node, whether it fits and what it changes; stale rows are in `stale`."""

    stale: Array
    fits: Array
    lost: Array
    left_share: Array
    left_cpu: Array


class Fragmentation:
    """Chooses nodes by `fragmentation`, learning from nothing."""

    def __init__(self, fleet: FleetArrays) -> None:
        self._fleet = fleet
        self._typical = TypicalPods()
        self._classes = Classes(())
        self._copies = np.zeros((len(fleet.cpu), 0), np.int64)
        self._known: dict[PodAsk, LearnedClass] = {}
        self._seen = self._priced = self._questions = 0
        self.demand: Demand = EMPTY
        self._prices = np.zeros(0, np.int64)

    def see(self, ask: PodAsk) -> None:
        """Count a pod that arrives; the extender learns nothing from pods without cards."""
        if ask.gpus:
            self._typical.see(ask)
            self._seen += 1

    def choose(self, ask: PodAsk) -> tuple[int, list[int]] | None:
        """Return the node and the cards for a pod; None where no node has room."""
        if ask.gpus:
            self._ask()
        fleet, known = self._fleet, self._update(ask)
        room = fleet.room()
        change = NodeChange((), room.share, room.cpu_milli, known.left_share, known.left_cpu)
        costs = known.lost @ self._prices + fragmentation.apart(change, self.demand)
        node = fleet.first(known.fits, costs, fragmentation.tolerance(self.demand.weights))
        return None if node is None else (node, fleet.cards(ask, node) if ask.gpus else [])

    def changed(self, node: int) -> None:
        """Take a node on which a pod was placed or removed."""
        self._copies[node] = self._classes.copies(self._fleet.room(slice(node, node + 1), by_class=True), 1)[0]
        for known in self._known.values():
            known.stale[node] = True

    def left(self, ask: PodAsk, node: int, cards: Sequence[int]) -> None:  # noqa: ARG002 - as a baseline's
        """Take a pod that ended."""
        self.changed(node)

    def _ask(self) -> None:
        """Make new prices when `DemandKeeper.question` does."""
        if self._questions % self.demand.weights.refresh == 0 or self._seen > 2 * self._priced:
            self._priced = self._seen
            self._refresh()
        self._questions += 1

    def _refresh(self) -> None:
        asks = self._typical.asks()
        if asks != self._classes.asks:
            self._classes = Classes(asks)
            self._copies = self._classes.copies(self._fleet.room(by_class=True), len(self._fleet.cpu))
            self._known.clear()
        room = dict(zip(asks, self._copies.sum(0).tolist(), strict=True))
        self.demand = self._typical.demand(room.__getitem__, int(self._fleet.free.sum()), 1000)
        self._prices = np.array([pod.price for pod in self.demand.typical], np.int64)

    def _update(self, ask: PodAsk) -> LearnedClass:
        known = self._known.get(ask) or self._known.setdefault(ask, self._unknown())
        rows = np.flatnonzero(known.stale)
        if len(rows):
            known.fits[rows] = self._fleet.fits(ask, rows)
            rows = rows[known.fits[rows]]
            left = after(self._fleet.room(rows), ask)
            known.lost[rows] = self._copies[rows] - self._classes.copies(_by_class(left), len(rows))
            known.left_share[rows], known.left_cpu[rows] = left.share, left.cpu_milli
            known.stale[:] = False
        return known

    def _unknown(self) -> LearnedClass:
        nodes = len(self._fleet.cpu)
        lost = np.zeros((nodes, len(self._classes.asks)), np.int64)
        return LearnedClass(
            np.ones(nodes, bool), np.zeros(nodes, bool), lost, np.zeros(nodes, np.int64), np.zeros(nodes, np.int64)
        )


def _by_class(room: NodeRoom) -> NodeRoom:
    cards = [CardRoom(*(_column(getattr(card, field.name)) for field in fields(CardRoom))) for card in room.cards]
    return NodeRoom(_column(room.cpu_milli), _column(room.memory_mib), cards)


def _column(numbers: Any) -> Array:
    return np.asarray(numbers)[:, None]
