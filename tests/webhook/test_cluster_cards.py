"""The cards of the cluster, from watched GPUNodes."""

import json
from typing import Any

from vgpu.domain.cards.device import CardMode
from webhook import cluster_cards


def node(name: str, *cards: dict[str, Any], spec: list[dict[str, Any]] | None = None) -> cluster_cards.GpuNodeCards:
    obj = {"metadata": {"name": name}, "spec": {"cards": spec or []}, "status": {"cards": list(cards)}}
    return cluster_cards.decode(json.dumps(obj))


CARD = {"uuid": "GPU-a", "index": 0, "model": "M", "memoryMiB": 1024, "healthy": True, "numaNode": -1}


def test_cards_follow_their_gpunodes() -> None:
    known = cluster_cards.ClusterCards()
    known.replace([node("n1", CARD), node("n2", CARD | {"uuid": "GPU-b"})], "1")
    assert [card.uuid for card in known.cards()] == ["GPU-a", "GPU-b"]
    known.upsert(node("n1", CARD | {"memoryMiB": 2048}))
    assert {card.memory_mib for card in known.cards()} == {1024, 2048}
    known.delete(node("n2"))
    assert [card.uuid for card in known.cards()] == ["GPU-a"]
    known.replace([], "2")
    assert known.cards() == ()


def test_the_mode_of_the_spec_is_set_on_the_card() -> None:
    found = node("n1", CARD, CARD | {"uuid": "GPU-b"}, spec=[{"uuid": "GPU-b", "mode": "exclusive", "cordoned": True}])
    assert [card.mode for card in found.cards()] == [CardMode.SHARED, CardMode.EXCLUSIVE]


def test_a_card_whose_mode_this_version_does_not_know_is_in_none() -> None:
    found = node("n1", CARD, spec=[{"uuid": CARD["uuid"], "mode": "mps"}])
    assert [card.mode for card in found.cards()] == [CardMode.UNKNOWN]


def test_a_gpunode_without_a_status_has_no_cards() -> None:
    assert cluster_cards.decode(b'{"metadata": {"name": "n1"}}').cards() == ()
