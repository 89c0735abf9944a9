"""The overdraft of a container on a card, in virtual time: what is lent early, and that nothing is gained by it."""

import ctypes
import struct
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.limiter.compute.turn_structures import MS, SECOND, START, U64
from tests.limiter.region.test_token_bucket import Card

MOST, AT_ONCE = 50 * MS, 20 * MS


def lend(card: Card, need: int, now: int, *, is_urgent: bool = False) -> int:
    return int(card.pure.overdraft_lend(card.row, U64(need), is_urgent, U64(now)))


def give_back(card: Card, lent: int, used: int, now: int) -> None:
    card.pure.overdraft_return(card.row, U64(lent), U64(used), U64(now))


@pytest.fixture
def card(compute: ctypes.CDLL) -> Card:
    return Card(compute, 20)


def test_a_new_container_may_overdraw_50_ms(card: Card) -> None:
    assert [lend(card, MS, START) for _ in range(4)] == [AT_ONCE, AT_ONCE, 10 * MS, 0]
    assert lend(card, 5 * MS, START + 99 * MS) == 0
    assert lend(card, 5 * MS, START + 100 * MS) == 5 * MS


def test_what_was_not_used_may_be_lent_again(card: Card) -> None:
    for _ in range(100):
        give_back(card, lend(card, 5 * MS, START), MS // 10, START)
    assert lend(card, 41 * MS, START) == 0
    assert lend(card, 40 * MS, START) == 40 * MS


def test_a_launch_that_needs_more_than_can_be_lent_needs_a_full_meter_and_a_long_wait(card: Card) -> None:
    assert lend(card, 700 * MS, START) == 0
    assert lend(card, 700 * MS, START, is_urgent=True) == MOST
    give_back(card, MOST, 700 * MS, START)
    assert lend(card, 1, START + 12 * SECOND) == 0
    assert lend(card, 700 * MS, START + 14 * SECOND, is_urgent=True) == MOST


def test_a_debt_above_the_overdraft_has_to_be_repaid_first(card: Card) -> None:
    assert card.take(2, START) == 0
    card.charge(2, MOST - MS, START)
    assert card.pure.overdraft_is_repaid(card.row)
    card.charge(2, 2 * MS, START + 2 * MS)
    assert not card.pure.overdraft_is_repaid(card.row)


USED_AT = 96  # offset of `overdraft_used` and `overdraft_at` in `struct region_card`


@given(
    used=st.integers(-(2**63), 2**63 - 1) | st.sampled_from([-1, -MOST, -(2**63), 2**63 - 1]),
    at=st.integers(0, 2**64 - 1) | st.sampled_from([0, START, START + SECOND]),
    need=st.integers(0, 2**64 - 1) | st.integers(0, MOST),
    is_urgent=st.booleans(),
)
def test_no_content_of_the_region_lends_more_than_a_full_meter(
    compute: ctypes.CDLL, used: int, at: int, need: int, *, is_urgent: bool
) -> None:
    card = Card(compute, 20)
    ctypes.memmove((card.row.value or 0) + USED_AT, struct.pack("<qQ", used, at), 16)
    lent = [lend(card, need, START, is_urgent=is_urgent) for _ in range(100)]
    assert sum(lent) <= MOST
    give_back(card, sum(lent), 2**64 - 1, START)  # more than could be
    assert lend(card, MS, START + SECOND) == 0
    assert lend(card, MS, START + 300 * SECOND) > 0  # and not for ever
    compute.region_close(card.region)


@given(seed=st.integers(0, 2**32))
def test_a_second_lends_at_most_the_overdraft_and_what_comes_back(compute: ctypes.CDLL, seed: int) -> None:
    random, now, lent = Random(seed), START, list[tuple[int, int]]()
    card = Card(compute, 20)
    for _ in range(200):
        now += random.randrange(20 * MS)
        loan = lend(card, random.randrange(1, 30 * MS), now)
        used = random.randrange(loan + 1)
        give_back(card, loan, used, now)
        lent.append((now, used))
    for begin, _ in lent:
        within = sum(used for at, used in lent if begin <= at < begin + SECOND)
        assert within <= 2 * MOST
    compute.region_close(card.region)


@pytest.mark.heavy
@given(seed=st.integers(0, 2**32), share=st.integers(5, 80), kernel_us=st.integers(50, 20_000))
def test_nothing_is_gained_over_a_minute(compute: ctypes.CDLL, seed: int, share: int, kernel_us: int) -> None:
    """A program whose every turn is followed by as many early launches as it can get.

    Each turn is a regular one and its loans, and what it took is charged, as the gate does it.
    """
    random, card, now, kernel = Random(seed), Card(compute, share), START, kernel_us * 1000
    used, most_ahead = 0, 0
    while now < START + 60 * SECOND:
        now = card.take_when_due(2, now)
        budget = int(compute.turn_limits_alone(share).budget)
        cost = max(1, budget // kernel) * kernel
        while random.random() < 0.9 and (loan := lend(card, kernel, now + cost)):
            early = max(1, loan // kernel) * kernel
            give_back(card, loan, early, now + cost)
            cost += early
        now += cost
        used += cost
        card.charge(2, cost, now)
        most_ahead = max(most_ahead, used - (now - START) * share // 100)
    # What is ahead of the share is bounded, so it does not grow with time.
    assert most_ahead <= 10 * MS + 2 * kernel + 2 * MOST
    assert used <= (now - START) * share // 100 + 10 * MS + 2 * kernel + 2 * MOST
    compute.region_close(card.region)
