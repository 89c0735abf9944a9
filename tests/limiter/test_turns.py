"""Whose turn it is and how long, in virtual time: the arithmetic in C, driven as the gate drives it."""

import ctypes
from dataclasses import dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vgpu import limits, region

MS = 1_000_000
SECOND = 1000 * MS
U64 = ctypes.c_uint64
GPU = limits.uuid_text(bytes([7]) * 16)
START = 1000 * SECOND
FITS, DEEP, UNMEASURED, FULL = range(4)


class Terms(ctypes.Structure):
    _fields_ = (("budget", U64), ("depth", U64), ("age", U64), ("until", U64))


class Turn(ctypes.Structure):
    _fields_ = (
        ("begun", U64),
        ("terms", Terms),
        ("expected", U64),
        ("drained", U64),
        ("idle", U64),
        ("launches", ctypes.c_uint),
        ("pauses", ctypes.c_uint),
        ("probed", U64),
        ("is_probed", ctypes.c_bool),
        ("is_unknown", ctypes.c_bool),
    )


@pytest.fixture(scope="module")
def compute(pure: ctypes.CDLL) -> ctypes.CDLL:
    pure.turn_open.restype = Turn
    for name in ("turn_limits_alone", "turn_limits_arbitrated", "turn_limits_without_arbiter"):
        getattr(pure, name).restype = Terms
    for name in ("turn_cost", "turn_sampled", "turn_remaining", "token_bucket_take", "estimates_key"):
        getattr(pure, name).restype = U64
    for name in ("turn_is_to_be_probed", "turn_is_informative", "turn_is_fully_informative", "estimates_of"):
        getattr(pure, name).restype = ctypes.c_bool
    return pure


@dataclass
class Card:
    """A card's row in a region of its own."""

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
    """One turn of a process that launches such kernels without end: what it used, and when it had ended."""
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
    asked = (now - START) * share / 100
    assert used <= asked + 10 * MS
    room = (100 - share) / 100 * 5 * MS  # of a turn, for what is lost at its end
    if late_us * 1000 < room:
        assert used >= asked - 10 * MS - kernel_us * 1000
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
    assert card.take(3, START) > 0  # and is never seen again
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
    card.charge(2, MS, START + MS)  # of what was his
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
    assert max(region.recent_share(seen, each, later) for each in (seen.second, seen.ten_seconds)) < 0.05


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
    asked = 0
    while wait := card.take(9, now):
        now += wait
        asked += 1
        assert asked < 10_000
    assert now - START <= 1100 * SECOND  # a debt of ten seconds at one percent
    compute.region_close(card.region)


def opened(compute: ctypes.CDLL, share: int) -> Turn:
    turn = compute.turn_open(U64(START), compute.turn_limits_alone(share))
    assert isinstance(turn, Turn)
    return turn


def judged(compute: ctypes.CDLL, turn: Turn, expected: int, now: int = START, *, known: bool = True) -> int:
    return int(compute.turn_judge(ctypes.byref(turn), known, U64(expected), U64(now)))


def add(compute: ctypes.CDLL, turn: Turn, expected: int, now: int, *, known: bool = True) -> None:
    compute.turn_add(ctypes.byref(turn), known, U64(expected), U64(now))


def test_the_first_launch_passes_and_an_unknown_kernel_runs_alone(compute: ctypes.CDLL) -> None:
    turn = opened(compute, 30)
    assert judged(compute, turn, 900 * MS) == FITS
    assert judged(compute, turn, 0, known=False) == FITS
    add(compute, turn, MS, START)
    assert judged(compute, turn, 4 * MS) == FITS  # 5 ms in all
    assert judged(compute, turn, 4 * MS + 1) == FULL
    assert judged(compute, turn, 0, known=False) == UNMEASURED
    turn = opened(compute, 30)
    add(compute, turn, 0, START, known=False)
    assert judged(compute, turn, 1) == UNMEASURED


def test_work_in_flight_is_at_most_the_depth_plus_one_kernel(compute: ctypes.CDLL) -> None:
    turn = compute.turn_open(U64(START), Terms(10 * MS, MS, 20 * MS))
    for now in (START, START, START):
        assert judged(compute, turn, MS // 2, now) == FITS
        add(compute, turn, MS // 2, now)
    assert judged(compute, turn, MS // 2, START) == DEEP
    assert judged(compute, turn, MS // 2, START + MS // 2) == FITS
    assert compute.turn_remaining(ctypes.byref(turn), U64(START + MS)) == MS // 2
    assert compute.turn_remaining(ctypes.byref(turn), U64(START + 5 * MS)) == 0


def rest(compute: ctypes.CDLL, turn: Turn, now: int) -> int:
    return int(compute.turn_remaining(ctypes.byref(turn), U64(now)))


def test_work_that_waits_for_the_card_drains_later(compute: ctypes.CDLL) -> None:
    turn = compute.turn_open(U64(START), Terms(10 * MS, 10 * MS, 20 * MS))
    compute.turn_set_free_at(ctypes.byref(turn), U64(START + MS))
    for _ in range(4):
        add(compute, turn, MS, START)
    assert rest(compute, turn, START) == 5 * MS
    compute.turn_note_start(ctypes.byref(turn), U64(START + MS // 2))  # sooner: what was expected may still be
    assert rest(compute, turn, START) == 5 * MS
    compute.turn_note_start(ctypes.byref(turn), U64(START + 2 * MS))
    assert rest(compute, turn, START + 2 * MS) == 4 * MS


def probed(compute: ctypes.CDLL, turn: Turn, *, passed: bool, now: int) -> None:
    compute.turn_apply_probe(ctypes.byref(turn), passed, U64(now))


def test_a_probe_corrects_the_estimate_of_the_drain_time(compute: ctypes.CDLL) -> None:
    turn = compute.turn_open(U64(START), Terms(50 * MS, 4 * MS, 50 * MS))
    for _ in range(5):
        add(compute, turn, MS, START)
    assert compute.turn_is_to_be_probed(ctypes.byref(turn))
    compute.turn_note_probe(ctypes.byref(turn))
    assert not compute.turn_is_to_be_probed(ctypes.byref(turn))
    add(compute, turn, MS, START)
    assert judged(compute, turn, MS) == DEEP
    probed(compute, turn, passed=True, now=START + MS)  # five of them took one
    assert turn.drained == START + 2 * MS
    assert judged(compute, turn, MS, START + MS) == FITS
    compute.turn_note_probe(ctypes.byref(turn))
    for _ in range(5):
        add(compute, turn, MS, START + MS)
    assert judged(compute, turn, MS, START + 20 * MS) == DEEP  # for nobody saw it pass
    probed(compute, turn, passed=False, now=START + 20 * MS)
    assert compute.turn_remaining(ctypes.byref(turn), U64(START + 20 * MS)) == 5 * MS
    probed(compute, turn, passed=True, now=START + 30 * MS)
    assert judged(compute, turn, MS, START + 30 * MS) == FITS


def test_a_turn_of_unbounded_depth_is_not_probed(compute: ctypes.CDLL) -> None:
    assert not compute.turn_is_to_be_probed(ctypes.byref(opened(compute, 30)))


@pytest.mark.parametrize(("kernel", "ends_us"), [(MS // 10, 80), (MS // 2, 400), (5 * MS, 400)])
def test_a_turn_with_an_end_time_ends_within_a_kernel_of_it(compute: ctypes.CDLL, kernel: int, ends_us: int) -> None:
    """What is launched begins when all else is done; 80 percent of a kernel may be lost, and no more than 0.4 ms."""
    until = START + 10 * MS
    turn = compute.turn_open(U64(START), Terms(100 * MS, 100 * MS, 20 * MS, until))
    assert judged(compute, turn, kernel, until) == FITS  # the first
    add(compute, turn, MS, START)
    turn.drained = until - ends_us * 1000
    assert judged(compute, turn, kernel) == FITS
    turn.drained += 1
    assert judged(compute, turn, kernel) == FULL
    turn.drained = START
    assert judged(compute, turn, kernel, until - 1) == FULL


def test_a_turn_ends_by_its_age(compute: ctypes.CDLL) -> None:
    turn = compute.turn_open(U64(START), Terms(10 * MS, MS, 20 * MS))
    add(compute, turn, 1, START)
    assert judged(compute, turn, 1, START + 20 * MS) == FITS
    assert judged(compute, turn, 1, START + 20 * MS + 1) == FULL


def test_only_time_with_work_is_charged(compute: ctypes.CDLL) -> None:
    turn = opened(compute, 30)
    add(compute, turn, MS, START)
    assert compute.turn_cost(ctypes.byref(turn), U64(MS), U64(0)) == MS
    add(compute, turn, MS, START + 4 * MS)  # the card was idle from 1 to 4 ms
    cost = compute.turn_cost(ctypes.byref(turn), U64(5 * MS), U64(START + 5 * MS))
    assert 2 * MS <= cost <= 2.02 * MS
    assert compute.turn_cost(ctypes.byref(turn), U64(0), U64(0)) == 2 * MS  # the driver did not say


@given(st.lists(st.tuples(st.integers(0, 2 * MS), st.integers(1, 3 * MS)), min_size=1, max_size=30))
def test_the_charge_equals_the_card_s_busy_time(compute: ctypes.CDLL, launches: list[tuple[int, int]]) -> None:
    """Any pauses between any kernels of known length: an exact twin of the card says when it was busy."""
    turn = opened(compute, 0)
    now = begun = START
    done, busy = START, 0
    for pause, kernel in launches:
        now += pause
        add(compute, turn, kernel, now)
        begun = now if busy == 0 else begun
        done = max(done, now) + kernel
        busy += kernel
    cost = compute.turn_cost(ctypes.byref(turn), U64(done - begun), U64(0))
    assert busy <= cost <= busy + len(launches) * 10_000


def test_estimates_follow_measurements_and_overlapping_kernels(compute: ctypes.CDLL) -> None:
    room = ctypes.create_string_buffer(2048 * 24 + 24)

    def expected(key: int) -> int | None:
        found = U64()
        return found.value if compute.estimates_of(room, U64(key), ctypes.byref(found)) else None

    assert expected(5 << 32) is None
    compute.estimates_learn(room, U64(5 << 32), U64(1000))
    assert expected(5 << 32) == 1000
    compute.estimates_learn(room, U64(5 << 32), U64(2000))
    assert expected(5 << 32) == 1500
    for _ in range(40):
        compute.estimates_fit(room, U64(expected(5 << 32) or 0), U64(150), ctypes.c_bool(False))
    assert 140 <= (expected(5 << 32) or 0) <= 160
    for is_dense, most in ((True, 1875), (False, 1500)):
        for _ in range(40):
            compute.estimates_fit(room, U64(expected(5 << 32) or 0), U64(9000), ctypes.c_bool(is_dense))
        assert most - 20 <= (expected(5 << 32) or 0) <= most
    compute.estimates_learn(room, U64(6 << 32), U64(2**64 - 1))
    assert expected(6 << 32) is not None


@given(st.lists(st.integers(1, 2**64 - 1), min_size=1, max_size=3000, unique=True))
def test_a_full_table_of_estimates_drops_the_oldest(compute: ctypes.CDLL, keys: list[int]) -> None:
    room, found = ctypes.create_string_buffer(2048 * 24 + 24), U64()
    for key in keys:
        compute.estimates_learn(room, U64(key), U64(7))
        assert compute.estimates_of(room, U64(key), ctypes.byref(found))


def test_kernels_are_distinguished_by_function_and_shape(compute: ctypes.CDLL) -> None:
    def key(what: int, *shape: int) -> int:
        return int(compute.estimates_key(ctypes.c_void_p(what), (ctypes.c_uint * 6)(*shape)))

    keys = [
        key(64, 1, 1, 1, 32, 1, 1),
        key(64, 2, 1, 1, 32, 1, 1),
        key(128, 1, 1, 1, 32, 1, 1),
        key(64, 1, 1, 1, 1, 32),
    ]
    assert len(set(keys)) == len(keys)
    assert key(0) != 0
