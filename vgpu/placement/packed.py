"""How well cards are packed: what is allocated, and what of the rest the pods to come cannot use.

A pod that cannot use what is free waits although there is room: that part of the free cards is fragmented. It is the
measure of FGD (`fgd.stranded`), over the typical pods that the policies learned.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace

from vgpu.placement.costs import fgd
from vgpu.placement.demand import Demand
from vgpu.placement.room import CARD, Ints, NodeRoom


@dataclass(frozen=True, slots=True)
class Packed:
    """Sums over nodes, in thousandths of a card where no unit is named.

    Attributes:
        cards: number of cards that take new shares; those that are closed are in no figure.
        empty: number of cards of which nothing is taken.
        free: what is free; of memory or time of each card, whichever is less.
        stranded: what is free and typical pods cannot use, the mean over these pods by how often they are seen.
    """

    cards: int = 0
    empty: int = 0
    free: int = 0
    stranded: int = 0

    def __add__(self, other: "Packed") -> "Packed":
        return Packed(
            self.cards + other.cards,
            self.empty + other.empty,
            self.free + other.free,
            self.stranded + other.stranded,
        )

    @property
    def allocated_percent(self) -> float:
        """The part of these cards that is not free."""
        return 100 * (1 - self.free / (self.cards * CARD)) if self.cards else 0.0

    @property
    def fragmented_percent(self) -> float:
        """The part of what is free that typical pods cannot use."""
        return 100 * self.stranded / self.free if self.free else 0.0


def of_rooms(
    rooms: Iterable[NodeRoom], demand: Demand, total: Callable[[Ints], int] = int, *, closed: int = 0
) -> Packed:
    """Add up nodes; `total` adds up the nodes of a number where rooms are arrays over nodes.

    `closed` is how many of the cards take no new shares: a room does not tell them from cards that are full.
    """
    found = sum((_of(room, demand, total) for room in rooms), Packed(-closed))
    popularity = sum(typical.popularity for typical in demand.typical if typical.ask.gpus)
    return replace(found, stranded=found.stranded // max(1, popularity))


def _of(room: NodeRoom, demand: Demand, total: Callable[[Ints], int]) -> Packed:
    """Add up a room; what is stranded is still times the popularity."""
    return Packed(
        sum(total((card.total_slices > 0) * 1) for card in room.cards),
        sum(total(card.is_empty * 1) for card in room.cards),
        total(room.share),
        sum(
            typical.popularity * total(fgd.stranded(room, typical.ask))
            for typical in demand.typical
            if typical.ask.gpus
        ),
    )
