"""What `fragmentation` is compared with."""

from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np

from benchmarks.placement.fleet import Array, FleetArrays
from benchmarks.placement.learned import Classes, Fragmentation
from benchmarks.placement.traces import Trace
from vgpu.placement.costs import power
from vgpu.placement.question import Question
from vgpu.placement.room import CARD, NodeRoom, PodAsk, after

Choice = tuple[int, list[int]] | None
COVERED: Final = 0.95


class Baseline:
    """A policy without memory: subclasses choose."""

    def __init__(self, fleet: FleetArrays) -> None:
        self.fleet = fleet

    def see(self, ask: PodAsk) -> None:
        """Count a pod that arrives."""

    def changed(self, node: int) -> None:
        """Take a node on which a pod was placed or removed."""

    def left(self, ask: PodAsk, node: int, cards: Sequence[int]) -> None:  # noqa: ARG002 - for policies that keep pods
        """Take a pod that ended."""
        self.changed(node)

    def choose(self, ask: PodAsk) -> Choice:
        """Return the node and the cards for a pod; None where no node has room."""
        raise NotImplementedError


class Random(Baseline):
    """Any node and any cards that fit."""

    def __init__(self, fleet: FleetArrays, seed: int) -> None:
        super().__init__(fleet)
        self._rng = np.random.default_rng(seed)

    def choose(self, ask: PodAsk) -> Choice:
        """Choose."""
        fitting = np.flatnonzero(self.fleet.fits(ask))
        if not len(fitting):
            return None
        node = int(self._rng.choice(fitting))
        return node, self.fleet.cards(ask, node, lambda free: self._rng.random(len(free))) if ask.gpus else []


class ByCost(Baseline):
    """The node with the least cost, and the cards with the smallest keys."""

    def __init__(
        self, fleet: FleetArrays, cost: Callable[[FleetArrays, PodAsk], Array], key: Callable[[Array], Array]
    ) -> None:
        super().__init__(fleet)
        self._cost = cost
        self._key = key

    def choose(self, ask: PodAsk) -> Choice:
        """Choose."""
        node = self.fleet.first(self.fleet.fits(ask), self._cost(self.fleet, ask))
        return None if node is None else (node, self.fleet.cards(ask, node, self._key) if ask.gpus else [])


class Fgd(Baseline):
    """FGD as its authors published it: scores of 0 to 100, rounded down; equal nodes by a fixed order.

    F_n(m): Weng et al., USENIX ATC 2023, section 3. It knows the true popularity of the classes. A card is chosen
    by its own score. https://github.com/hkust-adsl/kubernetes-scheduler-simulator, `fgd_score.go`
    """

    def __init__(self, fleet: FleetArrays, trace: Trace) -> None:
        super().__init__(fleet)
        order = np.argsort(-trace.weights)
        typical = order[: int(np.searchsorted(np.cumsum(trace.weights[order]), COVERED)) + 1]
        self._classes = Classes([trace.asks[n] for n in typical])
        self._ask = self._classes.columns(range(len(typical)))
        self._popularity = trace.weights[typical] / trace.weights[typical].sum()
        self._known: dict[PodAsk, tuple[Array, Array, Array, Array]] = {}

    def changed(self, node: int) -> None:
        """Take a node on which a pod was placed or removed."""
        for stale, *_ in self._known.values():
            stale[node] = True

    def choose(self, ask: PodAsk) -> Choice:
        """Choose."""
        nodes = len(self.fleet.cpu)
        empty = np.ones(nodes, bool), np.zeros(nodes, bool), np.zeros(nodes, np.int64), np.zeros(nodes, np.int64)
        stale, fitting, scores, cards = self._known.setdefault(ask, empty)
        rows = np.flatnonzero(stale)
        if len(rows):
            fitting[rows] = self.fleet.fits(ask, rows)
            rows = rows[fitting[rows]]
            scores[rows], cards[rows] = self._scores(ask, rows) if len(rows) else (0, 0)
            stale[:] = False
        node = self.fleet.first(fitting, -scores)
        if node is None or not ask.gpus:
            return None if node is None else (node, [])
        is_share = ask.gpus == 1 and not ask.whole
        return node, [int(cards[node])] if is_share else self.fleet.cards(ask, node)

    def _scores(self, ask: PodAsk, rows: Array) -> tuple[Array, Array]:
        room = self.fleet.room(rows)
        before, cpu, memory = self._state(room), room.cpu_milli - ask.cpu_milli, room.memory_mib - ask.memory_mib
        base = self._fragmentation(before, room.cpu_milli, room.memory_mib)
        if ask.gpus != 1 or ask.whole:
            return score(self._fragmentation(self._state(after(room, ask)), cpu, memory) - base), np.zeros(
                len(rows), int
            )
        best, chosen = np.full(len(rows), -1), np.zeros(len(rows), int)
        fitting = self.fleet.card_fits(ask, rows)
        for card in range(fitting.shape[1]):
            found = score(self._fragmentation(self._without(before, card, ask), cpu, memory) - base)
            better = fitting[:, card] & (found > best)
            best[better], chosen[better] = found[better], card
        return best, chosen

    def _state(self, room: NodeRoom) -> tuple[Array, Array, Array, Array, Array]:
        """Return sums over a node's cards: free, and for each class cards that fit and free of cards that do not."""
        free = np.stack([np.broadcast_to(card.free_slices, len(room.cpu_milli)) for card in room.cards], 1)
        model = np.stack([card.model for card in room.cards], 1)
        fits = self._fits(free[:, :, None], model[:, :, None])
        return free.sum(1), fits.sum(1), (free[:, :, None] * ~fits).sum(1), free, model

    def _without(self, state: tuple[Array, Array, Array, Array, Array], card: int, ask: PodAsk) -> tuple[Array, ...]:
        total, count, unfit, free, model = state
        old, of_model = free[:, card, None], model[:, card, None]
        new = old - ask.slices
        had, has = self._fits(old, of_model), self._fits(new, of_model)
        return total - ask.slices, count - had + has, unfit - old * ~had + new * ~has

    def _fits(self, free: Array, model: Array) -> Array:
        ask = self._ask
        need = np.where(ask.whole == 1, CARD, ask.slices)
        return (free >= need) & ((model & ask.models) > 0)

    def _fragmentation(self, state: tuple[Array, ...], cpu: Array, memory: Array) -> Array:
        """Return the expected fragmentation of nodes, in thousandths of a card."""
        total, count, unfit, *_ = state
        ask = self._ask
        runs = (
            (cpu[:, None] >= ask.cpu_milli) & (memory[:, None] >= ask.memory_mib) & (count >= ask.gpus) & (ask.gpus > 0)
        )
        return np.where(runs, unfit, total[:, None]) @ self._popularity


def score(growth: Array) -> Array:
    """Return FGD's score of a growth of the fragmentation in thousandths of a card."""
    return (100 / (1 + np.exp(growth / CARD))).astype(int)


def best_fit(fleet: FleetArrays, ask: PodAsk) -> Array:
    """Return what is left of CPU and cards, as shares of the largest node's, in hundredths (`best_fit_score.go`)."""
    cpu = (fleet.cpu - ask.cpu_milli) / fleet.cpu.max(initial=1)
    return (50 * (cpu + fleet.free.sum(1) / fleet.total.sum(1).max())).astype(int)


def _free(fleet: FleetArrays, ask: PodAsk) -> Array:  # noqa: ARG001 - a cost
    return fleet.free.sum(1)


def _power(fleet: FleetArrays, ask: PodAsk) -> Array:
    return power.cost(fleet.room(), Question(ask))


def _emptiest(free: Array) -> Array:
    return -free


def _tightest(free: Array) -> Array:
    return free


def _in_order(free: Array) -> Array:
    return np.arange(len(free))


POLICIES: Final[dict[str, Callable[[FleetArrays, Trace, int], Any]]] = {
    "fragmentation": lambda fleet, _trace, _seed: Fragmentation(fleet),
    "fgd": lambda fleet, trace, _seed: Fgd(fleet, trace),
    "binpack": lambda fleet, _trace, _seed: ByCost(fleet, _free, _tightest),
    "best-fit": lambda fleet, _trace, _seed: ByCost(fleet, best_fit, _tightest),
    "first-fit": lambda fleet, _trace, _seed: ByCost(fleet, lambda f, _: f.cpu * 0, _in_order),
    "spread": lambda fleet, _trace, _seed: ByCost(fleet, lambda f, a: -_free(f, a), _emptiest),
    "random": lambda fleet, _trace, seed: Random(fleet, seed),
    "power": lambda fleet, _trace, _seed: ByCost(fleet, _power, lambda free: free + (free == CARD) * 2 * CARD),
}


def names() -> Sequence[str]:
    """Return the names of all policies."""
    return tuple(POLICIES)
