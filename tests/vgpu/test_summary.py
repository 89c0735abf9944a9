"""The summary of a node in `kubectl get gpunodes`."""

from dataclasses import replace

from vgpu import summary
from vgpu.device import Card

CARD = Card("GPU-a", 0, "NVIDIA H100", 81559)


def test_the_summary_of_a_node() -> None:
    cards = [
        replace(CARD, held_slices=32),
        replace(CARD, uuid="GPU-b", healthy=False),
        replace(CARD, uuid="GPU-c", model="NVIDIA A30", memory_mib=24576, held_whole=True, held_slices=0),
    ]
    assert summary.summary_of(cards, 256) == {
        "cards": 3,
        "healthy": 2,
        "models": "1 x NVIDIA A30, 2 x NVIDIA H100",
        "memory": "187694 MiB",
        "held": "32 GiB",
    }


def test_a_full_card_shows_no_more_memory_than_it_has() -> None:
    """319 slices of 256 MiB would be 81664 MiB; the last slice is a partial slice."""
    assert summary.summary_of([replace(CARD, held_slices=319)], 256)["held"] == "81559 MiB"


def test_a_node_without_cards_has_a_summary_too() -> None:
    assert summary.summary_of([], 256) == {"cards": 0, "healthy": 0, "models": "", "memory": "0 MiB", "held": "0 MiB"}
