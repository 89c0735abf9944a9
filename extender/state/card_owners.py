"""Which GPUNode a card counts on, where several report the same UUID: the newest object.

A card moves with its node's new object: a GPUNode that still lists it is stale. Of equally old objects the last by name
counts. A change of one GPUNode costs what its own cards cost, whatever the size of the cluster.
"""

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Final

from extender.state import objects
from extender.state.objects import GpuNode
from vgpu.domain.identifiers import NO_NODE, CardUuid, NodeName

DUPLICATE: Final = "DuplicateUUID"

_Age = tuple[datetime, str]


class CardOwners:
    """The owners of all cards."""

    def __init__(self) -> None:
        self._claims: dict[CardUuid, dict[NodeName, _Age]] = {}  # by card and node
        self._cards: dict[NodeName, frozenset[CardUuid]] = {}  # by node
        self._owners: dict[CardUuid, NodeName] = {}  # by card
        self._contested: set[CardUuid] = set()  # cards that several GPUNodes report

    def put(self, gpunode: GpuNode) -> set[NodeName]:
        """Take a GPUNode that is new or changed; return the nodes where a card begins or ceases to count."""
        name = gpunode.node.name
        age = objects.age_key(gpunode.created), name
        cards = frozenset(card.uuid for card in gpunode.node.cards)
        gone = self._cards.get(name, frozenset()) - cards
        for card in cards:
            self._claims.setdefault(card, {})[name] = age
        for card in gone:
            self._withdraw(card, name)
        self._cards[name] = cards
        return self._decide(cards | gone)

    def remove(self, name: NodeName) -> set[NodeName]:
        """Take a GPUNode's deletion; return the nodes where a card begins or ceases to count."""
        cards = self._cards.pop(name, frozenset())
        for card in cards:
            self._withdraw(card, name)
        return self._decide(cards)

    def owns(self, node: NodeName, card: CardUuid) -> bool:
        """Whether a card counts on a node."""
        return self._owners.get(card) == node

    @property
    def are_contested(self) -> bool:
        """Whether any card is reported by several GPUNodes; else each card counts on the node that reports it."""
        return bool(self._contested)

    def nodes_with(self, cards: Iterable[CardUuid]) -> set[NodeName]:
        """Return the nodes whose GPUNodes report any of these cards."""
        return {node for card in cards for node in self._claims.get(card, ())}

    @property
    def duplicates(self) -> Mapping[NodeName, Mapping[CardUuid, NodeName]]:
        """By node, its cards that count on another node, each with that node's name."""
        found: dict[NodeName, dict[CardUuid, NodeName]] = {}
        for card in sorted(self._contested):
            for node in self._claims[card].keys() - {self._owners[card]}:
                found.setdefault(node, {})[card] = self._owners[card]
        return found

    def _withdraw(self, card: CardUuid, node: NodeName) -> None:
        del self._claims[card][node]
        if not self._claims[card]:
            del self._claims[card]

    def _decide(self, cards: Iterable[CardUuid]) -> set[NodeName]:
        changed: set[NodeName] = set()
        for card in cards:
            claims = self._claims.get(card, {})
            (self._contested.add if len(claims) > 1 else self._contested.discard)(card)
            before, after = self._owners.pop(card, NO_NODE), max(claims, key=claims.__getitem__, default=NO_NODE)
            if after:
                self._owners[card] = after
            if before != after:
                changed |= {before, after}
        return changed - {NO_NODE}


def message(duplicates: Mapping[CardUuid, NodeName]) -> str:
    """Say which cards of a GPUNode count on which other nodes."""
    cards = ", ".join(f"{card} on {node}" for card, node in sorted(duplicates.items()))
    return f"cards that a newer GPUNode reports too count on that node and not on this one: {cards}"
