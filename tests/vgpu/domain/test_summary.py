"""The summary of a node in `kubectl get gpunodes`."""

from dataclasses import replace

from vgpu.domain.cards import summary
from vgpu.domain.cards.device import Card
from vgpu.domain.cards.share import CardState, Usage
from vgpu.domain.identifiers import CardUuid

CARD = Card(CardUuid("GPU-a"), 0, "NVIDIA H100", 81559)


def states(*cards: Card) -> list[CardState]:
    return [CardState(card, 256) for card in cards]


def test_the_summary_of_a_node() -> None:
    found = states(
        replace(CARD, uuid=CardUuid("GPU-b"), healthy=False),
        replace(CARD, uuid=CardUuid("GPU-c"), model="NVIDIA A30", memory_mib=24576, held_whole=True, held_slices=0),
        replace(CARD, uuid=CardUuid("GPU-d"), cordoned=True),
    )
    shared = CardState(replace(CARD, held_slices=32), 256, Usage(cores=30))
    assert summary.summary_of([shared, *found], is_ready=True) == {
        "ready": True,
        "health": "3/4",
        "cordoned": 1,
        "freeMemory": "71.75 GiB",
        "freeCompute": "0.7 of 4 cards",
        "conflicts": "",
        "cards": 4,
        "healthy": 3,
        "models": "1 x NVIDIA A30, 3 x NVIDIA H100",
        "memory": "269253 MiB",
        "held": "32 GiB",
    }


def test_a_full_card_shows_no_more_memory_than_it_has() -> None:
    """319 slices of 256 MiB would be 81664 MiB; the last slice is a partial slice."""
    full = summary.summary_of(states(replace(CARD, held_slices=319)), is_ready=True)
    assert (full["held"], full["freeMemory"]) == ("81559 MiB", "0 MiB")


def test_a_node_without_cards_has_a_summary_too() -> None:
    found = summary.summary_of([], is_ready=False, conflicts=["GPU-a is also on node n2"])
    assert (found["ready"], found["health"], found["freeCompute"]) == (False, "0/0", "0 of 0 cards")
    assert found["conflicts"] == "GPU-a is also on node n2"
