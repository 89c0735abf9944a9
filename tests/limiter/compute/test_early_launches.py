"""Launches that are admitted to a turn whose work does not drain, in virtual time."""

import ctypes
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.limiter.compute.test_turn import FITS, FULL, add, judge, open_turn
from tests.limiter.compute.turn_structures import MS, START, U64, EarlyLaunches, Turn, TurnLimits

SLACK, DRAIN_MAX, UNKNOWN, OVERDRAFT = 2 * MS, 50 * MS, 5 * MS, 50 * MS


def lend(compute: ctypes.CDLL, turn: Turn, loan: int, now: int) -> None:
    compute.turn_lend(ctypes.byref(turn), U64(loan), U64(now))


def due_in(compute: ctypes.CDLL, turn: Turn, since: int) -> int:
    return int(compute.turn_drain_due_at(ctypes.byref(turn), U64(since))) - since


def used(compute: ctypes.CDLL, turn: Turn, measured: int, now: int) -> int:
    return int(compute.early_launches_used(ctypes.byref(turn.early), U64(measured), U64(now)))


def full_turn(compute: ctypes.CDLL, *, known: bool = True, kernel: int = MS) -> Turn:
    turn = open_turn(compute, 30)
    for _ in range(5 if known else 1):
        add(compute, turn, kernel, START, known=known)
    assert judge(compute, turn, MS, known=known) != FITS
    return turn


@pytest.mark.parametrize(
    ("known", "kernel", "due"),
    [
        (True, MS, 5 * MS + SLACK),
        (True, 30 * MS, DRAIN_MAX + SLACK),
        (True, 140 * MS, 700 * MS + SLACK),
        (False, 0, SLACK),
    ],
)
def test_work_is_overdue_when_its_estimates_are_over(
    compute: ctypes.CDLL, kernel: int, due: int, *, known: bool
) -> None:
    """A kernel that was never measured is waited for a little. An estimate of 0.15 s is not believed at once: it may be
    that of a kernel that waited for its timeout. A longer one is."""
    assert due_in(compute, full_turn(compute, known=known, kernel=kernel), START) == due


def test_between_turns_of_others_work_is_overdue_later(compute: ctypes.CDLL) -> None:
    """What another container has left on the card takes every second time slice of it."""
    turn = compute.turn_open(U64(START), TurnLimits(10 * MS, MS, 20 * MS))
    for _ in range(3):
        add(compute, turn, MS, START)
    slices = 2
    assert due_in(compute, turn, START) == 2 * 3 * MS + slices * MS + SLACK


def test_a_turn_with_a_loan_admits_launches_up_to_it(compute: ctypes.CDLL) -> None:
    turn = full_turn(compute)
    lend(compute, turn, 3 * MS, START)
    for _ in range(3):
        assert judge(compute, turn, MS) == FITS
        add(compute, turn, MS, START)
    assert judge(compute, turn, 1) == FULL
    assert judge(compute, turn, 0, known=False) == FULL


def test_launches_without_an_estimate_count_5_ms_until_one_was_timed(compute: ctypes.CDLL) -> None:
    turn = full_turn(compute, known=False)
    lend(compute, turn, 4 * UNKNOWN, START)
    for _ in range(4):
        assert judge(compute, turn, 0, known=False) == FITS
        add(compute, turn, 0, START, known=False)
    assert judge(compute, turn, 0, known=False) == FULL
    compute.early_launches_note_sample(ctypes.byref(turn.early), U64(7 * UNKNOWN))
    lend(compute, turn, 10 * UNKNOWN, START)
    add(compute, turn, 0, START, known=False)
    assert judge(compute, turn, 0, known=False) == FULL


def assume(compute: ctypes.CDLL, before: int, ns: int) -> int:
    return int(compute.early_launches_assume(U64(before), U64(ns)))


def test_launches_without_an_estimate_count_what_others_took(compute: ctypes.CDLL) -> None:
    turn = full_turn(compute, known=False)
    turn.early.assumed_ns = assume(compute, 0, 9 * MS)
    lend(compute, turn, 20 * MS, START)
    for _ in range(2):
        assert judge(compute, turn, 0, known=False) == FITS
        add(compute, turn, 0, START, known=False)
    assert judge(compute, turn, 0, known=False) == FULL
    assert used(compute, turn, 0, START) == 18 * MS


def test_a_long_launch_without_an_estimate_is_remembered_for_a_while(compute: ctypes.CDLL) -> None:
    """And counts as 20 ms at most: two of them can always be lent."""
    assumed = assume(compute, MS, 700 * MS)
    assert assumed == 20 * MS
    for _ in range(4):
        assumed = assume(compute, assumed, MS // 10)
    assert 5 * MS < assumed < 7 * MS
    for _ in range(40):
        assumed = assume(compute, assumed, MS // 10)
    assert assumed == MS // 10


def test_a_launch_without_an_estimate_of_the_kind_that_has_not_ended_needs_a_full_overdraft(
    compute: ctypes.CDLL,
) -> None:
    turn = full_turn(compute, known=False)
    turn.early.is_like_first = True
    early = ctypes.byref(turn.early)
    assert compute.early_launches_need(early, ctypes.c_bool(False), U64(0)) == OVERDRAFT
    assert compute.early_launches_need(early, ctypes.c_bool(True), U64(MS)) == MS


@pytest.mark.parametrize(
    ("timed", "passed", "more"),
    [
        (0, 5000 * MS, 0),  # nothing is known of them
        (3 * MS, 5000 * MS, 0),
        (700 * MS, 5000 * MS, (4 * 700 - 20) * MS),
        (700 * MS, 1000 * MS, (1000 - 20) * MS),  # no more than the time that has passed
    ],
)
def test_what_early_launches_use_beyond_their_loans_is_lent_too(
    compute: ctypes.CDLL, timed: int, passed: int, more: int
) -> None:
    turn = full_turn(compute, known=False)
    lend(compute, turn, 20 * MS, START)
    for _ in range(4):
        add(compute, turn, 0, START, known=False)
    compute.early_launches_note_sample(ctypes.byref(turn.early), U64(timed))
    asked = ctypes.byref(turn.early), U64(START + passed)
    assert compute.early_launches_lend_used(*asked) == more
    assert compute.early_launches_lend_used(*asked) == 0
    assert turn.early.lent == 20 * MS + more


def test_without_a_loan_nothing_is_lent(compute: ctypes.CDLL) -> None:
    assert compute.early_launches_lend_used(ctypes.byref(EarlyLaunches()), U64(START)) == 0


def test_the_first_launch_of_a_loan_goes_and_a_loan_has_an_end(compute: ctypes.CDLL) -> None:
    turn = full_turn(compute)
    lend(compute, turn, 10 * MS, START)
    assert judge(compute, turn, 700 * MS, START + 100 * MS) == FITS
    add(compute, turn, MS, START)
    assert judge(compute, turn, MS, START + 20 * MS) == FITS
    assert judge(compute, turn, MS, START + 21 * MS) == FULL
    compute.early_launches_end(ctypes.byref(turn.early))  # the program has waited for the card
    assert judge(compute, turn, MS, START) == FULL


def test_what_a_turn_with_early_launches_took_is_charged_and_teaches_nothing(compute: ctypes.CDLL) -> None:
    turn = full_turn(compute)
    lend(compute, turn, 10 * MS, START)
    assert compute.turn_cost(ctypes.byref(turn), U64(9 * MS), U64(0)) == 9 * MS
    assert not compute.turn_is_informative(ctypes.byref(turn))


@pytest.mark.parametrize(
    ("known", "unknown", "timed", "measured", "after", "expected"),
    [
        ([MS, MS], 0, 0, 30 * MS, 50 * MS, 2 * MS),  # estimates are right on average
        ([MS], 0, 0, 5 * MS + MS // 2, 50 * MS, MS // 2),  # the turn took 0.5 ms longer than what came before
        ([MS], 0, 0, 30 * MS, MS // 4, MS // 4),
        ([], 2, MS // 10, 30 * MS, 50 * MS, MS // 5),  # as long as the one that was timed
        ([], 2, 0, 30 * MS, 50 * MS, 25 * MS),
        ([MS], 1, 0, 0, 50 * MS, MS + UNKNOWN),  # not measured
    ],
)
def test_how_much_of_a_loan_was_used(
    compute: ctypes.CDLL, known: list[int], unknown: int, timed: int, measured: int, after: int, expected: int
) -> None:
    turn = full_turn(compute)
    lend(compute, turn, 20 * MS, START)
    for estimate in known:
        add(compute, turn, estimate, START)
    for _ in range(unknown):
        add(compute, turn, 0, START, known=False)
    compute.early_launches_note_sample(ctypes.byref(turn.early), U64(timed))
    assert used(compute, turn, measured, START + after) == expected


def test_a_turn_without_loans_has_used_none(compute: ctypes.CDLL) -> None:
    assert used(compute, full_turn(compute), 30 * MS, START + MS) == 0
    assert compute.early_launches_take_back(ctypes.byref(EarlyLaunches())) == 0


@given(seed=st.integers(0, 2**32))
def test_launches_stay_within_what_is_lent_and_one_launch_a_loan(compute: ctypes.CDLL, seed: int) -> None:
    random, turn, now = Random(seed), full_turn(compute), START
    lent, admitted, longest, loans = 0, 0, 0, 0
    for _ in range(100):
        now += random.randrange(3 * MS)
        known, estimate = random.random() < 0.8, random.randrange(1, 8 * MS)
        if judge(compute, turn, estimate, now, known=known) == FITS:
            add(compute, turn, estimate, now, known=known)
            admitted += estimate if known else UNKNOWN
            longest = max(longest, estimate)
            continue
        lent -= int(compute.early_launches_take_back(ctypes.byref(turn.early)))
        loan, loans = random.randrange(1, 20 * MS), loans + 1
        lend(compute, turn, loan, now)
        lent += loan
        assert judge(compute, turn, estimate, now, known=known) == FITS  # so each loan makes progress
    assert admitted <= lent + loans * max(longest, UNKNOWN)


def learn_waiting(compute: ctypes.CDLL, estimates: ctypes.Array[ctypes.c_char], ns: int, waited: int) -> int:
    compute.estimates_learn_waiting(estimates, U64(1 << 32), U64(ns), U64(waited))
    found = U64()
    assert compute.estimates_of(estimates, U64(1 << 32), ctypes.byref(found))
    return found.value


def test_the_estimate_of_a_kernel_that_waits_for_launches_becomes_short(compute: ctypes.CDLL) -> None:
    """Whatever it was: each time the kernel is on the card for as long as the gate waits, and a little more."""
    estimates = ctypes.create_string_buffer(1 << 20)
    for _ in range(5):
        compute.estimates_learn(estimates, U64(1 << 32), U64(100 * MS))  # it had given up
    estimate = 100 * MS
    for _ in range(10):
        waited = min(estimate, DRAIN_MAX) + SLACK
        estimate = learn_waiting(compute, estimates, waited + MS // 10, waited)
    assert estimate < MS


def test_a_kernel_that_takes_longer_than_was_waited_for_keeps_its_time(compute: ctypes.CDLL) -> None:
    estimates = ctypes.create_string_buffer(1 << 20)
    assert [learn_waiting(compute, estimates, 30 * MS, SLACK) for _ in range(5)] == [30 * MS] * 5


def test_a_kernel_that_gives_up_each_time_keeps_its_time(compute: ctypes.CDLL) -> None:
    """The end of its turn is announced by that time. If it were halved, others would begin beside it."""
    estimates = ctypes.create_string_buffer(1 << 20)
    estimate = 0
    for _ in range(20):
        estimate = learn_waiting(compute, estimates, 100 * MS, min(estimate, DRAIN_MAX) + SLACK)
    assert estimate == 100 * MS


def cost(compute: ctypes.CDLL, turn: Turn, measured: int) -> int:
    return int(compute.turn_cost(ctypes.byref(turn), U64(measured), U64(0)))


def over_turn(compute: ctypes.CDLL, took: int, *, beside: bool, timed: int = 0) -> Turn:
    """A turn whose launches before the first loan are over after `took`, and ten launches of 1 ms on the loan."""
    turn = full_turn(compute)
    lend(compute, turn, 20 * MS, START + 9 * MS)
    for _ in range(10):
        add(compute, turn, MS, START + 10 * MS)
    compute.early_launches_note_timed(ctypes.byref(turn.early), U64(timed))
    compute.early_launches_note_before(ctypes.byref(turn.early), U64(took))
    turn.early.is_beside = beside
    return turn


def test_beside_others_early_launches_cost_their_estimates(compute: ctypes.CDLL) -> None:
    """What passes belongs to the others too: eight programs that began at the same moment paid for all eight."""
    assert cost(compute, over_turn(compute, 7 * MS, beside=True), 400 * MS) == 7 * MS + 10 * MS
    assert cost(compute, over_turn(compute, 7 * MS, beside=True), 12 * MS) == 12 * MS


def test_alone_a_turn_with_early_launches_costs_its_time(compute: ctypes.CDLL) -> None:
    assert cost(compute, over_turn(compute, 7 * MS, beside=False), 400 * MS) == 400 * MS


def test_a_kernel_that_stays_to_the_end_costs_all_of_the_turn(compute: ctypes.CDLL) -> None:
    turn = full_turn(compute)
    lend(compute, turn, 20 * MS, START + 9 * MS)
    turn.early.is_beside = True
    assert cost(compute, turn, 400 * MS) == 400 * MS


def test_the_launch_that_was_timed_counts_as_one_before(compute: ctypes.CDLL) -> None:
    """Its end is not among those of the streams."""
    assert cost(compute, over_turn(compute, 0, beside=True, timed=60 * MS), 400 * MS) == 60 * MS + 10 * MS


@pytest.mark.parametrize(("assumed", "each"), [(0, UNKNOWN), (2 * MS, 2 * MS), (9 * MS, 9 * MS)])
def test_beside_others_an_early_launch_without_an_estimate_costs_what_such_ones_took(
    compute: ctypes.CDLL, assumed: int, each: int
) -> None:
    turn = over_turn(compute, 7 * MS, beside=True)
    turn.early.assumed_ns = assumed
    add(compute, turn, 0, START + 11 * MS, known=False)
    assert cost(compute, turn, 400 * MS) == 7 * MS + 10 * MS + each


@pytest.mark.parametrize(("beside", "slack"), [(True, DRAIN_MAX), (False, SLACK)])
def test_beside_others_launches_that_went_early_for_nothing_are_waited_for_longer(
    compute: ctypes.CDLL, slack: int, *, beside: bool
) -> None:
    turn = over_turn(compute, 7 * MS, beside=beside)
    now = START + 100 * MS
    assert due_in(compute, turn, now) == slack


def test_a_loan_before_the_first_launch_has_none_before_it(compute: ctypes.CDLL) -> None:
    turn = open_turn(compute, 30)
    lend(compute, turn, 20 * MS, START)
    assert turn.early.is_before_over
