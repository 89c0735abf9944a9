"""Which GPUNode a card counts on, where several report the same UUID: the newest object. Pure.

A card moves with its node's new object: a GPUNode that still lists it is stale.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final

from extender import objects
from extender.objects import GpuNode

DUPLICATE: Final = "DuplicateUUID"


@dataclass(frozen=True, slots=True)
class CardOwners:
    """The owners of all cards.

    Attributes:
        node_by_card: the node that each card counts on, by UUID.
        duplicates: by node, its cards that count on another node, each with that node's name.
    """

    node_by_card: Mapping[str, str] = field(default_factory=dict)
    duplicates: Mapping[str, Mapping[str, str]] = field(default_factory=dict)

    def owns(self, node: str, card: str) -> bool:
        """Whether a card counts on a node."""
        return self.node_by_card.get(card) == node


def assign(gpunodes: Iterable[GpuNode]) -> CardOwners:
    """Give each card to the newest GPUNode that reports it; of equally old ones, to the last by name."""
    by_age = sorted(gpunodes, key=lambda each: (objects.age_key(each.created), each.node.name))
    claims = [(card.uuid, gpunode.node.name) for gpunode in by_age for card in gpunode.node.cards]
    owners = dict(claims)
    duplicates: dict[str, dict[str, str]] = {}
    for card, node in claims:
        if owners[card] != node:
            duplicates.setdefault(node, {})[card] = owners[card]
    return CardOwners(owners, duplicates)


def claims_differ(before: GpuNode | None, after: GpuNode) -> bool:
    """Whether a GPUNode's change may change the owner of a card."""
    return before is None or _claims(before) != _claims(after)


def message(duplicates: Mapping[str, str]) -> str:
    """Say which cards of a GPUNode count on which other nodes."""
    cards = ", ".join(f"{card} on {node}" for card, node in sorted(duplicates.items()))
    return f"cards that a newer GPUNode reports too count on that node and not on this one: {cards}"


def _claims(gpunode: GpuNode) -> tuple[str, frozenset[str]]:
    return gpunode.created, frozenset(card.uuid for card in gpunode.node.cards)
