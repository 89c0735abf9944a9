"""The extender that binds is the one beside the leading kube-scheduler."""

import asyncio
from datetime import UTC, datetime

import pytest

from extender.lead.leadership import Leadership
from extender.lead.scheduler_lease import SchedulerLease, SchedulerMoved
from extender.state.leases import Leases
from extender.state.objects import WatchedLease
from tests.extender.conftest import World
from vgpu.domain import names


def held_by(holder: str) -> Leases:
    leases = Leases(lambda: 0.0)
    leases.put(WatchedLease("vgpu-scheduler", holder, "", 15))
    return leases


@pytest.mark.parametrize(
    ("name", "holder", "host", "expected"),
    [
        ("", "", "pod-a", True),
        ("vgpu-scheduler", "pod-a_1b2c", "pod-a", True),
        ("vgpu-scheduler", "pod-b_1b2c", "pod-a", False),
        ("vgpu-scheduler", "pod_a_1b2c", "pod_a", True),
        ("vgpu-scheduler", "pod-a-2_1b2c", "pod-a", False),
        ("vgpu-scheduler", "", "pod-a", False),
    ],
)
def test_the_holders_host_decides(name: str, holder: str, host: str, *, expected: bool) -> None:
    assert SchedulerLease(held_by(holder), name, host).is_beside_leader() is expected


async def test_the_extender_ends_when_the_scheduler_of_another_host_leads() -> None:
    leases, leads = held_by("pod-a_1"), True
    scheduler = SchedulerLease(leases, "vgpu-scheduler", "pod-a", lambda _: asyncio.sleep(0))
    watching = asyncio.create_task(scheduler.end_when_moved(lambda: leads))
    await asyncio.sleep(0.01)
    leads = False
    leases.put(WatchedLease("vgpu-scheduler", "pod-b_2", "", 15))
    await asyncio.sleep(0.01)
    assert not watching.done()  # a follower stays
    leads = True
    with pytest.raises(SchedulerMoved, match="pod-b"):
        await watching


async def test_a_replica_whose_scheduler_does_not_lead_does_not_take_the_lease(world: World) -> None:
    may_lead = False
    leadership = Leadership(
        world.client,
        world.cluster.leases,
        world.watches.pods,
        namespace=names.NAMESPACE,
        identity="me",
        clock=world.clock,
        now=lambda: datetime.now(UTC),
        may_lead=lambda: may_lead,
        sleep=lambda _: asyncio.sleep(0.01),
    )
    running = asyncio.create_task(leadership.run())
    await asyncio.sleep(0.1)
    assert leadership.refusal().startswith("NotLeader")
    may_lead = True
    await world.until(lambda: not leadership.refusal())
    running.cancel()
