"""What is free on nodes, in numbers that cost functions calculate with.

A cost function uses operators only, so that each number here may be an int, for one node, or an array of int64 over
many nodes: the operators of both give equal results. A sum over the cards of a node is `NodeRoom.total`.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, TypeAlias

from vgpu.domain.asks.request import PodRequest
from vgpu.domain.cards.device import Card, CardMode
from vgpu.domain.cards.share import CardState, NodeState
from vgpu.domain.quantity import FULL_CORES
from vgpu.placement.models import Models

Ints: TypeAlias = Any  # an int, or an array of int64 over nodes

CARD: Final = 1000  # thousandths of a card
NEVER: Final = 1 << 40  # larger than the free slices of any card
_NO_CARD: Final = 1 << 50  # larger than NEVER for each card of a pod: padding of arrays comes after every card


@dataclass(frozen=True, slots=True)
class CardRoom:
    """What is free on one card.

    Attributes:
        free_slices: memory slices; 0 where the card takes no new pods.
        total_slices: of the card; 0 where the node has no such card.
        free_cores: percent of the card's time; 0 where the card takes no new pods.
        model: the bit of the card's model (`models.Models`).
    """

    free_slices: Ints
    total_slices: Ints
    free_cores: Ints
    model: Ints

    @property
    def share(self) -> Ints:
        """Free thousandths of the card: of its memory or of its time, whichever is less."""
        memory = self.free_slices * CARD // (self.total_slices + (self.total_slices == 0))
        return least(memory, self.free_cores * CARD // FULL_CORES)

    @property
    def is_empty(self) -> Ints:
        """Whether nothing of the card is taken."""
        is_free = (self.free_slices == self.total_slices) & (self.free_cores == FULL_CORES)
        return is_free & (self.total_slices > 0)


@dataclass(frozen=True, slots=True)
class PodAsk:
    """What a pod asks of a node; equal pods are one class.

    Attributes:
        gpus: number of cards.
        slices: memory slices of each card; 0 for whole cards.
        cores: percent of each card's time; 0 for whole cards.
        whole: 1 for whole cards, else 0.
        cpu_milli: CPU in thousandths.
        memory_mib: host memory in MiB.
        models: the bits of the models that the pod accepts.
    """

    gpus: Ints
    slices: Ints
    cores: Ints
    whole: Ints
    cpu_milli: Ints
    memory_mib: Ints
    models: Ints


@dataclass(frozen=True, slots=True)
class NodeRoom:
    """What is free on one node: CPU in thousandths, host memory in MiB, and cards."""

    cpu_milli: Ints
    memory_mib: Ints
    cards: Sequence[CardRoom]

    @property
    def share(self) -> Ints:
        """Free thousandths of cards, over all cards."""
        return self.total(lambda card: card.share)

    def total(self, number: Callable[[CardRoom], Ints]) -> Ints:
        """Return the sum of a number over all cards."""
        return sum(number(card) for card in self.cards)

    def without_empty(self, ask: PodAsk) -> list[CardRoom]:
        """Return the cards without the first ones that a pod of whole cards can have."""
        cards: list[CardRoom] = []
        count: Ints = 0
        for card in self.cards:
            taken = fits(card, ask) & (count < ask.gpus)
            count = count + taken
            cards.append(without(card, ask, taken))
        return cards

    def without_tightest(self, ask: PodAsk) -> list[CardRoom]:
        """Return the cards without a pod's shares of the tightest ones that fit, of equal ones the first."""
        cards = list(self.cards)
        free = [tightness(card, ask) for card in cards]
        for _ in range(ask.gpus):
            tightest, is_found = smallest(free), 0
            for n, card in enumerate(cards):
                taken = (free[n] == tightest) & (is_found == 0)
                is_found = is_found | taken
                free[n] = free[n] + NEVER * taken
                cards[n] = without(card, ask, taken)
        return cards


def room_of(state: NodeState, models: Models) -> NodeRoom:
    """Return what is free on a node."""
    cards = tuple(card_room(card, models) for card in state.cards)
    return NodeRoom(state.host.cpu_milli, state.host.memory_mib, cards)


def card_room(state: CardState, models: Models) -> CardRoom:
    """Return what is free on a card for pods."""
    slices, cores = (state.free_slices, state.free_cores) if takes_shares(state.card) else (0, 0)
    return CardRoom(slices, state.total_slices, cores, models.bit(state.card.model))


def takes_shares(card: Card) -> bool:
    """Whether a card takes new shares, where it has room."""
    return card.healthy and not card.cordoned and card.mode is CardMode.SHARED


def closed_cards(state: NodeState) -> int:
    """Return how many cards of a node take no new shares."""
    return sum(not takes_shares(card.card) for card in state.cards)


def ask_of(request: PodRequest | None, cpu_milli: int, memory_mib: int, slice_mib: int, models: Models) -> PodAsk:
    """Return what a pod asks of a node; of several containers with cards, the one with the largest share counts."""
    if request is None:
        return PodAsk(0, 0, 0, 0, cpu_milli, memory_mib, 0)
    largest = max(
        request.choosers, key=lambda chooser: (chooser.whole, chooser.gpus * request.slices(chooser, slice_mib))
    )
    slices, cores = (0, 0) if largest.whole else (request.slices(largest, slice_mib), request.counted_cores(largest))
    accepted = models.accepted(request.options.selector)
    return PodAsk(largest.gpus, slices, cores, int(largest.whole), cpu_milli, memory_mib, accepted)


def least(one: Ints, other: Ints) -> Ints:
    """Return the smaller number."""
    return one + (other - one) * (other < one)


def fits(card: CardRoom, ask: PodAsk) -> Ints:
    """Whether a card has room for a pod's share of it."""
    has_share = (card.free_slices >= ask.slices) & (card.free_cores >= ask.cores) & (ask.whole == 0)
    return (has_share | (card.is_empty & (ask.whole == 1))) & ((card.model & ask.models) > 0)


def after(room: NodeRoom, ask: PodAsk) -> NodeRoom:
    """Return what is left on a node that has room for a pod, when the pod has the tightest cards that fit."""
    cards = room.without_empty(ask) if ask.whole else room.without_tightest(ask)
    return replace(
        room, cpu_milli=room.cpu_milli - ask.cpu_milli, memory_mib=room.memory_mib - ask.memory_mib, cards=cards
    )


def without(card: CardRoom, ask: PodAsk, taken: Ints) -> CardRoom:
    """Return a card without a pod's share of it, where `taken` is 1; unchanged where it is 0."""
    slices, cores = (card.free_slices, card.free_cores) if ask.whole else (ask.slices, ask.cores)
    left_slices, left_cores = card.free_slices - taken * slices, card.free_cores - taken * cores
    return replace(card, free_slices=left_slices, free_cores=left_cores)


def smallest(numbers: Sequence[Ints]) -> Ints:
    """Return the smallest of some numbers."""
    found = numbers[0]
    for number in numbers[1:]:
        found = least(found, number)
    return found


def tightness(card: CardRoom, ask: PodAsk) -> Ints:
    """Return the free slices of a card that has room for a pod's share, a very large number for other cards."""
    return card.free_slices + NEVER * (1 - fits(card, ask)) + _NO_CARD * (card.total_slices == 0)
