"""Which pods a cluster gets, learned from the pods seen: what `fragmentation` and `fgd` keep room for.

A class of pods is an `PodAsk`. Each pod seen counts for its class, earlier pods less and less, so that the distribution
follows the cluster. A class has a price: what the room for one more of its pods is worth. It is high for pods that are
seen often, and where little such room is left (ADR 56).
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from vgpu.placement.room import CARD, PodAsk
from vgpu.placement.weights import DEFAULTS, Weights

MILLION: Final = 1_000_000
MAX_CLASSES: Final = 512  # classes that are counted; the rarest one makes place for a new one
MAX_TYPICAL: Final = 32  # of them that policies keep room for
MAX_PRICE: Final = 10**9  # a thousand cards: costs stay below 63 bits


@dataclass(frozen=True, slots=True)
class Typical:
    """A class of pods that is often seen.

    Attributes:
        ask: what each pod of the class asks for.
        popularity: pods of the class in a million pods.
        price: what the room for one more such pod is worth, in millionths of a card; 0 where it asks for no card.
    """

    ask: PodAsk
    popularity: int
    price: int = 0


@dataclass(frozen=True, slots=True)
class Demand:
    """The pods to come.

    Attributes:
        typical: the classes that policies keep room for.
        cpu_per_card: CPU that pods ask for beside each card, in thousandths; 0 where it is not known.
        version: another one for each value that differs.
        weights: how `fragmentation` weighs.
    """

    typical: tuple[Typical, ...] = ()
    cpu_per_card: int = 0
    version: int = 0
    weights: Weights = DEFAULTS

    @property
    def asks(self) -> tuple[PodAsk, ...]:
        """What the typical classes ask for."""
        return tuple(typical.ask for typical in self.typical)


EMPTY: Final = Demand()


class TypicalPods:
    """Counts the pods seen."""

    def __init__(self, weights: Weights = DEFAULTS) -> None:
        self._weights = weights
        self._counts: dict[PodAsk, float] = {}
        self._weight = 1.0  # of the next pod: it grows, so that the pods before count less
        self._growth: float = 2 ** (1 / weights.half_life)
        self._version = 0

    def see(self, ask: PodAsk) -> None:
        """Count a new pod."""
        known = self._counts.get(ask)
        if known is None and len(self._counts) >= MAX_CLASSES:
            del self._counts[min(self._counts, key=lambda known_ask: self._counts[known_ask])]
        self._counts[ask] = (known or 0.0) + self._weight
        self._weight *= self._growth
        if self._weight > MILLION:
            self._counts = {known_ask: count / self._weight for known_ask, count in self._counts.items()}
            self._weight = 1.0

    def asks(self) -> tuple[PodAsk, ...]:
        """Return the typical classes: the most popular ones that cover most pods, and those that ask for several cards.

        Their order is fixed as long as the set is the same.
        """
        ranked = sorted(self._counts.items(), key=lambda counted: -counted[1])
        total, covered = sum(self._counts.values()), 0.0
        chosen: list[PodAsk] = []
        for ask, count in ranked:
            if covered < self._weights.covered / 100 * total or ask.gpus > 1:
                chosen.append(ask)
            covered += count
        typical = set(chosen[:MAX_TYPICAL])
        return tuple(ask for ask in self._counts if ask in typical)

    def demand(self, copies: Callable[[PodAsk], int], free: int, slices: int) -> Demand:
        """Return the demand now.

        Args:
            copies: returns for how many pods of a class all nodes together have room, in thousandths.
            free: what is free on all cards, in thousandths of a card.
            slices: of the mean card.
        """
        asks = self.asks()
        counts = [self._counts[ask] for ask in asks]
        room = [copies(ask) / 1000 if ask.gpus else 0.0 for ask in asks]
        prices = _prices(asks, counts, room, free, self._weights.scarcity)
        total = sum(counts) or 1.0
        popularity = [int(count / total * MILLION) for count in counts]
        self._version += 1
        typical = tuple(map(Typical, asks, popularity, prices))
        return Demand(typical, self._cpu_per_card(slices), self._version, self._weights)

    def _cpu_per_card(self, slices: int) -> int:
        cards = sum(count * ask.gpus * (ask.whole or ask.slices / slices) for ask, count in self._counts.items())
        cpu = sum(count * ask.cpu_milli for ask, count in self._counts.items())
        return int(cpu / cards) if cards else 0


def _prices(
    asks: Sequence[PodAsk], counts: Sequence[float], room: Sequence[float], free: int, scarcity: float
) -> list[int]:
    """Return the price of each class: by popularity, cards and scarcity, such that all room is worth what is free.

    `room` is the number of pods of each class for which the cluster has room, `free` in thousandths of a card.
    """
    raw = [count * ask.gpus / (pods + 1) ** scarcity for ask, count, pods in zip(asks, counts, room, strict=True)]
    total = sum(price * pods for price, pods in zip(raw, room, strict=True))
    scale = free * (MILLION // CARD) / total if total else 0.0
    return [int(min(price * scale, MAX_PRICE)) for price in raw]
