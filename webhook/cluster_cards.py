"""The cluster's cards, from the watch of the GPUNodes: a percentage of memory needs their sizes."""

from typing import Any

import msgspec

from vgpu.domain.cards.device import Card, CardMode
from vgpu.domain.identifiers import CardUuid


class _CardSpec(msgspec.Struct):
    uuid: CardUuid
    mode: str = CardMode.SHARED


class _GpuNodeSpec(msgspec.Struct):
    cards: list[_CardSpec] = []


class _CardStatus(msgspec.Struct):
    uuid: CardUuid
    index: int = 0
    model: str = ""
    memory_mib: int = msgspec.field(name="memoryMiB", default=0)


class _GpuNodeStatus(msgspec.Struct):
    cards: list[_CardStatus] = []


class _GpuNodeMetadata(msgspec.Struct):
    name: str


class GpuNodeCards(msgspec.Struct):
    """The part of a GPUNode that says which cards there are and how they may be used."""

    metadata: _GpuNodeMetadata
    spec: _GpuNodeSpec = msgspec.field(default_factory=_GpuNodeSpec)
    status: _GpuNodeStatus = msgspec.field(default_factory=_GpuNodeStatus)

    def cards(self) -> tuple[Card, ...]:
        """Return the node's cards."""
        modes = {wish.uuid: CardMode.of(wish.mode) for wish in self.spec.cards}
        return tuple(
            Card(seen.uuid, seen.index, seen.model, seen.memory_mib, mode=modes.get(seen.uuid, CardMode.SHARED))
            for seen in self.status.cards
        )


decode = msgspec.json.Decoder(GpuNodeCards).decode


class ClusterCards:
    """The cards of all nodes; a reflector's handler."""

    def __init__(self) -> None:
        self._nodes: dict[str, tuple[Card, ...]] = {}

    def cards(self) -> tuple[Card, ...]:
        """Return every card of the cluster."""
        return tuple(card for cards in self._nodes.values() for card in cards)

    def replace(self, objects: list[Any], version: str) -> None:  # noqa: ARG002 - the reflector's protocol
        """Take all GPUNodes that exist now."""
        self._nodes = {node.metadata.name: node.cards() for node in objects}

    def upsert(self, obj: GpuNodeCards) -> None:
        """Take a GPUNode that is new or changed."""
        self._nodes[obj.metadata.name] = obj.cards()

    def delete(self, obj: GpuNodeCards) -> None:
        """Take a GPUNode's deletion."""
        self._nodes.pop(obj.metadata.name, None)
