"""Jobs whose steps end with a collective, beside others on the same two simulated cards (ADR 179, ADR 183).

Times are loose, because the machine may be busy. `tests/arbiter` tests when jobs have their turns, exactly.
"""

import itertools
import signal
import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import pytest

from limiter import launch
from simgpu.session import ProbeSession
from simgpu.world import World
from tests.arbiter.conftest import Container as Folder
from tests.arbiter.conftest import Node, built_arbiter, idle_node, until
from tests.limiter.compute.test_tenants import reached
from vgpu.domain.asks.policy import ComputePolicy
from vgpu.domain.formats.limits import CardLimit, Limits

pytestmark = pytest.mark.slow

__all__ = ["built_arbiter", "idle_node"]  # fixtures

GIB = 1 << 30
STEPS, WORK_US, COLLECTIVE_US = 40, 8000, 1000
ALONE_S = STEPS * (WORK_US + COLLECTIVE_US) / 1e6
SLOWER, MUCH_SLOWER = 1.3, 1.5  # a busy machine
LAUNCH_S = 0.015
LONGEST_STEP_S = 2.0  # at a share of 10 %, on average 0.09


@dataclass(frozen=True, slots=True)
class Job:
    """A job in a container for all cards, or in one for each card."""

    sessions: list[ProbeSession]
    group: int

    def tell(self, load: str, count: int = STEPS) -> None:
        for session in self.sessions:
            session.tell(f"collectives.{load}({count}, {WORK_US}, {self.group})")

    def seconds(self) -> float:
        return max(float(session.answer()) for session in self.sessions)


Start = Callable[..., Job]


@pytest.fixture
def start_job(world: World, idle_node: Node) -> Start:
    """Starts a container with a job on both cards; each job has collectives of its own."""
    idle_node.start()
    groups = itertools.count(1000)

    def container(cores: int, policy: str, devices: Sequence[int], name: bytes | None = None) -> ProbeSession:
        cards = tuple(CardLimit(world.cards[device].uuid, 4 * GIB, cores) for device in devices)
        folder: Folder = idle_node.add(Limits(cards, ComputePolicy(policy), job=name))
        until(folder.socket.exists)
        env = {**launch.variables(folder.folder, {}), "VGPU_ARBITER_SOCKET": str(folder.socket)}
        session = world.session(**env)
        for device in devices:
            assert session(f"start({device})") == 0
            session(f"collectives.prepare({device}, 2, {COLLECTIVE_US})")
        assert set(session("collectives.link()")) <= {0}
        return session

    def started(cores: int, policy: str, *, is_apart: bool = False) -> Job:
        group = next(groups)
        name = group.to_bytes(16, "little")
        sets = [(0,), (1,)] if is_apart else [(0, 1)]
        sessions = [container(cores, policy, devices, name if is_apart else None) for devices in sets]
        job = Job(sessions, group)
        job.tell("steps", 10)
        job.seconds()
        return job

    return started


def together(first: Job, second: Job, load: str) -> float:
    """Seconds of STEPS steps of both jobs at the same time."""
    for job in (first, second):
        job.tell(load)
    return max(job.seconds() for job in (first, second))


@pytest.mark.parametrize("policy", ["burst", "fixed"])
@pytest.mark.parametrize("load", ["steps", "steps_in_threads"])
def test_two_jobs_with_half_of_the_cards_each_do_half_of_their_steps(start_job: Start, policy: str, load: str) -> None:
    """Before, collectives of both spun at the same time: 1.4 to 3 times as long, always."""
    slower = MUCH_SLOWER if (policy, load) == ("fixed", "steps_in_threads") else SLOWER
    jobs = start_job(50, policy), start_job(50, policy)
    together(*jobs, load)
    assert reached(lambda: together(*jobs, load) <= 2 * slower * ALONE_S)


@pytest.mark.parametrize("policy", ["burst", "fixed"])
def test_two_jobs_with_a_container_for_each_card_do_half_of_their_steps(start_job: Start, policy: str) -> None:
    """Before, each container's card had its turns by itself, and they took 1.6 to 3 times as long."""
    jobs = start_job(50, policy, is_apart=True), start_job(50, policy, is_apart=True)
    together(*jobs, "steps")
    assert reached(lambda: together(*jobs, "steps") <= 2 * SLOWER * ALONE_S)


def test_a_launch_that_a_card_of_its_own_process_spins_for_waits_for_no_turn(start_job: Start) -> None:
    """Before, it waited for the other job's turn to end, beside which the first card spun in every second time slice.

    Where one thread launched for one card after the other, each turn ended so, and two jobs did 0.6 of their steps.
    """
    job, other = start_job(50, "burst"), start_job(50, "burst")
    (session,) = job.sessions

    def are_short() -> bool:
        other.tell("steps", 100)
        took = session(f"collectives.late_launches(20, 0.02, {job.group + 500})")
        other.seconds()
        return bool(statistics.median(took) < LAUNCH_S)

    assert reached(are_short)


@pytest.mark.parametrize("beside", [0, 80])
def test_no_step_of_a_job_with_a_tenth_of_the_cards_comes_near_a_time_out(start_job: Start, beside: int) -> None:
    """Frameworks give collectives 30 s to 10 minutes; docs/jobs.md says what small shares add."""
    job, other = start_job(10, "fixed"), start_job(beside, "burst") if beside else None
    took = []
    for _ in range(STEPS):
        if other is not None:
            other.tell("steps")
        job.tell("steps", 1)
        took.append(job.seconds())
        if other is not None:
            other.seconds()
    assert max(took) < LONGEST_STEP_S


@pytest.mark.parametrize("cores", [50, 20])
def test_a_job_with_a_container_for_each_card_that_is_alone_has_its_fixed_share(start_job: Start, cores: int) -> None:
    """Before, with 50 % it took twice as long as that, and with 20 % ten times."""
    job = start_job(cores, "fixed", is_apart=True)

    def is_kept() -> bool:
        job.tell("steps")
        return job.seconds() <= 100 / cores * SLOWER * ALONE_S

    assert reached(is_kept)


def test_jobs_go_on_when_the_arbiter_is_killed_and_starts_again(start_job: Start, idle_node: Node) -> None:
    jobs = start_job(50, "burst"), start_job(50, "burst")
    together(*jobs, "steps_in_threads")
    for job in jobs:
        job.tell("steps_in_threads")
    idle_node.end(signal.SIGKILL)
    idle_node.start()
    assert max(job.seconds() for job in jobs) < 20
    assert reached(lambda: together(*jobs, "steps_in_threads") <= 2 * SLOWER * ALONE_S)
