"""The nodes of a simulation as arrays: what is free, and the views that the policies' cost functions calculate with."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from benchmarks.placement.traces import TraceNode, size
from vgpu.domain.quantity import FULL_CORES
from vgpu.placement import rank
from vgpu.placement.room import CARD, CardRoom, NodeRoom, PodAsk

Array = Any  # of int64 or bool
ALL_ROWS = slice(None)


class FleetArrays:
    """What is free on each node. A card has 1,000 slices, so that a slice is a thousandth."""

    def __init__(self, machines: Sequence[TraceNode]) -> None:
        shape = len(machines), max(machine.cards for machine in machines)
        self.free, self.total, self.cores, self.model = (np.zeros(shape, np.int64) for _ in range(4))
        for row, machine in enumerate(machines):
            self.free[row, : machine.cards] = self.total[row, : machine.cards] = CARD
            self.cores[row, : machine.cards] = FULL_CORES
            self.model[row, : machine.cards] = machine.model
        self.cpu = np.array([machine.cpu_milli for machine in machines], np.int64)
        self.memory = np.array([machine.memory_mib for machine in machines], np.int64)
        order = [int.from_bytes(rank.fixed_order(machine.name)) for machine in machines]
        self.order = np.argsort(np.argsort(np.array(order, np.uint64)))
        self.capacity = int(self.total.sum())
        self.used = 0

    def room(self, rows: Any = ALL_ROWS, *, by_class: bool = False) -> NodeRoom:
        """Return what is free on some nodes; with `by_class` as columns, beside rows that are classes of pods."""
        place = (rows, None) if by_class else rows
        cards = [
            CardRoom(*(amounts[:, card][place] for amounts in (self.free, self.total, self.cores, self.model)))
            for card in range(self.free.shape[1])
        ]
        return NodeRoom(self.cpu[place], self.memory[place], cards)

    def card_fits(self, ask: PodAsk, rows: Any = ALL_ROWS) -> Array:
        """Return which cards of some nodes have room for a pod's share."""
        return (self.free[rows] >= (CARD if ask.whole else ask.slices)) & ((self.model[rows] & ask.models) > 0)

    def fits(self, ask: PodAsk, rows: Any = ALL_ROWS) -> Array:
        """Return which of some nodes have room for a pod."""
        has_host = (self.cpu[rows] >= ask.cpu_milli) & (self.memory[rows] >= ask.memory_mib)
        return has_host & (self.card_fits(ask, rows).sum(1) >= ask.gpus) if ask.gpus else has_host

    def put(self, ask: PodAsk, node: int, cards: Sequence[int], sign: int = 1) -> None:
        """Place a pod, or with `sign` -1 remove it."""
        self.cpu[node] -= sign * ask.cpu_milli
        self.memory[node] -= sign * ask.memory_mib
        for card in cards:
            self.free[node, card] -= sign * (CARD if ask.whole else ask.slices)
            self.cores[node, card] -= sign * FULL_CORES * ask.whole
        self.used += sign * size(ask)

    def first(self, fitting: Array, costs: Array, tolerance: int = 0) -> int | None:
        """Return the node that the tie rule of `rank.by_cost` takes; None where none fits."""
        if not fitting.any():
            return None
        costs = np.where(fitting, costs, np.iinfo(np.int64).max // 2)
        equal = np.flatnonzero(costs <= costs.min() + tolerance)
        return int(equal[np.argmin(self.order[equal])])

    def cards(self, ask: PodAsk, node: int, key: Any = None) -> list[int]:
        """Return the cards of a node for a pod: the tightest, or the smallest by a key of what is free."""
        fitting = np.flatnonzero(self.card_fits(ask, slice(node, node + 1))[0])
        free = self.free[node, fitting]
        order = np.argsort(free if key is None else key(free), kind="stable")
        return [int(card) for card in fitting[order[: ask.gpus]]]
