"""Limits that do not fit this machine's cards."""

import pytest

from vgpu.cli.local import cards
from vgpu.cli.local.cards import LocalCards
from vgpu.domain.cards.device import Card
from vgpu.domain.formats.limits import ANY_GPU, CardLimit
from vgpu.domain.identifiers import CardUuid

TWO = LocalCards((Card(CardUuid("GPU-a"), 0, "L4", 23_034), Card(CardUuid("GPU-b"), 1, "A100", 81_920)))


@pytest.mark.parametrize(
    ("gpu", "mib", "problem"),
    [
        (ANY_GPU, 81_920, ""),
        (ANY_GPU, 81_921, "81921 MiB is more than card 1 (A100) has: 80 GiB"),
        ("GPU-a", 23_034, ""),
        ("GPU-a", 40_960, "40 GiB is more than card 0 (L4) has: 23034 MiB"),
        ("GPU-elsewhere", 1 << 20, ""),
    ],
)
def test_a_limit_beyond_its_card(gpu: str, mib: int, problem: str) -> None:
    assert cards.beyond(TWO, CardLimit(CardUuid(gpu), mib << 20, 0)) == problem
    assert cards.warning(TWO, [CardLimit(CardUuid(gpu), mib << 20, 0)]) == problem


def test_time_alone_fits_every_card() -> None:
    assert cards.warning(TWO, [CardLimit(ANY_GPU, None, 30)]) == ""


def test_a_machine_without_cards_is_named() -> None:
    found = LocalCards(problem="driver is not loaded")
    assert "driver is not loaded" in cards.warning(found, [CardLimit(ANY_GPU, None, 30)])
    assert cards.beyond(found, CardLimit(ANY_GPU, 1 << 60, 0)) == ""
