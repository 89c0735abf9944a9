"""Kernels of several cards and processes that wait for each other, and keep their cards busy meanwhile."""

import time

import pytest

from simgpu.session import ProbeSession
from simgpu.world import World

pytestmark = pytest.mark.slow

GROUP = 5


def started(world: World, *devices: int, ranks: int = 2, us: int = 1000) -> ProbeSession:
    session = world.session()
    assert session("start()") == 0
    for device in devices:
        session(f"collectives.prepare({device}, {ranks}, {us})")
    return session


def joined(session: ProbeSession, device: int, number: int = 0, group: int = GROUP) -> None:
    assert session(f"collectives.rank({device}).join({group}, {number})") == 0


def is_done(session: ProbeSession, device: int) -> bool:
    return bool(session(f"collectives.rank({device}).is_done()"))


def seconds_to_end(session: ProbeSession, device: int) -> float:
    begun = time.monotonic()
    return float(session(f"collectives.rank({device}).wait()")) - begun


def test_a_rank_s_kernel_ends_when_all_ranks_have_begun(world: World) -> None:
    session = started(world, 0, 1)
    joined(session, 0)
    time.sleep(0.05)
    assert not is_done(session, 0)
    joined(session, 1)
    assert seconds_to_end(session, 0) < 1
    assert seconds_to_end(session, 1) < 1


def test_ranks_may_be_processes(world: World) -> None:
    first, second = started(world, 0), started(world, 1)
    for number in range(3):
        joined(first, 0, number)
    time.sleep(0.05)
    assert not is_done(first, 0)
    for number in range(3):
        joined(second, 1, number)
    assert seconds_to_end(first, 0) < 1
    assert seconds_to_end(second, 1) < 1


def test_a_rank_is_late_by_the_work_before_its_kernel(world: World) -> None:
    session = started(world, 0, 1)
    assert session("collectives.rank(1).work(200_000)") == 0
    joined(session, 0)
    joined(session, 1)
    assert 0.15 < seconds_to_end(session, 0) < 1


def test_other_collectives_release_nothing(world: World) -> None:
    session = started(world, 0, 1)
    joined(session, 0)
    joined(session, 1, 1)
    time.sleep(0.05)
    assert not is_done(session, 0)
    joined(session, 1, 0, GROUP + 1)
    time.sleep(0.05)
    assert not is_done(session, 0)


def test_a_kernel_that_spins_takes_slices_from_other_processes(world: World) -> None:
    spinning, other = started(world, 0), started(world, 0)
    other("collectives.rank(0).work(1000), collectives.rank(0).wait()")
    begun = time.monotonic()
    other("collectives.rank(0).work(200_000), collectives.rank(0).wait()")
    alone = time.monotonic() - begun
    joined(spinning, 0)
    begun = time.monotonic()
    other("collectives.rank(0).work(200_000), collectives.rank(0).wait()")
    assert time.monotonic() - begun > 1.8 * alone


def test_after_the_death_of_a_rank_the_others_spin_on(world: World) -> None:
    first, second = started(world, 0), started(world, 1)
    joined(first, 0)
    second.process.kill()
    second.process.wait()
    time.sleep(0.05)
    assert not is_done(first, 0)


def test_steps_of_two_cards_take_as_long_as_those_of_one(world: World) -> None:
    session = started(world, 0, 1)
    session("collectives.steps(3, 1000)")
    assert session("collectives.steps(50, 4000)") == pytest.approx(50 * 0.005, rel=0.3)
