"""What a container may use of a card with early launches, in virtual time: random programs at the gate's functions.

A program launches kernels whose time is known, wrong or unknown, waits for the card, pauses, and starts kernels that
wait for launches that come later. Its launches take the way of `wait_for_admission` in gate_drive.c, alone on the card.
"""

import ctypes
from collections.abc import Iterator
from dataclasses import dataclass, field
from random import Random

import pytest
from hypothesis import event, given, settings
from hypothesis import strategies as st

from tests.limiter.compute.test_turn import FITS
from tests.limiter.compute.turn_structures import MS, SECOND, START, U64, Turn
from tests.limiter.region.test_token_bucket import Card

PROCESS = 2
OVERDRAFT, BURST_CAP, BUDGET = 50 * MS, 10 * MS, 5 * MS
SLOW = 100 * MS  # a kernel that waits gives up by then
LONG_WAIT = SECOND


@dataclass
class Program:
    """One program on a card, and what its kernels used of it."""

    card: Card
    random: Random
    longest: int  # of a kernel
    now: int = START
    turn: Turn | None = None
    assumed: int = 0
    ends: int = START  # of the kernels in flight
    spans: list[tuple[int, int]] = field(default_factory=list)
    excess: int = 0  # what the early launches of the turn took more than they counted
    most_excess: int = 0
    early: int = 0  # launches
    sample: tuple[int, int] | None = None  # end and time of the early launch that is timed

    def run(self, actual: int) -> None:
        """A kernel is on the card, behind those before it."""
        begin = max(self.ends, self.now)
        self.ends = begin + actual
        self.spans.append((begin, self.ends))

    def launch(self, estimate: int, actual: int, *, known: bool) -> None:
        """Launch, as soon as the gate admits it."""
        while not self._fits(estimate, known=known):
            if self.turn is None:
                self._take()
            else:
                self._close(self._need(estimate, known=known))
        assert self.turn is not None
        early = bool(self.turn.early.begun_at)
        counted = self._need(estimate, known=known)
        self.pure.turn_add(ctypes.byref(self.turn), known, U64(estimate), U64(self.now))
        if early:
            self.early += 1
            self.excess += max(0, actual - counted)
            self.most_excess = max(self.most_excess, self.excess)
        self.run(actual)
        if early and self.sample is None:
            self.sample = self.ends, actual
        if not known and not early:
            self.assumed = int(self.pure.early_launches_assume(U64(self.assumed), U64(actual)))

    def wait(self) -> None:
        """The host waits for the card, so nothing goes early any more."""
        self.now = max(self.now, self.ends)
        if self.turn is not None:
            self.pure.early_launches_end(ctypes.byref(self.turn.early))

    def end(self) -> None:
        """The program has ended."""
        self.wait()
        if self.turn is not None:
            self._end_turn()

    @property
    def pure(self) -> ctypes.CDLL:
        return self.card.pure

    def _need(self, estimate: int, *, known: bool) -> int:
        early = self.turn.early if self.turn is not None else Turn().early
        return int(self.pure.early_launches_need(ctypes.byref(early), known, U64(estimate)))

    def _fits(self, estimate: int, *, known: bool) -> bool:
        if self.turn is None:
            return False
        return bool(self.pure.turn_judge(ctypes.byref(self.turn), known, U64(estimate), U64(self.now)) == FITS)

    def _take(self) -> None:
        self.now = self.card.take_when_due(PROCESS, self.now)
        turn = self.pure.turn_open(U64(self.now), self.pure.turn_limits_alone(self.card.share))
        assert isinstance(turn, Turn)
        turn.early.assumed_ns, self.turn, self.excess = self.assumed, turn, 0

    def _close(self, need: int) -> None:
        """The turn ends when its work has drained, unless that is overdue and there is a loan."""
        assert self.turn is not None
        since = self.now
        due = int(self.pure.turn_drain_due_at(ctypes.byref(self.turn), U64(since)))
        charges = 0
        for now in self._polls(due):
            if (now - since) // LONG_WAIT > charges:
                charges = (now - since) // LONG_WAIT
                self._charge_until(now)
            left = int(self.pure.early_launches_take_back(ctypes.byref(self.turn.early)))
            self.pure.overdraft_return(self.card.row, U64(left), U64(0), U64(now))
            self._note_sample(now)
            if loan := int(self.pure.overdraft_lend(self.card.row, U64(need), charges > 0, U64(now))):
                self.pure.turn_lend(ctypes.byref(self.turn), U64(loan), U64(now))
                self.now = now
                return
        self.now = max(self.now, self.ends)
        self._end_turn()

    def _note_sample(self, now: int) -> None:
        """What early launches took beyond their loans is lent too, as far as one of them was timed."""
        assert self.turn is not None
        early = ctypes.byref(self.turn.early)
        if self.sample is not None and self.sample[0] <= now:
            self.pure.early_launches_note_sample(early, U64(self.sample[1]))
            self.sample = None
        more = int(self.pure.early_launches_lend_used(early, U64(now)))
        self.pure.overdraft_return(self.card.row, U64(0), U64(more), U64(now))

    def _polls(self, due: int) -> Iterator[int]:
        now = max(due, self.now)
        while now < self.ends:
            yield now
            now += 10 * MS if self.ends - now > SECOND else MS

    def _charge_until(self, now: int) -> None:
        assert self.turn is not None
        passed = now - self.turn.begun_at
        self.card.charge(PROCESS, max(0, passed - self.turn.charged), now)
        self.turn.charged = max(self.turn.charged, passed)

    def _end_turn(self) -> None:
        assert self.turn is not None
        turn, self.turn, self.sample = self.turn, None, None
        begun = next(begin for begin, _ in self.spans if begin >= turn.begun_at)
        measured = self.ends - begun
        used = int(self.pure.early_launches_used(ctypes.byref(turn.early), U64(measured), U64(self.now)))
        self.pure.overdraft_return(self.card.row, U64(turn.early.lent), U64(used), U64(self.now))
        cost = int(self.pure.turn_cost(ctypes.byref(turn), U64(measured), U64(0)))
        self.card.charge(PROCESS, max(0, cost - turn.charged), self.now)


def act(program: Program, longest: int) -> None:
    """Let the program do one random thing."""
    random = program.random
    kind = random.random()
    if kind < 0.2:
        program.wait()
    elif kind < 0.25:
        program.now += random.randrange(50 * MS)
    elif kind < 0.35:  # a kernel that waits, and ends by itself in the end
        program.launch(random.choice([MS // 10, SLOW]), random.randrange(MS, SLOW), known=random.random() < 0.7)
    else:
        actual = random.choice([MS // 10, MS, 7 * MS, random.randrange(1000, longest + 1)])
        program.launch(actual, actual, known=random.random() < 0.7)


def used_within(spans: list[tuple[int, int]], begin: int, end: int) -> int:
    """How much of a time the kernels used; they do not overlap."""
    return sum(max(0, min(last, end) - max(first, begin)) for first, last in spans)


def bound(program: Program, longest: int) -> int:
    """What may be used beyond the share: see the consequences in ADR 170.

    Of the two kernels one is the turn's first launch, and the other one goes after a second on a full overdraft.
    """
    kernels = 2 * max(longest, SLOW)
    in_a_turn = kernels + OVERDRAFT + program.most_excess
    return BURST_CAP + BUDGET + kernels + OVERDRAFT + in_a_turn * OVERDRAFT // SECOND + program.most_excess


@pytest.mark.heavy
@settings(max_examples=40)
@given(seed=st.integers(0, 2**32), share=st.integers(5, 80), longest_ms=st.sampled_from([1, 20, 300, 3000, 20_000]))
def test_no_program_gains_by_early_launches(compute: ctypes.CDLL, seed: int, share: int, longest_ms: int) -> None:
    longest = longest_ms * MS
    program = Program(Card(compute, share), Random(seed), longest)
    for _ in range(400):
        act(program, longest)
    program.end()
    most = bound(program, longest)
    # What is gained does not grow with time: not over the whole run, and not over a minute or ten seconds of it.
    length = program.now - START
    assert used_within(program.spans, START, program.now) <= length * share // 100 + most
    for span in (10 * SECOND, 60 * SECOND):
        for _ in range(50):
            begin = START + program.random.randrange(max(1, length))
            used = used_within(program.spans, begin, begin + span)
            assert used <= span * share // 100 + most
    event("early launches" if program.early else "none went early")
    compute.region_close(program.card.region)


def test_a_program_may_overdraw(compute: ctypes.CDLL) -> None:
    """So the bound is one of programs that do."""
    program = Program(Card(compute, 20), Random(0), MS)
    for _ in range(20):
        program.launch(MS // 10, SLOW, known=True)
        program.launch(MS, MS, known=True)
    assert program.early >= 10


def test_what_a_long_kernel_overdraws_is_not_forgiven(compute: ctypes.CDLL) -> None:
    """Debts above 10 s once were."""
    program = Program(Card(compute, 20), Random(0), 20 * SECOND)
    for _ in range(10):
        program.launch(20 * SECOND, 20 * SECOND, known=True)
        program.wait()
    program.end()
    assert used_within(program.spans, START, program.now) <= (program.now - START) // 5 + 20 * SECOND
