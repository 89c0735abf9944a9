"""What fits into a turn, and what the turn costs, in virtual time: the functions are called as the launch gate does."""

import ctypes

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.limiter.compute.turn_structures import MS, SECOND, START, U64, Turn, TurnLimits

FITS, TOO_DEEP, UNMEASURED, FULL = range(4)


def open_turn(compute: ctypes.CDLL, share: int) -> Turn:
    turn = compute.turn_open(U64(START), compute.turn_limits_alone(share))
    assert isinstance(turn, Turn)
    return turn


def judge(compute: ctypes.CDLL, turn: Turn, expected: int, now: int = START, *, known: bool = True) -> int:
    return int(compute.turn_judge(ctypes.byref(turn), known, U64(expected), U64(now)))


def add(compute: ctypes.CDLL, turn: Turn, expected: int, now: int, *, known: bool = True) -> None:
    compute.turn_add(ctypes.byref(turn), known, U64(expected), U64(now))


def test_the_first_launch_passes_and_an_unknown_kernel_runs_alone(compute: ctypes.CDLL) -> None:
    turn = open_turn(compute, 30)
    assert judge(compute, turn, 900 * MS) == FITS
    assert judge(compute, turn, 0, known=False) == FITS
    add(compute, turn, MS, START)
    assert judge(compute, turn, 4 * MS) == FITS  # 5 ms in all
    assert judge(compute, turn, 4 * MS + 1) == FULL
    assert judge(compute, turn, 0, known=False) == UNMEASURED
    turn = open_turn(compute, 30)
    add(compute, turn, 0, START, known=False)
    assert judge(compute, turn, 1) == UNMEASURED


def test_work_in_flight_is_at_most_the_depth_plus_one_kernel(compute: ctypes.CDLL) -> None:
    turn = compute.turn_open(U64(START), TurnLimits(10 * MS, MS, 20 * MS))
    for now in (START, START, START):
        assert judge(compute, turn, MS // 2, now) == FITS
        add(compute, turn, MS // 2, now)
    assert judge(compute, turn, MS // 2, START) == TOO_DEEP
    assert judge(compute, turn, MS // 2, START + MS // 2) == FITS
    assert compute.turn_remaining(ctypes.byref(turn), U64(START + MS)) == MS // 2
    assert compute.turn_remaining(ctypes.byref(turn), U64(START + 5 * MS)) == 0


def remaining(compute: ctypes.CDLL, turn: Turn, now: int) -> int:
    return int(compute.turn_remaining(ctypes.byref(turn), U64(now)))


def test_work_that_waits_for_the_card_drains_later(compute: ctypes.CDLL) -> None:
    turn = compute.turn_open(U64(START), TurnLimits(10 * MS, 10 * MS, 20 * MS))
    compute.turn_set_free_at(ctypes.byref(turn), U64(START + MS))
    for _ in range(4):
        add(compute, turn, MS, START)
    assert remaining(compute, turn, START) == 5 * MS
    compute.turn_note_start(ctypes.byref(turn), U64(START + MS // 2))  # earlier than free_at: the estimate stays
    assert remaining(compute, turn, START) == 5 * MS
    compute.turn_note_start(ctypes.byref(turn), U64(START + 2 * MS))
    assert remaining(compute, turn, START + 2 * MS) == 4 * MS


@pytest.mark.parametrize(
    ("free_at", "launched", "now", "is_late"),
    [
        (START, 15, START, False),  # the budget is used, and no more
        (START, 16, START, False),  # a sixteenth more
        (START, 17, START, True),
        (START + 3 * MS, 16, START, False),  # the turn begins when the card is free
        (START, 15, START + 2 * MS, False),
        (START, 1, START + 17 * MS, True),  # nothing was launched meanwhile
        (START - 9 * MS, 16, START, False),  # the card was free before the turn began
        (START, 0, START + 40 * MS, False),  # the first launch
    ],
)
def test_a_turn_is_over_when_its_time_is_although_its_budget_is_not_used(
    compute: ctypes.CDLL, free_at: int, launched: int, now: int, *, is_late: bool
) -> None:
    turn = compute.turn_open(U64(START), TurnLimits(16 * MS, 4 * MS, 50 * MS))
    compute.turn_set_free_at(ctypes.byref(turn), U64(free_at))
    for _ in range(launched):
        add(compute, turn, MS, START)
    assert compute.turn_is_late(ctypes.byref(turn), U64(MS), U64(now)) == is_late


def test_a_turn_without_a_budget_is_never_late(compute: ctypes.CDLL) -> None:
    turn = compute.turn_open(U64(START), TurnLimits(2**64 - 1, 4 * MS, 50 * MS))
    add(compute, turn, MS, START)
    assert not compute.turn_is_late(ctypes.byref(turn), U64(MS), U64(START + SECOND))


@pytest.mark.parametrize(
    ("measured", "is_interrupted"), [(8 * MS, False), (9 * MS + 1, True), (12 * MS, True), (13 * MS, False)]
)
def test_a_time_slice_of_another_container_is_told_from_long_kernels(
    compute: ctypes.CDLL, measured: int, is_interrupted: bool
) -> None:
    turn = compute.turn_open(U64(START), TurnLimits(10 * MS, 5 * MS, 20 * MS))
    for _ in range(8):
        add(compute, turn, MS, START)
    assert compute.turn_is_interrupted(ctypes.byref(turn), U64(measured)) == is_interrupted
    alone = compute.turn_open(U64(START), TurnLimits(10 * MS, 2**64 - 1, 20 * MS))
    add(compute, alone, 8 * MS, START)
    assert not compute.turn_is_interrupted(ctypes.byref(alone), U64(measured))


def apply_probe(compute: ctypes.CDLL, turn: Turn, *, passed: bool, now: int) -> None:
    compute.turn_apply_probe(ctypes.byref(turn), passed, U64(now))


def test_a_probe_corrects_the_estimate_of_the_drain_time(compute: ctypes.CDLL) -> None:
    turn = compute.turn_open(U64(START), TurnLimits(50 * MS, 4 * MS, 50 * MS))
    for _ in range(5):
        add(compute, turn, MS, START)
    assert compute.turn_is_to_be_probed(ctypes.byref(turn))
    compute.turn_note_probe(ctypes.byref(turn))
    assert not compute.turn_is_to_be_probed(ctypes.byref(turn))
    add(compute, turn, MS, START)
    assert judge(compute, turn, MS) == TOO_DEEP
    apply_probe(compute, turn, passed=True, now=START + MS)  # the card took 1 ms for five kernels
    assert turn.drained_at == START + 2 * MS
    assert judge(compute, turn, MS, START + MS) == FITS
    compute.turn_note_probe(ctypes.byref(turn))
    for _ in range(5):
        add(compute, turn, MS, START + MS)
    assert judge(compute, turn, MS, START + 20 * MS) == TOO_DEEP  # the probe has not been seen to pass
    apply_probe(compute, turn, passed=False, now=START + 20 * MS)
    assert compute.turn_remaining(ctypes.byref(turn), U64(START + 20 * MS)) == 5 * MS
    apply_probe(compute, turn, passed=True, now=START + 30 * MS)
    assert judge(compute, turn, MS, START + 30 * MS) == FITS


def test_a_turn_of_unbounded_depth_is_not_probed(compute: ctypes.CDLL) -> None:
    assert not compute.turn_is_to_be_probed(ctypes.byref(open_turn(compute, 30)))


@pytest.mark.parametrize(("kernel", "ends_us"), [(MS // 10, 80), (MS // 2, 400), (5 * MS, 400)])
def test_a_turn_with_an_end_time_ends_within_a_kernel_of_it(compute: ctypes.CDLL, kernel: int, ends_us: int) -> None:
    """At most 80 % of a kernel's time stays unused before `end_by`, and at most 0.4 ms."""
    until = START + 10 * MS
    turn = compute.turn_open(U64(START), TurnLimits(100 * MS, 100 * MS, 20 * MS, until))
    assert judge(compute, turn, kernel, until) == FITS  # the first
    add(compute, turn, MS, START)
    turn.drained_at = until - ends_us * 1000
    assert judge(compute, turn, kernel) == FITS
    turn.drained_at += 1
    assert judge(compute, turn, kernel) == FULL
    turn.drained_at = START
    assert judge(compute, turn, kernel, until - 1) == FULL


def test_a_turn_with_a_doubtful_estimate_says_nothing_about_the_others(compute: ctypes.CDLL) -> None:
    turn = open_turn(compute, 30)
    for _ in range(4):
        add(compute, turn, MS, START)
    assert compute.turn_is_informative(ctypes.byref(turn))
    turn.is_doubtful = True
    assert not compute.turn_is_informative(ctypes.byref(turn))


def test_a_turn_ends_by_its_age(compute: ctypes.CDLL) -> None:
    turn = compute.turn_open(U64(START), TurnLimits(10 * MS, MS, 20 * MS))
    add(compute, turn, 1, START)
    assert judge(compute, turn, 1, START + 20 * MS) == FITS
    assert judge(compute, turn, 1, START + 20 * MS + 1) == FULL


def test_only_time_with_work_is_charged(compute: ctypes.CDLL) -> None:
    turn = open_turn(compute, 30)
    add(compute, turn, MS, START)
    assert compute.turn_cost(ctypes.byref(turn), U64(MS), U64(0)) == MS
    add(compute, turn, MS, START + 4 * MS)  # the card was idle from 1 to 4 ms
    cost = compute.turn_cost(ctypes.byref(turn), U64(5 * MS), U64(START + 5 * MS))
    assert 2 * MS <= cost <= 2.02 * MS
    assert compute.turn_cost(ctypes.byref(turn), U64(0), U64(0)) == 2 * MS  # the driver returned no time


@pytest.mark.heavy
@given(st.lists(st.tuples(st.integers(0, 2 * MS), st.integers(1, 3 * MS)), min_size=1, max_size=30))
def test_the_charge_equals_the_card_s_busy_time(compute: ctypes.CDLL, launches: list[tuple[int, int]]) -> None:
    """The oracle computes the busy time for random pauses between random kernels of known length."""
    turn = open_turn(compute, 0)
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


def test_time_in_which_the_only_stream_waited_is_not_charged(compute: ctypes.CDLL) -> None:
    """It may be the time in which nothing had been launched: the longer one of the two counts, not both.

    Where a stream waited, the estimates are charged at least.
    """
    turn = open_turn(compute, 80)
    for launch in range(9):
        add(compute, turn, MS, START + (4 * MS if launch == 8 else 0))  # the card has work until then
    compute.turn_note_waited(ctypes.byref(turn), U64(5 * MS))
    assert compute.turn_cost(ctypes.byref(turn), U64(14 * MS), U64(0)) == 9 * MS
    assert compute.turn_worked(ctypes.byref(turn), U64(14 * MS)) == 9 * MS
    turn.idle_ns = 3 * MS
    assert compute.turn_cost(ctypes.byref(turn), U64(14 * MS), U64(0)) == 9 * MS
    turn.idle_ns = 6 * MS  # the estimates
    assert compute.turn_cost(ctypes.byref(turn), U64(14 * MS), U64(0)) == 9 * MS
    assert compute.turn_cost(ctypes.byref(turn), U64(16 * MS), U64(0)) == 10 * MS
    turn = open_turn(compute, 80)
    add(compute, turn, 0, START, known=False)
    compute.turn_note_waited(ctypes.byref(turn), U64(5 * MS))
    assert compute.turn_cost(ctypes.byref(turn), U64(14 * MS), U64(0)) == 9 * MS


def test_the_time_from_the_expected_end_until_a_linked_card_is_found_drained_is_idle(compute: ctypes.CDLL) -> None:
    turn = compute.turn_open(U64(START), compute.turn_limits_alone(50))
    compute.turn_add(ctypes.byref(turn), ctypes.c_bool(True), U64(2 * MS), U64(START))
    compute.turn_note_drained(ctypes.byref(turn), U64(START + 5 * MS))
    assert compute.turn_cost(ctypes.byref(turn), U64(5 * MS), U64(0)) == pytest.approx(2 * MS, abs=20_000)
    compute.turn_add(ctypes.byref(turn), ctypes.c_bool(True), U64(2 * MS), U64(START + 5 * MS))
    assert compute.turn_cost(ctypes.byref(turn), U64(7 * MS), U64(0)) == pytest.approx(4 * MS, abs=20_000)
