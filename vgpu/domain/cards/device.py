"""Cards and nodes as their device plugins report them, without what is taken of them."""

from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final, Self

from vgpu.domain import slices
from vgpu.domain.identifiers import NO_NODE, CardUuid, NodeName


class CardMode(StrEnum):
    """How an admin lets a card be used (`GPUNode.spec`)."""

    SHARED = "shared"
    EXCLUSIVE = "exclusive"  # whole cards only
    UNKNOWN = "unknown"  # what another version may know; no user can write it

    @classmethod
    def of(cls, name: str) -> Self:
        """Return the mode of this name; UNKNOWN for any other name, because such a card must not be shared."""
        return cls(name) if name in set(cls) else cls(cls.UNKNOWN)


EXCLUSIVE_PROCESS: Final = (
    "its compute mode EXCLUSIVE_PROCESS lets one process use it at a time; nvidia-smi -c DEFAULT on the node lets it "
    "be shared"
)


@dataclass(frozen=True, slots=True)
class Card:
    """One physical GPU.

    Attributes:
        uuid: NVML's UUID, `GPU-...`; the card's identity everywhere.
        index: NVML's index, shown to people.
        model: NVML's product name.
        memory_mib: NVML's total without what the driver reserves, or the machine's without what is kept for the host.
        healthy: whether the device plugin hands the card out; `reason` says why not.
        unhealthy_since: since when it is not, as RFC 3339; empty where it is, or the device plugin has not said.
        numa_node: -1 where unknown.
        nvlink_peers: UUIDs of the cards of this node that a direct NVLink reaches.
        cordoned: an admin wants no new containers on the card.
        cordoned_since: since when, as RFC 3339; empty where it is not cordoned, or the device plugin has not said.
        mode: how an admin lets the card be used.
        held_slices: slices that the kubelet reports as held, whatever the annotations say.
        held_whole: whether the kubelet reports the card as held whole.
        unified: the card has no memory of its own and uses the machine's, such as GB10; `memory_mib` is then a part of
            that.
        exclusive_process: the driver lets one process use the card at a time (`nvidia-smi -c EXCLUSIVE_PROCESS`), so
            that it is given out whole only.
        serves_space: a group in space can be on the card: it is Volta or later, and an MPS supervisor runs on the node.
        counts_on: the node on which the card counts, where that is not the node that reports it: another GPUNode
            reports its UUID too (`ownership`). It is closed here, and part of no total.
    """

    uuid: CardUuid
    index: int
    model: str
    memory_mib: int
    healthy: bool = True
    reason: str = ""
    unhealthy_since: str = ""
    numa_node: int = -1
    nvlink_peers: tuple[CardUuid, ...] = ()
    cordoned: bool = False
    cordoned_since: str = ""
    mode: CardMode = CardMode.SHARED
    held_slices: int = 0
    held_whole: bool = False
    unified: bool = False
    exclusive_process: bool = False
    serves_space: bool = False
    counts_on: NodeName = NO_NODE

    def slices(self, slice_mib: int) -> int:
        """Return the number of slices of the card; the last, partial slice counts as one."""
        return slices.holding(self.memory_mib, slice_mib)


@dataclass(frozen=True, slots=True)
class Node:
    """A node's cards, and the slice size of its device plugin."""

    name: NodeName
    slice_mib: int
    cards: tuple[Card, ...] = field(default=())
    plugin_version: str = ""

    def card_slices(self) -> dict[CardUuid, int]:
        """Return how many slices each card is cut into, by UUID."""
        return {card.uuid: card.slices(self.slice_mib) for card in self.cards}

    def card(self, uuid: CardUuid) -> Card | None:
        """Return the card with this UUID, or None."""
        return next((card for card in self.cards if card.uuid == uuid), None)
