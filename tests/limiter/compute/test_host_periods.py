"""When a host-bound program asks for the turn of its queued launches, in virtual time."""

import ctypes
from dataclasses import dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.limiter.compute.turn_structures import MS, START, U64

US = 1000
LAUNCHES = 100
WANTED = 400 * US


class Periods(ctypes.Structure):
    _fields_ = (
        ("host_ns", U64),
        ("step_ns", U64),
        ("lead_ns", U64),
        ("begun_at", U64),
        ("expected", U64),
        ("launches", ctypes.c_uint),
        ("host_bound_score", ctypes.c_uint),
        ("alike_score", ctypes.c_uint),
        ("awaited_ns", U64),
    )


@dataclass
class Program:
    """A program that launches `gpu` ns in `host` ns and then waits; its turn begins `latency` ns after it asks.

    Beside a neighbour with a kernel of `kernel` ns, which ends that long after a period begins and is then launched
    again, the turn begins when a kernel ends.
    """

    pure: ctypes.CDLL
    gpu: int
    host: int
    latency: int = 500 * US
    launches: int = LAUNCHES
    kernel: int = 0

    def __post_init__(self) -> None:
        self.periods, self.now = Periods(), START

    def period(self) -> int:
        """Run one period and return how long the host waits at its end."""
        note = self.pure.host_periods_note_launch
        for number in range(self.launches):
            note(
                ctypes.byref(self.periods),
                U64(self.gpu // self.launches),
                U64(self.now + self.host * number // self.launches),
            )
        asked = min(self.pure.host_periods_ask_at(ctypes.byref(self.periods)), self.now + self.host)
        waits = self.now + self.host
        is_period = self.pure.host_periods_note_host_wait(ctypes.byref(self.periods), U64(waits))
        drained = max(self.turn_begins(asked) + self.gpu, waits)
        if is_period:
            self.pure.host_periods_note_waited(ctypes.byref(self.periods), U64(drained - waits))
        self.now = drained
        return int(drained - waits)

    def turn_begins(self, asked: int) -> int:
        kernels_begun = -((self.now - asked) // self.kernel) if self.kernel else 0
        return max(asked + self.latency, self.now + kernels_begun * self.kernel)

    def step(self) -> int:
        return int(self.pure.host_periods_step_ns(ctypes.byref(self.periods)))

    def awaited(self) -> int:
        return int(self.pure.host_periods_awaited_ns(ctypes.byref(self.periods)))

    def is_host_bound(self) -> bool:
        return bool(self.pure.host_periods_is_host_bound(ctypes.byref(self.periods)))


@pytest.mark.heavy
@given(gpu=st.integers(500, 2500), host=st.integers(4000, 9000), latency=st.integers(0, 1000))
def test_the_card_has_nearly_caught_up_when_the_host_waits(
    compute: ctypes.CDLL, gpu: int, host: int, latency: int
) -> None:
    program = Program(compute, gpu * US, host * US, latency * US)
    waits = [program.period() for _ in range(100)]
    assert max(waits[80:]) <= WANTED + 100 * US
    assert min(waits[80:]) >= WANTED - 100 * US


@pytest.mark.heavy
@given(gpu=st.integers(2500, 3000), host=st.integers(7000, 7900))
def test_few_turns_are_later_by_a_kernel_of_the_neighbour(compute: ctypes.CDLL, gpu: int, host: int) -> None:
    program = Program(compute, gpu * US, host * US, 0, launches=10, kernel=4 * MS)
    waits = [program.period() for _ in range(300)]
    late = [wait for wait in waits[100:] if wait > 2 * MS]
    assert 0 < len(late) <= len(waits[100:]) / 10


@pytest.mark.parametrize(
    ("gpu_ms", "host_ms", "launches", "is_host_bound"),
    [(2, 5, 300, True), (5, 5, 300, False), (20, 5, 300, False), (2, 5, 2, False), (0, 1, 1, False)],
)
def test_only_programs_that_leave_the_card_idle_are_host_bound(
    compute: ctypes.CDLL, gpu_ms: int, host_ms: int, launches: int, is_host_bound: bool
) -> None:
    program = Program(compute, gpu_ms * MS, host_ms * MS, launches=launches)
    for _ in range(8):
        program.period()
    assert program.is_host_bound() == is_host_bound


def test_a_program_that_changes_to_graphs_is_not_host_bound_any_more(compute: ctypes.CDLL) -> None:
    program = Program(compute, 2 * MS, 5 * MS)
    for _ in range(20):
        program.period()
    assert program.is_host_bound()
    program.gpu, program.host, program.launches = 2 * MS, 20 * US, 1
    for _ in range(4):
        program.period()
    assert not program.is_host_bound()


def test_a_step_is_what_is_launched_between_two_waits(compute: ctypes.CDLL) -> None:
    program = Program(compute, 80 * MS, 40 * MS)
    assert program.step() == 0
    for _ in range(20):
        program.period()
    assert program.step() == pytest.approx(80 * MS, rel=0.01)
    program.gpu = 20 * MS
    for _ in range(20):
        program.period()
    assert program.step() == pytest.approx(20 * MS, rel=0.05)


def test_a_program_that_no_longer_waits_has_no_steps(compute: ctypes.CDLL) -> None:
    program = Program(compute, 8 * MS, 4 * MS)
    for _ in range(8):
        program.period()
    for _ in range(2):
        compute.host_periods_note_launch(ctypes.byref(program.periods), U64(8 * MS), U64(program.now))
        assert program.step() > 0
    compute.host_periods_note_launch(ctypes.byref(program.periods), U64(8 * MS), U64(program.now))
    assert program.step() == 0


def test_waits_for_turns_are_not_the_host_s_time(compute: ctypes.CDLL) -> None:
    program = Program(compute, 5 * MS, 5 * MS)
    for _ in range(8):
        compute.host_periods_note_launch(ctypes.byref(program.periods), U64(0), U64(program.now))
        compute.host_periods_note_wait(ctypes.byref(program.periods), U64(10 * MS))
        program.now += 10 * MS
        program.period()
    assert not program.is_host_bound()


@pytest.mark.parametrize(
    ("gpu", "host", "launches", "is_known"),
    [
        (2000, 20, 1, True),
        (2000, 20, 7, True),
        (300, 100, 1, True),
        (2000, 1000, 1, True),
        (2000, 1001, 1, False),  # asked back in its middle, the host would still launch
        (2000, 20, 8, False),
    ],
)
def test_a_step_of_few_launches_that_are_made_at_once_is_awaited(
    compute: ctypes.CDLL, gpu: int, host: int, launches: int, is_known: bool
) -> None:
    program = Program(compute, gpu * US, host * US, launches=launches)
    for _ in range(4):
        program.period()
    assert program.awaited() == 0
    program.period()
    assert program.awaited() == pytest.approx(gpu * US if is_known else 0, abs=launches)


def test_one_other_step_changes_nothing_and_several_end_it(compute: ctypes.CDLL) -> None:
    program = Program(compute, 2 * MS, 20 * US, launches=1)
    for _ in range(9):
        program.period()
    program.gpu = 6 * MS
    program.period()
    assert program.awaited() == 2 * MS
    program.period()
    assert program.awaited() == 0
    for _ in range(4):
        program.period()
    assert program.awaited() == 6 * MS


def test_steps_that_alternate_are_not_alike(compute: ctypes.CDLL) -> None:
    program = Program(compute, 2 * MS, 20 * US, launches=1)
    for number in range(40):
        program.gpu = (number % 2 + 1) * 2 * MS
        program.period()
        assert program.awaited() == 0


def test_a_program_that_launches_more_without_a_wait_awaits_no_steps(compute: ctypes.CDLL) -> None:
    program = Program(compute, 2 * MS, 20 * US, launches=1)
    for _ in range(9):
        program.period()
    for known in (True, True, False):
        compute.host_periods_note_launch(ctypes.byref(program.periods), U64(2 * MS), U64(program.now))
        assert (program.awaited() > 0) == known
