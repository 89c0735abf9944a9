"""The GPU time that turns are charged, for a model of a program's host code and of the card."""

import ctypes
from collections.abc import Iterator
from dataclasses import dataclass, field
from random import Random

import pytest

from tests.limiter.compute.test_turn import FITS, TOO_DEEP
from tests.limiter.compute.turn_structures import MS, START, U64, Turn, TurnLimits

US = 1000
LATENCY = 8 * US  # between a launch and its start on an idle card: what an H200 takes
SHARE = 30
TURNS, LEARNT = 40, 20


@dataclass
class Program:
    """A program that launches a list of kernels in one stream, again and again.

    Attributes:
        kernels: GPU time of each kernel in ns.
        host: ns of the host between two launches that the gate admits.
        around: additional ns of the host after the last kernel of the list.
        cold: additional ns of the host before the second launch of a turn, because its caches are cold after a sleep.
        waits: whether the host waits for each kernel before the next launch.
        is_one: whether all kernels have one key, so that the estimate is an average.
    """

    kernels: tuple[int, ...]
    host: int
    around: int = 0
    cold: int = 0
    waits: bool = False
    is_one: bool = False


@dataclass
class Gate:
    """The launch gate of a process, which calls the functions as src/compute/gate/launch_gate.c does.

    Attributes:
        is_granted: whether the turns are the arbiter's, on a contended card.
    """

    pure: ctypes.CDLL
    program: Program
    is_granted: bool = False
    estimates: ctypes.Array[ctypes.c_char] = field(default_factory=lambda: ctypes.create_string_buffer(1 << 20))
    number: int = 0
    launches: int = 0
    random: Random = field(default_factory=lambda: Random(1))

    def expected(self, key: int) -> int | None:
        found = U64()
        known = self.pure.estimates_of(self.estimates, U64(key), ctypes.byref(found))
        return found.value if known else None

    def limits(self) -> TurnLimits:
        granted = U64(10 * MS), U64(5 * MS)
        limits: TurnLimits = (
            self.pure.turn_limits_arbitrated(SHARE, *granted) if self.is_granted else self.pure.turn_limits_alone(SHARE)
        )
        return limits

    def turn(self, now: int) -> tuple[int, int]:
        """Runs a turn; returns the GPU time that the limiter charges, and the GPU time of its kernels."""
        turn: Turn = self.pure.turn_open(U64(now), self.limits())
        busy, begun, free_at, sampled = 0, now, now, (0, 0, False)
        sample_at = self.random.randrange(self.launches) if self.launches else 0
        while True:
            key, kernel = self.upcoming()
            expected = self.expected(key)
            known = expected is not None
            verdict = self.pure.turn_judge(ctypes.byref(turn), known, U64(expected or 0), U64(now))
            if verdict == TOO_DEEP:
                now += 100 * US
                continue
            if verdict != FITS:
                break
            self.pure.turn_add(ctypes.byref(turn), known, U64(expected or 0), U64(now))
            turn.is_doubtful |= self.pure.estimates_is_doubtful(self.estimates, U64(key))
            is_prompt = free_at <= now
            began = max(free_at, now + LATENCY)
            if not known or turn.launches == sample_at + 1:
                sampled = (key, began + kernel - max(free_at, now), is_prompt)
            free_at = began + kernel
            busy += kernel
            self.number += 1
            now = max(now, free_at if self.program.waits else now) + self.program.host
            now += self.program.around if self.number % len(self.program.kernels) == 0 else 0
            now += self.program.cold if turn.launches == 1 else 0
        cost = self.pure.turn_cost(ctypes.byref(turn), U64(free_at - begun), U64(0))
        key, measured, is_prompt = sampled
        if key:
            sample = self.pure.turn_sampled(U64(measured), is_prompt)
            self.pure.estimates_learn(self.estimates, U64(key), U64(sample))
        if self.pure.turn_is_informative(ctypes.byref(turn)):
            is_dense = ctypes.c_bool(self.pure.turn_is_fully_informative(ctypes.byref(turn)))
            self.pure.estimates_fit(self.estimates, U64(turn.expected), U64(free_at - begun), is_dense)
        self.launches = turn.launches
        return cost, busy

    def upcoming(self) -> tuple[int, int]:
        place = self.number % len(self.program.kernels)
        return (1 if self.program.is_one else place + 1) << 32, self.program.kernels[place]

    def turns(self) -> Iterator[tuple[int, int]]:
        for number in range(TURNS):
            yield self.turn(START + number * 18 * MS)


PROGRAMS = pytest.mark.parametrize(
    ("program", "most"),
    [
        (Program((170 * US,), 15 * US), 1.01),
        (Program((170 * US,), 15 * US, cold=300 * US), 1.01),
        (Program((170 * US, 40 * US), 30 * US, cold=500 * US), 1.01),
        (Program((10 * US,), 4 * US, cold=100 * US), 1.01),
        (Program((20 * US, 200 * US, 60 * US), 30 * US, cold=200 * US), 1.01),
        (Program((500 * US,), 20 * US, waits=True), 1.01),
        (Program((180 * US, 13 * US), 30 * US, around=150 * US, cold=100 * US), 1.01),
        (Program((180 * US, 13 * US), 30 * US, around=400 * US), 1.01),
        (Program((20 * US, 180 * US), 20 * US, cold=200 * US, is_one=True), 1.03),
    ],
)


@PROGRAMS
def test_a_turn_is_charged_its_kernels_time(compute: ctypes.CDLL, program: Program, most: float) -> None:
    """Whether the host or the card is the slower of the two, and whether or not the host waits for each kernel."""
    last = list(Gate(compute, program).turns())[LEARNT:]
    cost, busy = (sum(turns_ns) for turns_ns in zip(*last, strict=True))
    assert 0.98 <= cost / busy <= most


@PROGRAMS
def test_in_contended_turns_a_slow_host_is_charged_little_more(
    compute: ctypes.CDLL, program: Program, most: float
) -> None:
    """On a contended card a pause before the first kernel may be a handover between contexts, and is charged."""
    last = list(Gate(compute, program, is_granted=True).turns())[LEARNT:]
    cost, busy = (sum(turns_ns) for turns_ns in zip(*last, strict=True))
    assert 0.98 <= cost / busy <= most + 0.04
