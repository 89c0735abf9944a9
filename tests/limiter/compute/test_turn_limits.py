"""The limits of a turn, from the share and from any content of the arbiter's page."""

import ctypes
import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.limiter.compute.turn_structures import MS, SECOND, U64, TurnLimits

UNCONTENDED, ARBITRATED, UNARBITRATED = range(3)
ANY = 2**64 - 1
PAGE = struct.Struct("<IIQQQII24x")  # limiter/src/common/arbitration.h
NOW = 1000 * SECOND


@pytest.fixture(scope="module")
def turn_limits(pure: ctypes.CDLL) -> ctypes.CDLL:
    for name in ("turn_limits_alone", "turn_limits_arbitrated", "turn_limits_without_arbiter"):
        getattr(pure, name).restype = TurnLimits
    pure.turn_limits_fresh_for.restype = U64
    return pure


def contention(turn_limits: ctypes.CDLL, *, joined: bool, contended: int, beat: int) -> int:
    page = PAGE.pack(0, 0, 0, 0, beat, contended, 0)
    return int(turn_limits.turn_limits_contention(page, joined, U64(NOW)))


def arbitrated(turn_limits: ctypes.CDLL, share: int, left: int, depth: int = ANY) -> tuple[int, int, int]:
    found = turn_limits.turn_limits_arbitrated(share, U64(left), U64(depth))
    return found.budget, found.depth, found.age


@pytest.mark.parametrize(
    ("joined", "contended", "age_ms", "expected"),
    [
        (True, 0, 0, UNCONTENDED),
        (True, 0, 9999, UNCONTENDED),  # an uncontended card has no heartbeat
        (True, 1, 60, ARBITRATED),
        (True, 1, 61, UNARBITRATED),
        (True, 1, -5, ARBITRATED),  # written since the clock was read
        (True, 1, -5000, UNARBITRATED),
        (False, 1, 0, UNARBITRATED),
        (False, 0, 0, UNCONTENDED),
    ],
)
def test_contention_follows_the_page_until_the_heartbeat_times_out(
    turn_limits: ctypes.CDLL, joined: bool, contended: int, age_ms: int, expected: int
) -> None:
    assert contention(turn_limits, joined=joined, contended=contended, beat=NOW - age_ms * MS) == expected


@pytest.mark.parametrize(("age_ms", "fresh_ms"), [(0, 60), (40, 20), (59, 1), (60, 1), (5000, 1)])
def test_a_wait_ends_at_the_heartbeat_timeout(turn_limits: ctypes.CDLL, age_ms: int, fresh_ms: int) -> None:
    page = PAGE.pack(0, 0, 0, 0, NOW - age_ms * MS, 1, 0)
    assert turn_limits.turn_limits_fresh_for(page, U64(NOW)) == fresh_ms * MS


def test_without_a_page_the_card_is_uncontended(turn_limits: ctypes.CDLL) -> None:
    assert turn_limits.turn_limits_contention(None, True, U64(NOW)) == UNCONTENDED


@pytest.mark.parametrize(
    ("share", "left", "budget"),
    [
        (100, 6 * MS, 6 * MS),
        (100, 400 * MS, 16 * MS),
        (60, 400 * MS, 13 * MS),
        (10, 6 * MS, 5 * MS),
        (10, 3 * MS, 3 * MS),
        (100, 0, MS // 2),
    ],
)
def test_a_turn_s_budget_is_bounded_by_share_and_arbiter(
    turn_limits: ctypes.CDLL, share: int, left: int, budget: int
) -> None:
    assert arbitrated(turn_limits, share, left)[0] == budget


def test_an_unbounded_turn_has_a_budget_of_50_ms_and_a_depth_of_10_ms(turn_limits: ctypes.CDLL) -> None:
    assert arbitrated(turn_limits, 100, ANY) == (50 * MS, 10 * MS, 50 * MS)
    assert arbitrated(turn_limits, 100, ANY, MS)[1] == MS
    assert arbitrated(turn_limits, 30, ANY)[0] == 13 * MS  # the fixed share bounds the turn


def test_turns_without_a_heartbeat_are_short(turn_limits: ctypes.CDLL) -> None:
    assert turn_limits.turn_limits_without_arbiter(50).budget == 1.5 * MS
    assert turn_limits.turn_limits_without_arbiter(5).budget == 0.9 * MS
    assert turn_limits.turn_limits_without_arbiter(0).budget == ANY


@pytest.mark.parametrize(("fallback", "percent"), [(0, 1), (1, 1), (40, 40), (99, 99), (100, 0), (2**32 - 1, 0)])
def test_the_fallback_is_a_percentage_or_none(turn_limits: ctypes.CDLL, fallback: int, percent: int) -> None:
    assert turn_limits.turn_limits_fallback(PAGE.pack(0, 0, 0, 0, 0, 1, fallback)) == percent


@given(st.binary(min_size=64, max_size=64), st.booleans(), st.integers(1, 100), st.integers(0, ANY))
def test_no_page_makes_a_turn_empty_or_unbounded(
    turn_limits: ctypes.CDLL, page: bytes, joined: bool, share: int, now: int
) -> None:
    assert turn_limits.turn_limits_contention(page, joined, U64(now)) in {UNCONTENDED, ARBITRATED, UNARBITRATED}
    assert 0 <= turn_limits.turn_limits_fallback(page) < 100
    left, depth = struct.unpack_from("<QQ", page, 8)
    budget, deep, age = arbitrated(turn_limits, share, left, depth)
    assert MS // 2 <= budget <= age <= 50 * MS
    assert deep >= MS // 10
