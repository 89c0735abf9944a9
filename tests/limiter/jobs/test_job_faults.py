"""Jobs with a container for each of two simulated cards, a rank of which is late, stopped or killed; or the arbiter is.

The bounds are those of ADR 186, for a busy machine.
"""

import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from simgpu.session import ProbeSession
from tests.arbiter.conftest import Node, built_arbiter, idle_node
from tests.limiter.compute.test_tenants import reached
from tests.limiter.jobs.test_jobs_beside_others import ALONE_S, COLLECTIVE_US, SLOWER, STEPS, Start, start_job, together

pytestmark = pytest.mark.slow

__all__ = ["built_arbiter", "idle_node", "start_job"]  # fixtures

LATE_S, LATE_TIMES, LATE_SHARE = 0.6, 2, 20
SHORT_STEPS, SHORT_WORK_US = 400, 200
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


@pytest.mark.parametrize("policy", ["burst", "fixed"])
@pytest.mark.parametrize("fault", [signal.SIGSTOP, signal.SIGKILL])
def test_a_job_goes_on_beside_one_whose_rank_is_stopped_or_killed(
    start_job: Start, policy: str, fault: signal.Signals
) -> None:
    """The kernels that spin for that rank take every second time slice."""
    broken, job = start_job(50, policy, is_apart=True), start_job(50, policy, is_apart=True)
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
