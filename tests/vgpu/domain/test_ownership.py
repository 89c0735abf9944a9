"""Whose card a UUID is that several GPUNodes report."""

from dataclasses import replace
from datetime import timedelta
from itertools import permutations

import pytest

from vgpu.domain.cards import ownership
from vgpu.domain.cards.device import Card
from vgpu.domain.cards.ownership import OLDEST, CardClaim
from vgpu.domain.identifiers import CardUuid, NodeName

A = CardClaim(NodeName("a"), is_alive=True, renewed=10.0, is_healthy=True, created=OLDEST)
NEWER = replace(A, node=NodeName("b"), created=OLDEST + timedelta(days=1))
AWAY = replace(NEWER, node=NodeName("c"), is_alive=False, renewed=99.0)


@pytest.mark.parametrize(
    ("claims", "owner"),
    [
        ((), ""),
        ((AWAY,), "c"),
        ((A, AWAY), "a"),  # a plugin that lives comes before a newer GPUNode whose plugin is gone
        ((A, NEWER), "b"),
        ((A, replace(NEWER, is_healthy=False)), "a"),  # the card was taken out of b, whose plugin runs on
        ((A, replace(AWAY, is_healthy=True), replace(NEWER, renewed=1.0)), "b"),
        ((AWAY, replace(A, is_alive=False, renewed=100.0)), "a"),  # the last one heard of, while it restarts
        ((A, replace(A, node=NodeName("z"))), "z"),
    ],
)
def test_a_card_counts_where_the_plugin_lives(claims: tuple[CardClaim, ...], owner: str) -> None:
    assert {ownership.owner(order) for order in permutations(claims)} == {owner}


def test_a_card_is_closed_on_every_other_node() -> None:
    card = Card(CardUuid("GPU-1"), 0, "H100", 1024)
    assert ownership.on_node(card, NodeName("a"), NodeName("a")) is card
    closed = ownership.on_node(card, NodeName("a"), NodeName("b"))
    assert (closed.healthy, closed.reason, closed.counts_on) == (False, "DuplicateUUID", "b")


@pytest.mark.parametrize("text", ["", "yesterday", "2020"])
def test_a_creation_time_that_cannot_be_read_is_the_oldest(text: str) -> None:
    assert ownership.age(text) <= ownership.age("2020-01-01T00:00:00Z")
    assert ownership.age("2020-01-01T00:00:00") == ownership.age("2020-01-01T00:00:00Z")
