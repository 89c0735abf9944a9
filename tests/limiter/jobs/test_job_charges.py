"""What jobs are charged beside each other: little more than their kernels, because no card spins for long (ADR 196)."""

import pytest

from tests.arbiter.conftest import Container as Folder
from tests.arbiter.conftest import Node, built_arbiter, idle_node
from tests.limiter.compute.test_tenants import reached
from tests.limiter.jobs.test_jobs_beside_others import COLLECTIVE_US, STEPS, WORK_US, Start, start_job, together
from vgpu.domain.formats import region

pytestmark = pytest.mark.slow

__all__ = ["built_arbiter", "idle_node", "start_job"]  # fixtures


def charged_ns(folders: list[Folder]) -> list[int]:
    """GPU time that each container was charged on each of its cards."""
    return [card.gpu_ns for one in folders for card in region.decode((one.folder / "region").read_bytes()).cards]


@pytest.mark.parametrize(("is_apart", "times"), [(False, 1.15), (True, 1.3)])
def test_two_jobs_are_charged_little_more_than_their_kernels(
    start_job: Start, idle_node: Node, times: float, *, is_apart: bool
) -> None:
    """Where each card had turns by itself, each was charged for two to four times as much."""
    jobs = start_job(50, "fixed", is_apart=is_apart), start_job(50, "fixed", is_apart=is_apart)
    kernels_ns = STEPS * (WORK_US + COLLECTIVE_US) * 1000

    def is_little() -> bool:
        before = charged_ns(idle_node.containers)
        together(*jobs, "steps")
        charged = [after - former for former, after in zip(before, charged_ns(idle_node.containers), strict=True)]
        assert min(charged) >= 0.8 * kernels_ns  # the last turns are charged later
        return max(charged) <= times * kernels_ns

    assert reached(is_little)
