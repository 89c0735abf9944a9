"""Fills a fleet with the pods of a trace, or runs it at a steady load."""

import heapq
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from benchmarks.placement.fleet import FleetArrays
from benchmarks.placement.traces import Trace, size

ARRIVED: Final = 1.3  # load that arrives, as a share of the capacity
WARM_UP: Final = 2.0  # lifetimes before a steady load is measured
MEASURED: Final = 6.0  # lifetimes
CHUNK: Final = 4096


@dataclass(frozen=True, slots=True)
class Filled:
    """Percent of the capacity that is allocated when the arrived load equals the capacity, and at the end."""

    at_capacity: float
    at_end: float


@dataclass(frozen=True, slots=True)
class Steady:
    """Mean percent of the capacity that is allocated, and percent of the offered load that was rejected."""

    allocated: float
    rejected: float


def fill(trace: Trace, fleet: FleetArrays, policy: Any, seed: int) -> Filled:
    """Let pods arrive in random order until 130 % of the capacity has arrived; a pod that fits nowhere is lost."""
    rng = np.random.default_rng(seed)
    arrived, at_capacity = 0, 0.0
    while True:
        for n in rng.choice(len(trace.asks), size=CHUNK, p=trace.weights):
            ask = trace.asks[n]
            arrived += size(ask)
            _arrive(fleet, policy, ask)
            if not at_capacity and arrived >= fleet.capacity:
                at_capacity = 100 * fleet.used / fleet.capacity
            if arrived >= ARRIVED * fleet.capacity:
                return Filled(at_capacity, 100 * fleet.used / fleet.capacity)


def steady(trace: Trace, fleet: FleetArrays, policy: Any, load: float, seed: int) -> Steady:
    """Let pods arrive at random times, with exponential lifetimes of mean 1, such that they ask for `load` of all."""
    rng = np.random.default_rng(seed)
    mean = sum(weight * size(ask) for ask, weight in zip(trace.asks, trace.weights, strict=True))
    gap = mean / (load * fleet.capacity)
    ends: list[tuple[float, int, Any, int, list[int]]] = []
    now = since = area = 0.0
    offered = rejected = count = 0
    while now < WARM_UP + MEASURED:
        now += rng.exponential(gap)
        while ends and ends[0][0] <= now:
            end, _, ask, node, cards = heapq.heappop(ends)
            area, since = area + fleet.used * max(0.0, end - max(since, WARM_UP)), end
            fleet.put(ask, node, cards, -1)
            policy.left(ask, node, cards)
        area, since = area + fleet.used * max(0.0, now - max(since, WARM_UP)), now
        ask = trace.asks[rng.choice(len(trace.asks), p=trace.weights)]
        end = now + rng.exponential(1.0)
        chosen = _arrive(fleet, policy, ask)
        if chosen is not None:
            count += 1
            heapq.heappush(ends, (end, count, ask, *chosen))
        if now > WARM_UP:
            offered += size(ask)
            rejected += 0 if chosen else size(ask)
    return Steady(100 * area / (now - WARM_UP) / fleet.capacity, 100 * rejected / max(1, offered))


def _arrive(fleet: FleetArrays, policy: Any, ask: Any) -> tuple[int, list[int]] | None:
    policy.see(ask)
    chosen: tuple[int, list[int]] | None = policy.choose(ask)
    if chosen is not None:
        fleet.put(ask, *chosen)
        policy.changed(chosen[0])
    return chosen
