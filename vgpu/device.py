"""Cards and nodes as the inventory knows them, before anybody uses them."""

from dataclasses import dataclass, field
from enum import StrEnum


class CardMode(StrEnum):
    """What an admin lets a card be used for (`GPUNode.spec`)."""

    SHARED = "shared"
    EXCLUSIVE = "exclusive"  # whole cards only
    MPS = "mps"  # refused until it is built


@dataclass(frozen=True, slots=True)
class Card:
    """One physical GPU.

    Attributes:
        uuid: NVML's UUID, `GPU-...`; the card's identity everywhere.
        index: NVML's index, for people only.
        model: NVML's product name.
        memory_mib: NVML's total less what the driver reserves.
        healthy: whether the device plugin would hand it out; `reason` says why not.
        numa_node: -1 where unknown.
        nvlink_peers: UUIDs of the cards of this node that a direct NVLink reaches.
        cordoned: an admin wants no new tenants.
        mode: what an admin lets it be used for.
        held_slices: slices that the kubelet says are held, whatever the annotations say.
        held_whole: the kubelet says that the card is held as a whole.
    """

    uuid: str
    index: int
    model: str
    memory_mib: int
    healthy: bool = True
    reason: str = ""
    numa_node: int = -1
    nvlink_peers: tuple[str, ...] = ()
    cordoned: bool = False
    mode: CardMode = CardMode.SHARED
    held_slices: int = 0
    held_whole: bool = False

    def slices(self, slice_mib: int) -> int:
        """Slices the card is cut into; the last, partial one counts as one."""
        return -(-self.memory_mib // slice_mib)


@dataclass(frozen=True, slots=True)
class Node:
    """A node's cards, and the slice size that its device plugin cuts them by."""

    name: str
    slice_mib: int
    cards: tuple[Card, ...] = field(default=())
    plugin_version: str = ""

    def card_slices(self) -> dict[str, int]:
        """Return how many slices each card is cut into, by UUID."""
        return {card.uuid: card.slices(self.slice_mib) for card in self.cards}

    def card(self, uuid: str) -> Card | None:
        """Return the card with this UUID, or None."""
        return next((card for card in self.cards if card.uuid == uuid), None)
