"""What is taken of a card and of a node, and the arithmetic of it."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Final, Self

from vgpu.domain.cards import links
from vgpu.domain.cards.device import Card, Node
from vgpu.domain.cards.links import LinkWeights
from vgpu.domain.identifiers import CardUuid, NodeName
from vgpu.domain.quantity import FULL_CORES


@dataclass(frozen=True, slots=True)
class Usage:
    """What containers take of one card.

    Attributes:
        slices: memory slices, which the kubelet counts.
        memory_mib: exact MiB, which the limiter enforces; the last slice of a card may be a partial one.
        cores: percent of the card's time that is guaranteed.
        shares: number of containers with a share of the card.
        wholes: number of containers that hold the card whole.
    """

    slices: int = 0
    memory_mib: int = 0
    cores: int = 0
    shares: int = 0
    wholes: int = 0

    def __add__(self, other: "Usage") -> "Usage":
        return Usage(
            self.slices + other.slices,
            self.memory_mib + other.memory_mib,
            self.cores + other.cores,
            self.shares + other.shares,
            self.wholes + other.wholes,
        )

    def __sub__(self, other: "Usage") -> "Usage":
        return Usage(
            self.slices - other.slices,
            self.memory_mib - other.memory_mib,
            self.cores - other.cores,
            self.shares - other.shares,
            self.wholes - other.wholes,
        )

    def larger(self, other: "Usage") -> "Usage":
        """Return the larger of each figure: what two phases need, if the second begins after the first has ended."""
        return Usage(
            max(self.slices, other.slices),
            max(self.memory_mib, other.memory_mib),
            max(self.cores, other.cores),
            max(self.shares, other.shares),
            max(self.wholes, other.wholes),
        )


NO_USAGE = Usage()


@dataclass(frozen=True, slots=True)
class CardState:
    """A card, its slice size, and what is taken of it."""

    card: Card
    slice_mib: int
    usage: Usage = NO_USAGE

    @property
    def total_slices(self) -> int:
        """Number of slices of the card."""
        return self.card.slices(self.slice_mib)

    @property
    def taken_slices(self) -> int:
        """Slices that are taken: the larger of what the pods' assignments and what the kubelet say."""
        if self.is_held_whole:
            return self.total_slices
        return max(self.usage.slices, self.card.held_slices)

    @property
    def free_slices(self) -> int:
        """Slices that are not taken; never negative."""
        return max(0, self.total_slices - self.taken_slices)

    @property
    def free_mib(self) -> int:
        """MiB that another share can have; never negative."""
        if self.is_held_whole:
            return 0
        return max(0, min(self.card.memory_mib - self.usage.memory_mib, self.free_slices * self.slice_mib))

    @property
    def free_cores(self) -> int:
        """Percent of the card's time that is not guaranteed to any container; never negative."""
        return 0 if self.is_held_whole else max(0, FULL_CORES - self.usage.cores)

    @property
    def is_held_whole(self) -> bool:
        """Whether a container holds the card whole."""
        return self.usage.wholes > 0 or self.card.held_whole

    @property
    def is_empty(self) -> bool:
        """Whether nothing of the card is taken."""
        return self.taken_slices == 0 and self.usage.shares == 0 and self.usage.wholes == 0

    def with_usage(self, more: Usage) -> "CardState":
        """Return the state with more taken, which the kubelet does not report as held yet."""
        held = self.card.held_slices
        card = replace(self.card, held_slices=held + more.slices) if held else self.card
        return CardState(card, self.slice_mib, self.usage + more)


PLENTY: Final = 1 << 40  # thousandths of CPU, or MiB: never what a node lacks


@dataclass(frozen=True, slots=True)
class HostRoom:
    """What pods have not requested of a node: CPU in thousandths, and memory in MiB; plenty where it is not known."""

    cpu_milli: int = PLENTY
    memory_mib: int = PLENTY


UNKNOWN_HOST: Final = HostRoom()


@dataclass(frozen=True, slots=True)
class NodeState:
    """A node's cards with what is taken of them: the input of placement.

    `devices` is what the kubelet counts for the pods on the node, by resource. `host` ranks nodes; kube-scheduler
    checks that a pod's CPU and memory fit. `links` are the cluster's weights of connections between cards. `jobs` are
    the cards of each job that has shares of several of them.
    """

    name: NodeName
    slice_mib: int
    cards: tuple[CardState, ...]
    devices: Mapping[str, int] = field(default_factory=dict)
    host: HostRoom = UNKNOWN_HOST
    links: LinkWeights = links.DEFAULTS
    jobs: tuple[frozenset[CardUuid], ...] = ()

    @classmethod
    def of(cls, node: Node, taken: Mapping[CardUuid, Usage], devices: Mapping[str, int]) -> Self:
        """Return the state of a node whose cards have these usages, by UUID."""
        cards = (CardState(card, node.slice_mib, taken.get(card.uuid, NO_USAGE)) for card in node.cards)
        return cls(node.name, node.slice_mib, tuple(cards), devices)

    @property
    def card_slices(self) -> dict[CardUuid, int]:
        """How many slices each card is cut into, by UUID."""
        return {state.card.uuid: state.total_slices for state in self.cards}

    @property
    def free_slices(self) -> int:
        """Free slices over all cards."""
        return sum(card.free_slices for card in self.cards)
