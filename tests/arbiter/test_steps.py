"""Turns of programs that wait for each of their steps, in virtual time."""

import ctypes
from collections.abc import Callable

import pytest

from tests.arbiter.simulation import (
    HANDOVER,
    MS,
    PAGE_DELAY,
    SECOND,
    U64,
    US,
    Demand,
    Process,
    Tenant,
    WaitingForEach,
    World,
    demand,
)

MakeWorld = Callable[..., World]
HALF = demand(50, "burst")


class Stepping(WaitingForEach):
    """A program of equal steps. Notes how many steps each of its turns has, and how long each step takes."""

    def __init__(self, world: World, tenant: Tenant, step: int) -> None:
        self.turns: list[int] = [0]
        self.times: list[int] = []
        self.ready_at, self.seen = world.now, 0
        super().__init__(world, tenant, step)
        self.suitable_turn, self.step_ns = step // 2, step

    def launched(self, done_at: int) -> None:
        super().launched(done_at)
        if self.turn != self.seen:
            self.turns.append(0)
        self.turns[-1] += 1
        self.seen = self.turn
        self.times.append(done_at - self.ready_at)
        self.ready_at = done_at + self.GAP

    def forget(self) -> None:
        self.turns, self.times = [0], []


def stepping(world: World, *steps: int, cores: int = 50) -> list[Stepping]:
    """Programs with these steps, after a second beside each other."""
    programs = [Stepping(world, world.tenant(demand(cores, "burst")), step) for step in steps]
    world.run(SECOND)
    for program in programs:
        program.forget()
    return programs


def full_turns(program: Stepping) -> set[int]:
    """How many steps its turns have, without the first and the last."""
    return set(program.turns[1:-1])


@pytest.mark.parametrize(
    ("step", "budget", "steps"),
    [
        (2000, 4, 1),
        (1500, 4, 1),
        (1300, 4, 3),
        (950, 4, 4),
        (1050, 4, 4),  # a little longer than the budget
        (1100, 4, 3),
        (650, 4, 6),
        (8000, 4, 1),
        (300, 16, 53),
    ],
)
def test_a_turn_has_as_many_steps_as_fit_or_one(pure: ctypes.CDLL, step: int, budget: int, steps: int) -> None:
    assert pure.turn_allowance_steps(U64(step * US), U64(budget * MS)) == steps


@pytest.mark.parametrize(("step", "steps"), [(650, 6), (950, 4), (1200, 3), (1500, 1), (2000, 1), (4000, 1), (8000, 1)])
def test_all_turns_have_the_same_number_of_steps(make_world: MakeWorld, step: int, steps: int) -> None:
    world = make_world()
    programs = stepping(world, step * US, step * US)
    got = world.shares(2 * SECOND)
    assert [full_turns(program) for program in programs] == [{steps}, {steps}]
    assert got[0] == pytest.approx(got[1], rel=0.02)
    lost = HANDOVER + PAGE_DELAY + WaitingForEach.GAP
    for program in programs:
        assert max(program.times) <= (steps + 1) * (step * US + WaitingForEach.GAP) + 2 * lost + 50 * US


def test_three_programs_take_turns_of_one_step(make_world: MakeWorld) -> None:
    world = make_world()
    programs = stepping(world, *[2 * MS] * 3, cores=33)
    world.run(2 * SECOND)
    assert [full_turns(program) for program in programs] == [{1}] * 3
    assert max(max(program.times) for program in programs) <= 3 * (2 * MS + HANDOVER + PAGE_DELAY + 100 * US)


def test_unequal_steps_get_equal_times(make_world: MakeWorld) -> None:
    """Now and then, the one whose turns are shorter has two of them one after the other."""
    world = make_world()
    stepping(world, 4 * MS, 3 * MS)
    first, second = world.shares(4 * SECOND)
    assert first == pytest.approx(second, rel=0.05)


def test_a_program_of_steps_beside_one_that_is_always_ahead_of_the_card(make_world: MakeWorld) -> None:
    """The neighbour's turns are kept as long as those of the steps."""
    world = make_world()
    Process(world, world.tenant(HALF), 100 * US)
    program = stepping(world, 2 * MS)[0]
    neighbour, steps = world.shares(4 * SECOND)
    assert full_turns(program) <= {1, 2}
    assert steps == pytest.approx(neighbour, rel=0.1)
    assert sum((neighbour, steps)) >= 88


def test_a_step_that_is_far_longer_than_a_turn_is_no_step(make_world: MakeWorld) -> None:
    """Its turn is asked back as any other, and its launches may end it before its middle."""
    world = make_world()
    Process(world, world.tenant(HALF), 100 * US)
    program = Process(world, world.tenant(HALF), MS)
    program.step_ns, program.suitable_turn = 100 * MS, 5 * MS
    world.run(SECOND)
    got = world.shares(2 * SECOND)
    assert got == pytest.approx((48, 48), abs=2)
    assert max(process.waits[-1] for process in world.processes.values()) < 10 * MS


@pytest.mark.heavy
@pytest.mark.parametrize("asked", [demand(30), demand(0, "best-effort")])
def test_turns_of_other_policies_are_as_they_are_without_steps(make_world: MakeWorld, asked: Demand) -> None:
    """A fixed share's client ends its turns itself, and a best-effort tenant is preempted."""
    shares = []
    for is_told in (False, True):
        world = make_world()
        Process(world, world.tenant(HALF), 50 * US)
        program = Stepping(world, world.tenant(asked), 500 * US)
        program.step_ns = program.step_ns if is_told else 0
        world.run(SECOND)
        shares.append(world.shares(2 * SECOND))
    assert shares[0] == shares[1]
