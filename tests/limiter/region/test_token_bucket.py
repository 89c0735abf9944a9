"""The token bucket of a container on a card, in virtual time: order of turns, shares and what is saved while idle."""

import ctypes
from dataclasses import dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.limiter.compute.turn_structures import MS, SECOND, START, U64
from vgpu.domain.formats import limits, region

GPU = limits.uuid_text(bytes([7]) * 16)


@dataclass
class Card:
    """A card's row in its own region."""

    pure: ctypes.CDLL
    share: int

    def __post_init__(self) -> None:
        self.region = ctypes.c_void_p(self.pure.region_anonymous())
        place = self.pure.account_find_or_add_card(self.region, limits.uuid_bytes(GPU))
        self.row = ctypes.c_void_p((self.region.value or 0) + 256 + 256 * place)
        self.tickets: dict[int, ctypes.c_uint32] = {}

    def take(self, who: int, now: int) -> int:
        ticket = self.tickets.setdefault(who, ctypes.c_uint32(0))
        return int(self.pure.token_bucket_take(self.row, who, ctypes.byref(ticket), self.share, U64(now)))

    def covers(self, expected: int) -> bool:
        covers = self.pure.token_bucket_covers
        covers.restype = ctypes.c_bool
        return bool(covers(self.row, U64(expected)))

    def charge(self, who: int, cost: int, now: int) -> None:
        self.pure.token_bucket_charge(self.row, who, self.share, U64(cost), U64(now))

    def seen(self) -> region.CardUse:
        return region.decode(ctypes.string_at(self.region.value or 0, region.SIZE)).cards[0]

    def used(self) -> int:
        return self.seen().gpu_ns

    def take_when_due(self, who: int, now: int) -> int:
        while wait := self.take(who, now):
            now += wait
        return now


def run_turn(card: Card, now: int, kernel: int, late: int = 0) -> tuple[int, int]:
    """One turn of a process that launches continuously; returns the GPU time used and the time of its end."""
    used = max(1, card.pure.turn_limits_alone(card.share).budget // kernel) * kernel
    card.charge(2, used, now + used + late)
    return used, now + used + late


@given(share=st.integers(1, 99), kernel_us=st.integers(1, 200_000), late_us=st.integers(0, 50))
def test_a_continuous_load_gets_its_share_with_any_kernels(
    compute: ctypes.CDLL, share: int, kernel_us: int, late_us: int
) -> None:
    card, now, used = Card(compute, share), START, 0
    while now < START + 3 * SECOND:
        now = card.take_when_due(2, now)
        cost, now = run_turn(card, now, kernel_us * 1000, late_us * 1000)
        used += cost
    now = card.take_when_due(2, now)
    allowed = (now - START) * share / 100
    assert used <= allowed + 10 * MS
    room = (100 - share) / 100 * 5 * MS  # part of a turn that is lost when its end is noticed late
    if late_us * 1000 < room:
        assert used >= allowed - 10 * MS - kernel_us * 1000
    assert card.used() == used
    compute.region_close(card.region)


@given(share=st.integers(10, 99), kernel_us=st.integers(1, 1000))
def test_no_stall_is_longer_than_20_ms(compute: ctypes.CDLL, share: int, kernel_us: int) -> None:
    card, now = Card(compute, share), START
    for _ in range(50):
        taken = card.take_when_due(2, now)
        assert taken - now <= 20 * MS
        _, now = run_turn(card, taken, kernel_us * 1000)
    compute.region_close(card.region)


def test_an_idle_container_saves_at_most_10_ms(compute: ctypes.CDLL) -> None:
    card = Card(compute, 50)
    assert card.take(2, START) == 0
    card.charge(2, 0, START)
    assert card.take(2, START + 3600 * SECOND) == 0
    card.charge(2, 10 * MS, START + 3600 * SECOND + 10 * MS)
    assert card.take(2, START + 3600 * SECOND + 10 * MS) == 0
    card.charge(2, 11 * MS, START + 3600 * SECOND + 21 * MS)
    assert card.take(2, START + 3600 * SECOND + 21 * MS) > 0


def test_one_long_kernel_is_repaid_in_full(compute: ctypes.CDLL) -> None:
    card = Card(compute, 30)
    assert card.take(2, START) == 0
    card.charge(2, 300 * MS, START + 300 * MS)
    repaid = card.take_when_due(2, START + 300 * MS) - START
    assert abs(repaid - SECOND) < MS


def test_waiting_processes_get_their_turns_in_order(compute: ctypes.CDLL) -> None:
    card, now, order = Card(compute, 50), START, []
    for _ in range(12):
        waits = {who: card.take(who, now) for who in (2, 3, 4)}
        while all(waits.values()):
            now += min(waits.values())
            waits = {who: waits[who] and card.take(who, now) for who in (2, 3, 4)}
        order.append(next(who for who, wait in waits.items() if wait == 0))
        now += MS
        card.charge(order[-1], MS, now)
    assert order == [2, 3, 4] * 4


def test_a_silent_holder_loses_its_turn(compute: ctypes.CDLL) -> None:
    card = Card(compute, 50)
    assert card.take(2, START) == 0
    card.pure.token_bucket_extend_turn(card.row, 2, U64(START + 30 * MS))
    assert card.take(3, START) == 30 * MS
    assert card.take(3, START + 31 * MS) == 0


def test_a_waiting_process_that_does_not_take_its_turn_is_skipped(compute: ctypes.CDLL) -> None:
    card = Card(compute, 50)
    assert card.take(2, START) == 0
    assert card.take(3, START) > 0  # this process does not come back
    card.charge(2, 0, START + MS)
    assert card.take_when_due(4, START + MS) <= START + 4 * MS


def test_time_that_two_processes_used_together_is_charged_once(compute: ctypes.CDLL) -> None:
    card = Card(compute, 50)
    assert card.take(2, START) == 0
    card.charge(2, 0, START)
    card.charge(2, 10 * MS, START + 10 * MS)
    card.charge(3, 8 * MS, START + 12 * MS)
    assert card.used() == 12 * MS


def test_a_turn_of_the_arbiter_replaces_the_current_holder(compute: ctypes.CDLL) -> None:
    card = Card(compute, 50)
    assert card.take(2, START) == 0
    compute.token_bucket_seize(card.row, 3, U64(START))
    assert card.take(2, START) > 0
    card.charge(2, MS, START + MS)  # charged late by the former holder
    assert card.take(2, START + MS) > 0
    card.charge(3, MS, START + 2 * MS)
    assert card.take_when_due(2, START + 2 * MS) <= START + 5 * MS


def test_the_share_of_the_last_second_and_of_ten_seconds_is_recorded(compute: ctypes.CDLL) -> None:
    card, now = Card(compute, 50), START
    for share, seconds in ((0.3, 12), (0.6, 3)):
        for _ in range(seconds * 100):
            now += 10 * MS
            card.charge(2, int(share * 10 * MS), now)
    seen = card.seen()
    assert region.recent_share(seen, seen.second, now) == pytest.approx(0.6, abs=0.01)
    assert region.recent_share(seen, seen.ten_seconds, now) == pytest.approx(0.3, abs=0.01)
    later = now + 60 * SECOND
    assert max(region.recent_share(seen, window, later) for window in (seen.second, seen.ten_seconds)) < 0.05


@given(
    st.binary(min_size=128, max_size=128),
    st.integers(1, 99),
    st.lists(st.tuples(st.integers(1, 4), st.integers(0, 2**64 - 1)), max_size=6),
)
def test_random_bytes_in_the_region_never_cause_an_endless_wait(
    compute: ctypes.CDLL, row: bytes, share: int, charges: list[tuple[int, int]]
) -> None:
    card, now = Card(compute, share), START
    ctypes.memmove((card.row.value or 0) + 128, row, len(row))
    for who, cost in charges:
        card.charge(who, cost, now)
    attempts = 0
    while wait := card.take(9, now):
        now += wait
        attempts += 1
        assert attempts < 10_000
    assert now - START <= 6100 * SECOND  # time to repay a debt of 60 s at 1 %
    compute.region_close(card.region)


def test_tokens_of_a_long_wait_for_another_container_are_kept(compute: ctypes.CDLL) -> None:
    card = Card(compute, 30)
    assert card.take(2, START) == 0
    now = START + 700 * MS
    card.pure.token_bucket_keep_earned(card.row, 30, U64(700 * MS), U64(now))
    for _ in range(27):  # 210 ms that were earned and 3 of each turn's 10 ms pay for 270 ms
        now += 10 * MS
        card.charge(2, 10 * MS, now)
        assert card.take(2, now) == 0
    compute.region_close(card.region)


def test_the_turn_after_a_long_wait_has_what_was_earned_in_it(compute: ctypes.CDLL) -> None:
    card, now = Card(compute, 50), START + 100 * MS
    assert card.take(2, START) == 0
    card.pure.token_bucket_keep_earned(card.row, 50, U64(100 * MS), U64(now))
    assert card.covers(49 * MS)  # 50 ms were earned
    assert not card.covers(50 * MS)
    compute.region_close(card.region)


@pytest.mark.parametrize(("waited", "idle"), [(49 * MS, 0), (700 * MS, 101 * MS)])
def test_tokens_are_not_kept_after_a_short_wait_or_an_idle_time(compute: ctypes.CDLL, waited: int, idle: int) -> None:
    card, now = Card(compute, 30), START + 700 * MS
    assert card.take(2, START) == 0
    card.pure.token_bucket_keep_earned(card.row, 30, U64(waited), U64(now))
    card.charge(2, MS, now)
    now += idle
    assert card.take(2, now) == 0
    card.charge(2, 16 * MS, now + 16 * MS)
    assert card.take(2, now + 16 * MS) > 0
    compute.region_close(card.region)
