"""Which replica binds: the Lease of the extender, and the wait at a change of leader."""

import asyncio
from datetime import UTC, datetime
from typing import Any

import pytest

from extender.lead import leadership
from extender.lead.binding_outcome import REQUEST_EXPIRY_S
from extender.lead.leadership import Leadership
from tests.extender.conftest import World
from vgpu.adapters.kubernetes import lease
from vgpu.domain import names
from vgpu.domain.errors import KubernetesError


class Relists:
    """Counts calls of relist."""

    def __init__(self) -> None:
        self.count = 0

    async def relist(self) -> None:
        self.count += 1


class Candidate:
    """One replica; its sleeps return at once and are recorded."""

    def __init__(self, world: World, identity: str, predecessor: str = "") -> None:
        self.pods = Relists()
        self.slept: list[float] = []
        self.leadership = Leadership(
            world.client,
            world.cluster.leases,
            self.pods,
            namespace=names.NAMESPACE,
            identity=identity,
            clock=world.clock,
            now=lambda: datetime.now(UTC),
            predecessor=predecessor,
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


async def test_the_lease_of_a_process_that_has_ended_is_taken_at_once_and_its_bindings_are_waited_for(
    world: World,
) -> None:
    killed, following = Candidate(world, "a"), Candidate(world, "b", predecessor="a")
    await killed.renew()
    await until_watched(world, "a")
    running = asyncio.create_task(following.leadership.run())
    await world.until(lambda: not following.leadership.refusal())
    running.cancel()
    assert REQUEST_EXPIRY_S in following.slept
    assert following.pods.count == 1
    assert leadership.LOOK_S not in following.slept


async def test_the_end_of_a_process_frees_no_lease_that_another_replica_holds(world: World) -> None:
    other, following = Candidate(world, "c"), Candidate(world, "b", predecessor="a")
    await other.renew()
    await until_watched(world, "c")
    assert (await following.renew()).startswith("NotLeader")


async def test_taking_over_an_expired_lease_waits_and_lists_again(world: World) -> None:
    first, second = Candidate(world, "a"), Candidate(world, "b")
    await first.renew()
    await until_watched(world, "a")
    assert (await second.renew()).startswith("NotLeader")
    world.clock.seconds += leadership.DURATION_S + 1
    assert await second.renew() == ""
    assert second.slept == [REQUEST_EXPIRY_S - 1]  # from the end of the Lease on
    assert second.pods.count == 1
    assert first.leadership.refusal().startswith("NotLeader")
    await until_watched(world, "b")
    assert (await first.renew()).startswith("NotLeader")


async def test_bindings_that_have_expired_before_the_lease_is_taken_need_no_wait(world: World) -> None:
    first, second = Candidate(world, "a"), Candidate(world, "b")
    await first.renew()
    await until_watched(world, "a")
    world.clock.seconds += leadership.DURATION_S + REQUEST_EXPIRY_S + 1
    assert await second.renew() == ""
    assert (second.slept, second.pods.count) == ([0.0], 1)


async def test_a_replica_asks_for_the_lease_only_where_the_watch_shows_it_free(world: World) -> None:
    first, second = Candidate(world, "a"), Candidate(world, "b")
    await first.renew()
    await until_watched(world, "a")
    following = asyncio.create_task(second.leadership.run())
    await asyncio.sleep(0.02)
    assert set(second.slept) == {leadership.LOOK_S}
    await first.leadership.resign()
    await until_watched(world, "b")
    await world.until(lambda: second.leadership.refusal() == "")
    following.cancel()


async def test_a_replica_that_has_resigned_takes_the_lease_no_more(world: World) -> None:
    first = Candidate(world, "a")
    leading = asyncio.create_task(first.leadership.run())
    await until_watched(world, "a")
    await first.leadership.resign()
    await until_watched(world, "")
    await asyncio.sleep(0.02)
    assert not leading.done()
    released = world.cluster.leases.get(leadership.LEASE)
    assert released is not None
    assert released.holder == ""
    leading.cancel()


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


async def test_a_takeover_without_an_answer_is_still_a_takeover(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    first, second = Candidate(world, "a"), Candidate(world, "b")
    await first.renew()
    await until_watched(world, "a")
    world.clock.seconds += leadership.DURATION_S + 1
    renew = lease.renew

    async def unanswered(*args: Any, **keywords: Any) -> None:
        await renew(*args, **keywords)
        raise KubernetesError(0, "TimeoutError", "")

    monkeypatch.setattr(lease, "renew", unanswered)
    assert (await second.renew()).startswith("NotLeader")
    monkeypatch.setattr(lease, "renew", renew)
    assert await second.renew() == ""
    assert second.slept == [REQUEST_EXPIRY_S]


async def test_a_released_lease_is_taken_without_a_wait_but_with_a_list(world: World) -> None:
    first, second = Candidate(world, "a"), Candidate(world, "b")
    await first.renew()
    await first.leadership.resign()
    assert first.leadership.refusal().startswith("NotLeader")
    await until_watched(world, "")
    assert await second.renew() == ""
    assert second.slept == [0.0]
    assert second.pods.count == 1


async def test_a_lease_that_was_deleted_under_its_holder_is_taken_with_a_wait(world: World) -> None:
    first, second = Candidate(world, "a"), Candidate(world, "b")
    await first.renew()
    await second.renew()
    await world.client.delete(f"/apis/coordination.k8s.io/v1/namespaces/{names.NAMESPACE}/leases/{leadership.LEASE}")
    assert await second.renew() == ""
    assert second.slept == [REQUEST_EXPIRY_S]


async def test_a_holder_whose_lease_ran_out_and_was_not_taken_goes_on_at_once(world: World) -> None:
    first = Candidate(world, "a")
    await first.renew()
    world.clock.seconds += leadership.DURATION_S + 5
    assert first.leadership.refusal().startswith("NotLeader")
    assert await first.renew() == ""
    assert (first.slept, first.pods.count) == ([], 0)


async def test_a_handover_that_a_rival_interrupts_starts_again(world: World) -> None:
    """The first handover's wait must not end the second one's."""
    first, second = Candidate(world, "a"), Candidate(world, "b")
    ends: list[asyncio.Event] = []

    async def held_back(_: float) -> None:
        ends.append(asyncio.Event())
        await ends[-1].wait()

    second.leadership._sleep = held_back
    await first.renew()
    for holder, candidate in (("a", second), ("b", first), ("a", second)):
        await until_watched(world, holder)
        world.clock.seconds += leadership.DURATION_S + 1
        await candidate.renew()
        await (first if candidate is second else second).renew()
    ends[0].set()
    await asyncio.sleep(0.05)
    assert second.leadership.refusal().startswith("LeaderHandover")
    ends[-1].set()
    await asyncio.sleep(0.05)
    assert second.leadership.refusal() == ""


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
