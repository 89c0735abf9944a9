"""The simulated hardware and its objects: the Node, and the GPUNode with its status, as a device plugin writes it."""

import uuid
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import cycle
from typing import Final

import vgpu
from vgpu.domain import names
from vgpu.domain.cards import summary
from vgpu.domain.cards.card_status import card_status
from vgpu.domain.cards.device import Card, Node
from vgpu.domain.cards.share import NO_USAGE, CardState, Usage
from vgpu.domain.identifiers import CardUuid, NodeName
from vgpu.domain.json_types import JsonObject
from vgpu.simulator.api import pods

MODEL: Final = "NVIDIA H100 80GB HBM3"
MODELS: Final = {143_771: "NVIDIA H200", 24_564: "NVIDIA GeForce RTX 4090", 15_360: "Tesla T4"}  # by MiB; others: MODEL
READY: Final = {"type": "Ready", "status": "True", "reason": "KubeletReady"}
_UUIDS: Final = uuid.UUID("6f3c1a52-8a0e-4c39-b6d0-5c7f0f2f9a11")  # a card has the same UUID in every run


def fleet(nodes: int, cards: int, sizes: Sequence[int], slice_mib: int) -> tuple[Node, ...]:
    """Return nodes `node-1`, `node-2`, ... with equal cards each; `sizes` are the cards' MiB, node after node."""
    return tuple(
        _node(NodeName(f"node-{n + 1}"), cards, memory_mib, slice_mib)
        for n, memory_mib in zip(range(nodes), cycle(sizes), strict=False)
    )


def node_object(node: Node) -> JsonObject:
    """Return the Node as its kubelet registers it, before any device plugin."""
    return {
        "metadata": {"name": node.name, "labels": {"kubernetes.io/hostname": node.name}},
        "spec": {},
        "status": {
            "nodeInfo": {"kubeletVersion": "simulated"},
            "conditions": [READY],
            "capacity": {"pods": "110"},
            "allocatable": {"pods": "110"},
        },
    }


def gpunode_object(node: Node, owner_uid: str) -> JsonObject:
    """Return the GPUNode as the device plugin creates it, owned by its Node."""
    owner = {"apiVersion": "v1", "kind": "Node", "name": node.name, "uid": owner_uid}
    return {"metadata": {"name": node.name, "ownerReferences": [owner]}, "spec": {"cards": []}}


def gpunode_status(node: Node, used: Mapping[CardUuid, Usage], cordoned: Mapping[CardUuid, str]) -> JsonObject:
    """Return the GPUNode's status: every card, and what the kubelet reports as held of it.

    `cordoned` has the cards that are cordoned, each with the time since when, as RFC 3339.
    """
    held = (_held(card, used.get(card.uuid, NO_USAGE)) for card in node.cards)
    cards = [replace(card, cordoned=card.uuid in cordoned, cordoned_since=cordoned.get(card.uuid, "")) for card in held]
    return {
        "sliceMiB": node.slice_mib,
        "pluginVersion": vgpu.__version__,
        "summary": summary.summary_of(
            [CardState(card, node.slice_mib, used.get(card.uuid, NO_USAGE)) for card in cards], is_ready=True
        ),
        "cards": [card_status(card, mig_enabled=False) for card in cards],
        "conflicts": [],
    }


def devices(node: Node, used: Mapping[CardUuid, Usage]) -> dict[str, dict[str, str]]:
    """Return the node's capacity and allocatable of slices and cards.

    A card that is held whole offers no slices, and a shared card is not offered whole.
    """
    states = [CardState(card, node.slice_mib, used.get(card.uuid, NO_USAGE)) for card in node.cards]
    free = [state for state in states if state.card.healthy]
    slices = sum(state.total_slices for state in free if not state.is_held_whole)
    cards = sum(state.is_held_whole or state.is_empty for state in free)
    return {
        "capacity": _amounts(sum(state.total_slices for state in states), len(states)),
        "allocatable": _amounts(slices, cards),
    }


def _amounts(slices: int, cards: int) -> dict[str, str]:
    return {names.SLICE: pods.canonical(slices), names.CARD: pods.canonical(cards)}


def _node(name: NodeName, cards: int, memory_mib: int, slice_mib: int) -> Node:
    model = MODELS.get(memory_mib, MODEL)
    made = (Card(_uuid(name, index), index, model, memory_mib, numa_node=index * 2 // cards) for index in range(cards))
    return Node(name, slice_mib, tuple(made), vgpu.__version__)


def _uuid(node: str, index: int) -> CardUuid:
    return CardUuid(f"GPU-{uuid.uuid5(_UUIDS, f'{node}/{index}')}")


def _held(card: Card, used: Usage) -> Card:
    return replace(card, held_slices=0 if used.wholes else used.slices, held_whole=used.wholes > 0)
