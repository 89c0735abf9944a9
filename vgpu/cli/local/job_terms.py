"""What counts for all containers of a job on this machine: the lowest share and priority, and the weakest policy. Pure.

The arbiter holds a job to these (ADR 183), so that none of its containers has turns by the claims of another one.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from vgpu.cli.local.allocations import MachineAllocation
from vgpu.domain.asks.policy import ComputePolicy

_STRENGTH: Final = (ComputePolicy.BEST_EFFORT, ComputePolicy.FIXED, ComputePolicy.BURST)  # the weakest first


@dataclass(frozen=True, slots=True)
class JobTerms:
    """A share in percent of each card, a compute policy and a priority: `fixed 30, priority 0`."""

    cores: int
    policy: ComputePolicy
    priority: int

    def __str__(self) -> str:
        return f"{self.policy} {self.cores}, priority {self.priority}"


def job_of(allocation: MachineAllocation) -> str:
    """Return the first digits of what names an allocation's job; empty where it is of none."""
    return allocation.limits.job.hex()[:8] if allocation.limits is not None and allocation.limits.job else ""


def weakest(policies: Sequence[ComputePolicy]) -> ComputePolicy:
    """Return the weakest of at least one policy."""
    return min(policies, key=_STRENGTH.index)


def terms(members: Sequence[MachineAllocation]) -> JobTerms | None:
    """Return the terms of a job; None where its limits cannot be read."""
    found = [member.limits for member in members if member.limits is not None]
    cores = [card.cores for one in found for card in one.cards]
    if not cores:
        return None
    return JobTerms(min(cores), weakest([one.compute_policy for one in found]), min(one.priority for one in found))


def told(folder: Path, every: Sequence[MachineAllocation]) -> str:
    """Say what counts for the job of an allocation whose limits were changed; empty where it is of no larger job."""
    changed = next((allocation for allocation in every if allocation.folder.name == folder.name), None)
    job = job_of(changed) if changed is not None else ""
    members = [allocation for allocation in every if job and job_of(allocation) == job]
    together = terms(members)
    if len(members) < 2 or together is None:  # noqa: PLR2004 - a job of one container has its own terms
        return ""
    names = ", ".join(sorted(member.name for member in members if member.folder.name != folder.name))
    return (
        f"{folder.name[:8]} is of job {job}, with {names}. The lowest share and priority and the weakest policy of its "
        f"containers count for all of them: {together}"
    )
