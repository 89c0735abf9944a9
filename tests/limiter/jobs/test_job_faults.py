"""Jobs with a container for each of two simulated cards, a rank of which is late, stopped or killed; or the arbiter is.

The bounds are those of ADR 186, for a busy machine.
"""

import signal
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import pytest

from limiter import launch
from simgpu.session import ProbeSession
from simgpu.world import World
from tests.arbiter.conftest import Container as Folder
from tests.arbiter.conftest import Node, built_arbiter, idle_node, until
from tests.limiter.compute.test_tenants import reached
from tests.limiter.jobs.endless_kernels import EndlessKernels
from tests.limiter.jobs.test_jobs_beside_others import (
    ALONE_S,
    COLLECTIVE_US,
    GIB,
    SLOWER,
    STEPS,
    Job,
    Start,
    start_job,
    together,
)
from tests.limiter.jobs.test_linked_job import open_memory
from vgpu.domain.asks.policy import ComputePolicy
from vgpu.domain.formats.limits import CardLimit, Limits

pytestmark = pytest.mark.slow

__all__ = ["built_arbiter", "idle_node", "start_job"]  # fixtures

LATE_S, LATE_TIMES, LATE_SHARE = 0.6, 2, 20
SHORT_STEPS, SHORT_WORK_US = 400, 200
LATE_BESIDE_S = 3.0
TIME_SLICES = 2.5  # how much slower a job is beside kernels that spin for a rank without end


@contextmanager
def stopped(rank: ProbeSession) -> Iterator[None]:
    rank.process.send_signal(signal.SIGSTOP)
    try:
        yield
    finally:
        rank.process.send_signal(signal.SIGCONT)


def test_a_rank_that_is_late_costs_its_job_one_pause(start_job: Start) -> None:
    """The other card spins meanwhile, and repays that. Before, each card then waited for the other one's debts in turn.

    With 20 %, such waits were longer each time: 5 s and more after 0.6 s.
    """
    job = start_job(LATE_SHARE, "fixed", is_apart=True)
    alone_s = SHORT_STEPS * (SHORT_WORK_US + COLLECTIVE_US) / 1e6
    begun = time.monotonic()
    for rank in job.sessions:
        rank.tell(f"collectives.steps({SHORT_STEPS}, {SHORT_WORK_US}, {job.group})")
    for number in range(LATE_TIMES):
        time.sleep(0.3 + number * LATE_S * 100 / LATE_SHARE)
        with stopped(job.sessions[number % 2]):
            time.sleep(LATE_S)
    job.seconds()
    pauses = LATE_TIMES * LATE_S * 100 / LATE_SHARE
    assert time.monotonic() - begun <= 100 / LATE_SHARE * SLOWER * alone_s + pauses + 1


@pytest.mark.parametrize("is_apart", [True, False])
@pytest.mark.parametrize("policy", ["burst", "fixed"])
@pytest.mark.parametrize("fault", [signal.SIGSTOP, signal.SIGKILL])
def test_a_job_goes_on_beside_one_whose_rank_is_stopped_or_killed(
    start_job: Start, world: World, idle_node: Node, fault: signal.Signals, policy: str, *, is_apart: bool
) -> None:
    """The kernels that spin for that rank take every second time slice."""
    broken, _ = start_ranks(world, idle_node, 77, policy, (0, 1), is_apart=is_apart)
    job = start_job(50, policy, is_apart=is_apart)
    together(broken, job, "steps")
    broken.tell("steps", 10_000)
    time.sleep(0.1)
    rank = broken.sessions[0]
    rank.process.send_signal(fault)

    def goes_on() -> bool:
        job.tell("steps")
        return job.seconds() <= 2 * TIME_SLICES * ALONE_S

    assert reached(goes_on)
    for session in broken.sessions:
        session.process.kill()


def start_ranks(
    world: World, node: Node, number: int, policy: str, devices: Sequence[int], *, is_apart: bool
) -> tuple[Job, list[Folder]]:
    """A job with a process for each of these devices: in containers of their own, or in one."""
    name = number.to_bytes(16, "little")
    sets = [[device] for device in devices] if is_apart else [list(devices)]
    folders, sessions = [], []
    for held in sets:
        cards = tuple(CardLimit(world.cards[device].uuid, 4 * GIB, 50) for device in sorted(set(held)))
        folders.append(node.add(Limits(cards, ComputePolicy(policy), job=name if is_apart else None)))
        until(folders[-1].socket.exists)
        sessions += [start_rank(world, folders[-1], device, len(devices)) for device in held]
    if not is_apart:
        open_memory(sessions[:2])
    return Job(sessions, number), folders


def start_rank(world: World, folder: Folder, device: int, ranks: int) -> ProbeSession:
    session = world.session(**launch.variables(folder.folder, {}) | {"VGPU_ARBITER_SOCKET": str(folder.socket)})
    assert session(f"start({device})") == 0
    session(f"collectives.prepare({device}, {ranks}, {COLLECTIVE_US})")
    return session


@pytest.mark.parametrize("is_apart", [True, False])
@pytest.mark.parametrize("policy", ["burst", "fixed"])
@pytest.mark.parametrize("fault", [signal.SIGKILL, signal.SIGSTOP])
def test_a_rank_that_waits_for_one_that_is_gone_is_told_of_within_ten_seconds(
    start_job: Start, world: World, idle_node: Node, fault: signal.Signals, policy: str, *, is_apart: bool
) -> None:
    """Its host launches far ahead, as training does. The other job has what the time slices leave."""
    job = start_job(50, policy)
    broken, own = start_ranks(world, idle_node, 77, policy, (0, 1), is_apart=is_apart)
    names = {"other": (idle_node.containers[0], job.sessions)} | {
        f"rank-{number}": (folder, broken.sessions[number : number + 1] if is_apart else broken.sessions)
        for number, folder in enumerate(own)
    }
    together(broken, job, "steps")
    broken.tell("steps", 10_000)
    job.tell("steps", 10_000)
    time.sleep(0.3)
    broken.sessions[0].process.send_signal(fault)
    found = EndlessKernels(world, names).found_within(10)
    assert found == [("rank-1" if is_apart else "rank-0", world.cards[1].uuid)]


@pytest.mark.parametrize("is_apart", [True, False])
def test_a_rank_that_is_late_beside_another_job_goes_on_with_it(
    start_job: Start, world: World, idle_node: Node, *, is_apart: bool
) -> None:
    """As one that waits for data or writes a checkpoint. The other job goes on meanwhile, and then both share again."""
    late, _ = start_ranks(world, idle_node, 77, "burst", (0, 1), is_apart=is_apart)
    job = start_job(50, "burst", is_apart=is_apart)
    together(late, job, "steps")
    late.tell("steps")
    with stopped(late.sessions[0]):
        until_s = time.monotonic() + LATE_BESIDE_S
        while time.monotonic() < until_s:
            job.tell("steps", 10)
            job.seconds()
    assert late.seconds() <= LATE_BESIDE_S + 2 * SLOWER * ALONE_S + 1
    assert reached(lambda: together(late, job, "steps") <= 2 * SLOWER * ALONE_S)


@pytest.mark.parametrize("is_apart", [True, False])
@pytest.mark.parametrize("policy", ["burst", "fixed"])
def test_ranks_that_are_started_again_have_their_turns_together(
    start_job: Start, world: World, idle_node: Node, policy: str, *, is_apart: bool
) -> None:
    """As elastic training does after a rank was killed: the others end, and all come back in their containers."""
    broken, folders = start_ranks(world, idle_node, 77, policy, (0, 1), is_apart=is_apart)
    job = start_job(50, policy, is_apart=is_apart)
    before_s = min(together(broken, job, "steps") for _ in range(3))
    broken.tell("steps", 10_000)
    job.tell("steps", 10)
    time.sleep(0.1)
    broken.sessions[0].kill()
    job.seconds()
    broken.sessions[1].kill()
    places = zip((0, 1), folders if is_apart else 2 * folders, strict=True)
    again = Job([start_rank(world, folder, device, 2) for device, folder in places], 78)
    if not is_apart:
        open_memory(again.sessions)
    assert reached(lambda: together(again, job, "steps") <= SLOWER * max(before_s, 2 * ALONE_S))


@pytest.mark.parametrize("is_apart", [True, False])
def test_two_ranks_on_one_card_leave_another_job_its_half(
    start_job: Start, world: World, idle_node: Node, *, is_apart: bool
) -> None:
    """NCCL refuses this. Their collectives wait for each other on the card, of which each has turns by itself."""
    crowded, _ = start_ranks(world, idle_node, 77, "burst", (0, 1, 1), is_apart=is_apart)
    job = start_job(50, "burst", is_apart=is_apart)
    crowded.tell("steps", 10_000)

    def goes_on() -> bool:
        job.tell("steps")
        return job.seconds() <= 2 * TIME_SLICES * ALONE_S

    assert reached(goes_on)
    for session in crowded.sessions:
        session.process.kill()
    assert reached(lambda: alone_s(job) <= SLOWER * ALONE_S)


def alone_s(job: Job) -> float:
    job.tell("steps")
    return job.seconds()


def test_jobs_that_work_have_no_endless_kernels(start_job: Start, idle_node: Node, world: World) -> None:
    jobs = [start_job(50, policy, is_apart=is_apart) for policy, is_apart in (("burst", False), ("fixed", True))]
    owners = [jobs[0].sessions, *([session] for session in jobs[1].sessions)]
    names = {str(number): held for number, held in enumerate(zip(idle_node.containers, owners, strict=True))}
    for job in jobs:
        job.tell("steps", 1000)
    assert EndlessKernels(world, names).found_within(9) == []


@pytest.mark.parametrize("policy", ["burst", "fixed"])
def test_jobs_of_containers_go_on_when_the_arbiter_is_killed_and_starts_again(
    start_job: Start, idle_node: Node, policy: str
) -> None:
    jobs = start_job(50, policy, is_apart=True), start_job(50, policy, is_apart=True)
    together(*jobs, "steps")
    for job in jobs:
        job.tell("steps", 3 * STEPS)
    time.sleep(0.5)
    idle_node.end(signal.SIGKILL)
    time.sleep(0.5)
    idle_node.start()
    assert max(job.seconds() for job in jobs) < 20
    assert reached(lambda: together(*jobs, "steps") <= 2 * SLOWER * ALONE_S)
