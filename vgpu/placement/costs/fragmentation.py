"""The policy `fragmentation`: the node on which a pod takes the least from the pods to come (ADR 56).

The cost of a node has three terms, in billionths of a card:

- room: the pods of each typical class for which the node has room no longer, times the price of the class;
- CPU: cards that are left without CPU, by a smooth hinge around half of the CPU that pods ask for beside a card;
- left: what is free on the node, a little: of nodes that are otherwise equal the fullest.

Nodes whose costs differ by less than a tolerance are equal: the first one in the fixed order is filled first. The
tolerance and the weight of the last term can be set (`weights`).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from vgpu.placement.demand import Demand
from vgpu.placement.question import Question
from vgpu.placement.room import CARD, CardRoom, Ints, NodeRoom, PodAsk, after, fits, least
from vgpu.placement.weights import Weights

MILLI_CARD: Final = 1_000_000  # billionths of a card
_LEFT_ALONE: Final = 1_000_000  # before any pod was seen: above any tolerance, so the fullest node, as binpack
_NO_TIME: Final = 1 << 20


@dataclass(frozen=True, slots=True)
class NodeChange:
    """What a pod changes on a node, as long as the pods to come ask for the same; their prices are not part of it.

    Attributes:
        lost: pods of each typical class for which the node has room no longer, in thousandths.
        share: thousandths of cards that are free before.
        cpu_milli: CPU that is free before.
        left_share: thousandths of cards that are free after.
        left_cpu_milli: CPU that is free after.
    """

    lost: Sequence[Ints]
    share: Ints
    cpu_milli: Ints
    left_share: Ints
    left_cpu_milli: Ints


def cost(room: NodeRoom, question: Question) -> Ints:
    """Return what a pod costs on a node that has room for it."""
    return priced(change(room, question.ask, question.demand.asks), question.demand)


def tolerance(weights: Weights) -> int:
    """Return how far above the least cost a node's cost is equal to it."""
    return weights.tolerance * MILLI_CARD


def change(room: NodeRoom, ask: PodAsk, typical: Sequence[PodAsk]) -> NodeChange:
    """Return what a pod changes on a node."""
    left = after(room, ask)
    lost = [copies(room, frequent) - copies(left, frequent) for frequent in typical]
    return NodeChange(lost, room.share, room.cpu_milli, left.share, left.cpu_milli)


def priced(changed: NodeChange, demand: Demand) -> Ints:
    """Return what a change costs."""
    room = sum(typical.price * lost for typical, lost in zip(demand.typical, changed.lost, strict=True))
    return room + apart(changed, demand)


def apart(changed: NodeChange, demand: Demand) -> Ints:
    """Return what a change costs apart from the room for typical pods."""
    cpu = without_cpu(changed.left_share, changed.left_cpu_milli, demand)
    left = demand.weights.left if demand.typical else _LEFT_ALONE
    return cpu - without_cpu(changed.share, changed.cpu_milli, demand) + left * MILLI_CARD // CARD * changed.share


def copies(room: NodeRoom, ask: PodAsk) -> Ints:
    """Return for how many pods of a class a node has room, in thousandths; 0 where the class asks for no card."""
    if ask.gpus == 0:
        return 0
    return least(by_host(room, ask), by_card(room, ask) if ask.gpus == 1 else by_cards(room, ask))


def by_host(room: NodeRoom, ask: PodAsk) -> Ints:
    """Return for how many pods the CPU and the host memory last, in thousandths."""
    cpu = room.cpu_milli * 1000 // (ask.cpu_milli + (ask.cpu_milli == 0))
    return least(cpu, room.memory_mib * 1000 // (ask.memory_mib + (ask.memory_mib == 0)))


def by_card(room: NodeRoom, ask: PodAsk) -> Ints:
    """Return for how many pods of one card each the cards have room, in thousandths."""
    return 1000 * room.total(lambda card: _on_card(card, ask))


def by_cards(room: NodeRoom, ask: PodAsk) -> Ints:
    """Return for how many pods of several cards each the cards have room, in thousandths.

    A set that is not complete counts by the fourth power of how much of it is there; a card counts for it by the third
    power of its free share.
    """
    sets = 1000 * (room.total(lambda card: fits(card, ask) * 1) // ask.gpus)
    shares = room.total(lambda card: ((card.model & ask.models) > 0) * card.share**3)
    begun = least(shares // CARD**2 // ask.gpus - sets, 1000)
    begun = begun * (begun > 0)
    return sets + begun**4 // 10**9


def without_cpu(share: Ints, cpu_milli: Ints, demand: Demand) -> Ints:
    """Return how much of the free share of a node's cards has no CPU: max(0, short), smooth near 0."""
    if not demand.cpu_per_card:
        return 0
    short = share - least(cpu_milli * 2 * CARD // demand.cpu_per_card, 1 << 24)
    width = CARD // 2 + share * (share > 0) // 4
    near = least(short, width)
    near = near + (-width - near) * (near < -width)
    return MILLI_CARD * ((near + width) ** 2 // (4 * width) + (short - width) * (short > width))


def _on_card(card: CardRoom, ask: PodAsk) -> Ints:
    memory = card.free_slices // (ask.slices + (ask.slices == 0))
    time = (card.free_cores + _NO_TIME * (ask.cores == 0)) // (ask.cores + (ask.cores == 0))
    pods = least(memory, time) * (ask.whole == 0) + card.is_empty * (ask.whole == 1)
    return pods * ((card.model & ask.models) > 0)
