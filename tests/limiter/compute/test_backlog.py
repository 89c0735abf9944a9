"""How much work a program's host keeps ahead of the card, as the launch gate sees it in virtual time."""

import ctypes
from collections.abc import Callable

import pytest

from tests.limiter.compute.turn_structures import MS, START, U64

US = 1000
DEPTH, SHORT_DEPTH = 5 * MS, 3 * MS
KNOWN_AFTER, LARGE_AFTER, FORGET_AFTER = 8, 4, 256


class Backlog(ctypes.Structure):
    _fields_ = (
        ("known_ns", U64),
        ("most_ns", U64),
        ("last_launch_at", U64),
        ("launches", ctypes.c_uint),
        ("seen", ctypes.c_uint),
        ("large", ctypes.c_uint),
        ("uninformative", ctypes.c_uint),
        ("is_held_back", ctypes.c_bool),
        ("is_large", ctypes.c_bool),
    )


class Program:
    """A program whose host launches and pauses."""

    def __init__(self, compute: ctypes.CDLL) -> None:
        self.compute, self.backlog, self.now = compute, Backlog(), START

    def launch(self, outstanding: int, held_back: int | None = None) -> None:
        """Launch; `held_back`: the depth for which the launch has to wait first."""
        self.compute.backlog_note_arrival(ctypes.byref(self.backlog), U64(self.now))
        if held_back is not None:
            self.compute.backlog_note_held_back(ctypes.byref(self.backlog), U64(held_back))
            self.now += 4 * MS
        self.compute.backlog_note_launch(ctypes.byref(self.backlog), U64(outstanding), U64(self.now))
        self.now += 20 * US

    def step_in_one_launch(self, held_back: int | None = 0) -> None:
        """Launch a step of 4 ms, for which the host waits; the launch waits for its turn."""
        self.launch(4 * MS, held_back)
        self.now += 4 * MS

    def step_of_kernels(self, depth: int) -> None:
        """Launch a step of ten kernels, for which the host waits, while `depth` may be in flight."""
        for number in range(10):
            outstanding = (number + 1) * 4 * MS // 10
            self.launch(min(outstanding, depth), held_back=depth if outstanding > depth else None)
        self.now += 4 * MS

    def train(self) -> None:
        """Launch as much as the gate admits, then wait for an older step."""
        for number in range(50):
            self.launch(DEPTH, held_back=DEPTH if number > 20 else None)
        self.now += 2 * MS

    @property
    def known(self) -> int:
        return int(self.backlog.known_ns)


@pytest.mark.parametrize("step", [Program.step_in_one_launch, lambda program: program.step_of_kernels(DEPTH)])
def test_a_program_that_waits_for_each_step_has_a_known_backlog(
    compute: ctypes.CDLL, step: Callable[[Program], None]
) -> None:
    program = Program(compute)
    for _ in range(KNOWN_AFTER):
        step(program)
        assert program.known == 0
    step(program)
    assert program.known == 4 * MS


def test_short_turns_do_not_hide_the_backlog_for_which_they_are_short(compute: ctypes.CDLL) -> None:
    program = Program(compute)
    for _ in range(KNOWN_AFTER + 1):
        program.step_of_kernels(DEPTH)
    for _ in range(FORGET_AFTER):
        program.step_of_kernels(SHORT_DEPTH)
        assert program.known == 4 * MS
    for _ in range(2):
        program.step_of_kernels(SHORT_DEPTH)
    assert program.known == 0


def test_a_program_that_is_far_ahead_of_the_card_has_none(compute: ctypes.CDLL) -> None:
    """Also where it pauses now and then, and where it waited for each step before."""
    program = Program(compute)
    for _ in range(100):
        program.train()
        program.step_of_kernels(DEPTH)
        assert program.known == 0
    for _ in range(KNOWN_AFTER + 1):
        program.step_in_one_launch()
    for _ in range(LARGE_AFTER):
        assert program.known == 4 * MS
        program.train()
    program.train()
    assert program.known == 0


def test_two_steps_that_are_launched_at_once_are_no_large_backlog(compute: ctypes.CDLL) -> None:
    """The host was late with the first of them."""
    program = Program(compute)
    for number in range(10 * KNOWN_AFTER):
        program.step_in_one_launch()
        if number > KNOWN_AFTER and number % 4 == 0:
            program.launch(8 * MS, held_back=DEPTH)
            program.now += 8 * MS
        assert number <= KNOWN_AFTER or program.known >= 4 * MS


def test_a_backlog_that_becomes_smaller_is_believed_little_by_little(compute: ctypes.CDLL) -> None:
    program = Program(compute)
    for _ in range(KNOWN_AFTER + 1):
        program.launch(16 * MS, held_back=0)
        program.now += 16 * MS
    assert program.known == 16 * MS
    known = []
    for _ in range(20):
        program.step_in_one_launch()
        known.append(program.known)
    assert known == sorted(known, reverse=True)
    assert known[-1] == 4 * MS
