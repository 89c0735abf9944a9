"""Which replica binds: the Lease of the extender, and the wait at a change of leader."""

import asyncio
from datetime import UTC, datetime

import pytest

from extender import leadership
from extender.leadership import Leadership
from tests.extender.conftest import World
from vgpu import names
from vgpu.adapters.kubernetes import lease
from vgpu.errors import KubernetesError


class Relists:
    """Counts calls of relist."""

    def __init__(self) -> None:
        self.count = 0

    async def relist(self) -> None:
        self.count += 1


class Candidate:
    """One replica; its sleeps return at once and are recorded."""

    def __init__(self, world: World, identity: str) -> None:
        self.pods = Relists()
        self.slept: list[float] = []
        self.leadership = Leadership(
            world.client,
            world.cluster.leases,
            self.pods,
            namespace=names.NAMESPACE,
            identity=identity,
            handover_s=5.0,
            clock=world.clock,
            now=lambda: datetime.now(UTC),
            sleep=self._sleep,
        )

    async def _sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        await asyncio.sleep(0)

    async def renew(self) -> str:
        await self.leadership._renew()
        for _ in range(5):
            await asyncio.sleep(0)
        return self.leadership.refusal()


async def until_watched(world: World, holder: str) -> None:
    def is_watched() -> bool:
        lease = world.cluster.leases.get(leadership.LEASE)
        return lease is not None and lease.holder == holder

    await world.until(is_watched)


async def test_the_first_replica_binds_at_once_and_the_second_does_not(world: World) -> None:
    first, second = Candidate(world, "a"), Candidate(world, "b")
    assert await first.renew() == ""
    assert first.slept == []
    assert (await second.renew()).startswith("NotLeader")
    assert await first.renew() == ""


async def test_taking_over_an_expired_lease_waits_and_lists_again(world: World) -> None:
    first, second = Candidate(world, "a"), Candidate(world, "b")
    await first.renew()
    await until_watched(world, "a")
    assert (await second.renew()).startswith("NotLeader")
    world.clock.seconds += leadership.DURATION_S + 1
    assert await second.renew() == ""
    assert second.slept == [5.0]
    assert second.pods.count == 1
    assert first.leadership.refusal().startswith("NotLeader")
    await until_watched(world, "b")
    assert (await first.renew()).startswith("NotLeader")


async def test_a_lease_that_was_renewed_but_not_watched_is_not_taken(world: World) -> None:
    """The watch may lag: a Lease is taken over only if the record just read is the record that stayed unchanged."""
    first, second = Candidate(world, "a"), Candidate(world, "b")
    await first.renew()
    await until_watched(world, "a")
    stale = world.cluster.leases.get(leadership.LEASE)
    assert stale is not None
    await asyncio.sleep(0.01)
    await first.renew()
    await world.until(lambda: world.cluster.leases.get(leadership.LEASE) != stale)
    world.cluster.leases.put(stale)
    world.clock.seconds += leadership.DURATION_S + 1
    assert (await second.renew()).startswith("NotLeader")


async def test_a_restarted_holder_waits_for_the_calls_of_its_former_process(world: World) -> None:
    await Candidate(world, "a").renew()
    await until_watched(world, "a")
    again = Candidate(world, "a")
    assert await again.renew() == ""
    assert again.slept == [5.0]


async def test_a_released_lease_is_taken_without_a_wait(world: World) -> None:
    first, second = Candidate(world, "a"), Candidate(world, "b")
    await first.renew()
    await first.leadership.resign()
    assert first.leadership.refusal().startswith("NotLeader")
    await until_watched(world, "")
    assert await second.renew() == ""
    assert second.slept == []


async def test_a_holder_that_cannot_renew_stops_when_its_lease_expires(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = Candidate(world, "a")
    await first.renew()

    async def unreachable(*_: object, **__: object) -> None:
        raise KubernetesError(0, "ClientConnectorError", "")

    monkeypatch.setattr(lease, "renew", unreachable)
    world.clock.seconds += leadership.DURATION_S - 1
    assert await first.renew() == ""
    world.clock.seconds += 2
    assert (await first.renew()).startswith("NotLeader")
