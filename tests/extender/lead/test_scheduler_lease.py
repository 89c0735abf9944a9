"""The extender that binds is the one beside the leading kube-scheduler."""

import asyncio
import logging
import random
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path

import pytest

from extender import assembly
from extender.clocks import Clocks
from extender.lead import scheduler_lease
from extender.lead.leadership import Leadership
from extender.lead.scheduler_lease import SchedulerLease, SchedulerMoved
from extender.settings import ExtenderSettings
from extender.state.leases import Leases
from extender.state.objects import WatchedLease
from tests.extender.conftest import World
from vgpu.adapters.kubernetes import lease
from vgpu.adapters.kubernetes.client import KubernetesClient
from vgpu.domain import names
from vgpu.domain.errors import KubernetesError
from vgpu.domain.identifiers import Namespace

KUBE_SYSTEM = Namespace("kube-system")
FOLLOWED = f"{KUBE_SYSTEM}/kube-scheduler"


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
    assert SchedulerLease(held_by(holder), names.NAMESPACE, name, host).is_beside_leader() is expected


async def test_the_extender_ends_when_the_scheduler_of_another_host_leads() -> None:
    leases, leads = held_by("pod-a_1"), True
    scheduler = SchedulerLease(leases, names.NAMESPACE, "vgpu-scheduler", "pod-a", lambda _: asyncio.sleep(0))
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


@pytest.mark.parametrize(
    ("written", "namespace", "name"),
    [
        ("", "gpus", ""),
        ("vgpu-scheduler", "gpus", "vgpu-scheduler"),
        ("gpus/vgpu-scheduler", "gpus", "vgpu-scheduler"),
        (FOLLOWED, KUBE_SYSTEM, "kube-scheduler"),
    ],
)
def test_a_lease_is_named_alone_or_with_its_namespace(written: str, namespace: str, name: str) -> None:
    settings = ExtenderSettings.model_validate({"namespace": "gpus", "scheduler_lease": written})
    assert settings.scheduler_lease_at == (namespace, name)


@pytest.mark.parametrize("written", ["/kube-scheduler", "kube-system/", "a/b/c", "Kube-System/x", "x y", "-x", "a.b/c"])
def test_what_names_no_lease_is_refused_with_words(written: str) -> None:
    with pytest.raises(ValueError, match=r"must be NAME or NAMESPACE/NAME of a Lease, such as .* kube-system/kube-"):
        ExtenderSettings.model_validate({"scheduler_lease": written})


def observers(world: World, client: KubernetesClient) -> assembly.Observers:
    """What an extender watches that follows the Lease of kube-schedulers in another namespace."""
    clocks = Clocks(world.clock, lambda: datetime.now(UTC), world.clock.sleep)
    return assembly.Observers(client, ExtenderSettings.model_construct(scheduler_lease=FOLLOWED), clocks, random.random)


async def renew(client: KubernetesClient, namespace: Namespace, name: str, holder: str) -> None:
    await lease.renew(client, namespace, name, holder, 15, datetime.now(UTC), is_expired=lambda _: True)


async def test_one_lease_of_another_namespace_is_watched_and_no_other(world: World) -> None:
    for namespace, name in ((KUBE_SYSTEM, "kube-controller-manager"), (names.NAMESPACE, "kube-scheduler")):
        await renew(world.client, namespace, name, "elsewhere_1")
    seen = observers(world, world.client)
    scheduler = SchedulerLease(seen.scheduler_leases, KUBE_SYSTEM, "kube-scheduler", "control-plane-1")
    watching = asyncio.create_task(seen.watches.run())
    await seen.watches.wait()
    await world.until(seen.watches.by_name["scheduler-lease"].synced.is_set)
    assert list(seen.scheduler_leases.names()) == []  # neither that name in our namespace, nor others in that one
    await renew(world.client, KUBE_SYSTEM, "kube-scheduler", "control-plane-1_a")
    await world.until(scheduler.is_beside_leader)
    await renew(world.client, KUBE_SYSTEM, "kube-scheduler", "control-plane-2_b")
    await world.until(lambda: not scheduler.is_beside_leader())
    assert list(seen.scheduler_leases.names()) == ["kube-scheduler"]
    await world.client.delete(lease.path(KUBE_SYSTEM, "kube-scheduler"), {})
    await world.until(lambda: not seen.scheduler_leases.names())
    watching.cancel()


class WithoutTheRight(KubernetesClient):
    """A client that may not read the Leases of kube-system."""

    async def page(self, path: str, params: Mapping[str, str], most: int) -> bytes | None:
        if KUBE_SYSTEM in path:
            raise KubernetesError(403, "Forbidden", 'leases "kube-scheduler" is forbidden')
        return await super().page(path, params, most)


async def test_a_lease_that_may_not_be_read_is_told_and_the_extender_answers(
    world: World, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """As without any kube-scheduler's Lease: ready, and no leader."""
    async with await WithoutTheRight.connect(str(tmp_path / "kubeconfig"), user_agent="test") as client:  # of `world`
        seen = observers(world, client)
        watching = asyncio.create_task(seen.watches.run())
        await seen.watches.wait()
        assert seen.watches.is_synced
        scheduler = SchedulerLease(
            seen.scheduler_leases, KUBE_SYSTEM, "kube-scheduler", "a", lambda _: asyncio.sleep(0)
        )
        telling = asyncio.create_task(scheduler.end_when_moved(lambda: False))
        await world.until(lambda: f"no pod is bound: Lease {FOLLOWED}" in caplog.text)
        assert "403 Forbidden" in caplog.text
        assert not scheduler.is_beside_leader()
        for task in (telling, watching):
            task.cancel()


async def test_an_unknown_leader_is_told_once_after_ten_seconds(caplog: pytest.LogCaptureFixture) -> None:
    checks = 0

    async def slept(seconds: float) -> None:
        nonlocal checks
        checks += 1
        assert (scheduler_lease.__name__ in caplog.text) == (checks * seconds > 9.9)
        if checks > 3 * scheduler_lease.TOLD_AFTER:
            raise TimeoutError

    scheduler = SchedulerLease(Leases(lambda: 0.0), KUBE_SYSTEM, "kube-scheduler", "a", slept)
    with caplog.at_level(logging.ERROR), pytest.raises(TimeoutError):
        await scheduler.end_when_moved(lambda: False)
    assert len(caplog.records) == 1
