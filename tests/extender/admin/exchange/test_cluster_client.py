"""Snapshots and questions over a socket, as between the admin's process and the extender's."""

import asyncio
import socket
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from extender.admin.exchange import snapshots
from extender.admin.exchange.cluster_client import FRAME_S, ClusterClient
from extender.admin.exchange.cluster_server import ClusterServer
from extender.admin.exchange.messages import Piece, SnapshotEnd
from extender.admin.exchange.snapshots import SnapshotNotReady, Snapshots
from extender.admin.problems import AdminProblem
from extender.admin.security.audit import AuditedAction
from tests.extender.admin.conftest import shown
from tests.extender.admin.exchange.whole_snapshot import whole
from tests.extender.conftest import World
from vgpu.domain.cards.reasons import Reason
from vgpu.domain.identifiers import CardUuid, NodeName
from vgpu.placement.choose import NodeRefusal


@asynccontextmanager
async def linked(
    source: Any,
    acted: Any = lambda _: None,
    clock: Any = time.monotonic,
    sleep: Any = asyncio.sleep,
    frame_s: float = FRAME_S,
) -> AsyncIterator[ClusterClient]:
    """A client of a source in this process."""
    ours, theirs = socket.socketpair()
    answering = await asyncio.open_connection(sock=ours)
    reader, writer = await asyncio.open_connection(sock=theirs)
    serving = asyncio.create_task(ClusterServer(source, clock, acted, sleep).serve(*answering))
    client = ClusterClient(reader, writer, frame_s)
    receiving = asyncio.create_task(client.run())
    try:
        yield client
    finally:
        writer.close()
        answering[1].close()
        for task in (serving, receiving):
            task.cancel()
        await asyncio.gather(serving, receiving, return_exceptions=True)


async def test_snapshots_are_those_of_the_extender_after_every_change(world: World) -> None:
    async with linked(Snapshots(shown(world))) as client:
        for n in range(40):
            await world.create_pod(gpu_mem=256 + n)
        first = await client.take()
        assert first == whole(world, first)
        pod = await world.create_pod(gpu_mem=1024)
        assert not await world.bind(pod, "n1")
        await world.until_bound_is_watched(pod)
        gone = next(iter(first.pods.values()))
        await world.client.delete(f"/api/v1/namespaces/default/pods/{gone.name}")
        await world.until(lambda: gone.uid not in world.cluster.objects.pods)
        second = await client.take()
        assert second == whole(world, second)
        assert gone.uid in first.pods, "a snapshot stays as it is"
        assert second.views[NodeName("n2")] is first.views[NodeName("n2")], "an unchanged node is not sent again"
        assert second.views[NodeName("n1")] != first.views[NodeName("n1")]


async def test_questions(world: World) -> None:
    world.leader.refusal_text = "another one binds"
    actions: list[AuditedAction] = []
    async with linked(Snapshots(shown(world)), actions.append) as client:
        snapshot = await client.take()
        assert snapshot.why_not_bound == "another one binds"
        for n in range(40):
            await world.create_pod(gpu_mem=256 + n)
        pods = list((await client.take()).pods.values())
        asked = await asyncio.gather(client.requests(pods), client.reserved(pods[0]), client.why_gangs_wait([]))
        assert asked[0] == [pod.parsed.request for pod in pods]
        assert (dict(asked[1]), dict(asked[2])) == ({}, {})
        action = AuditedAction("2026-01-01T00:00:00Z", "ann", (), "cordon", CardUuid("GPU-1"), NodeName("n1"), "done")
        client.acted(action)
        await client.take()
        assert actions == [action]


RESERVED = {"node": NodeRefusal(Reason.CARD_RESERVED, {CardUuid("pod"): Reason.CARD_RESERVED})}


def end(number: int) -> SnapshotEnd:
    return SnapshotEnd(number, 256, "", None)


class Slow:
    """A source whose snapshots come when the test lets them."""

    def __init__(self) -> None:
        self.let = asyncio.Event()
        self.number = 0

    async def changes(self) -> Iterator[Piece | SnapshotEnd | None]:
        await self.let.wait()
        self.number += 1
        return iter([end(self.number)])

    async def reserved(self, pod: Any) -> dict[str, Any]:
        return {"node": NodeRefusal(Reason.CARD_RESERVED, {pod: Reason.CARD_RESERVED})}


async def test_a_client_that_goes_takes_no_answer_of_another_one() -> None:
    source = Slow()
    async with linked(source) as client:
        first = asyncio.create_task(client.take())
        await asyncio.sleep(0.05)
        first.cancel()
        other = asyncio.create_task(client.reserved("pod"))  # type: ignore[arg-type]
        await asyncio.sleep(0.05)
        source.let.set()
        assert await other == RESERVED
        assert (await client.take()).number == 2


async def test_without_an_answer_in_time_the_socket_is_closed() -> None:
    async with linked(Slow(), frame_s=0.05) as client:
        for _ in range(2):
            with pytest.raises(AdminProblem, match="does not answer"):
                await client.take()


async def test_that_the_lists_are_not_complete_is_passed_on() -> None:
    class Starting(Slow):
        async def changes(self) -> Iterator[Piece | SnapshotEnd | None]:
            raise SnapshotNotReady("the first lists are not complete")

    async with linked(Starting()) as client:
        with pytest.raises(SnapshotNotReady, match="not complete"):
            await client.take()
        assert await client.reserved("pod") == RESERVED  # type: ignore[arg-type]


class Busy:
    """A clock that work moves on, and what rests: the longest time without a rest is what a verb can wait for."""

    STEP_S = snapshots.SLICE_S / 2

    def __init__(self) -> None:
        self.seconds = self.rested = self.longest = 0.0

    def __call__(self) -> float:
        self.seconds += self.STEP_S
        return self.seconds

    async def sleep(self, _: float) -> None:
        self.longest = max(self.longest, self.seconds - self.rested)
        self.rested = self.seconds
        await asyncio.sleep(0)


async def test_the_verbs_loop_rests_after_each_slice_of_a_snapshot() -> None:
    busy = Busy()

    class Source(Slow):
        async def changes(self) -> Iterator[Piece | SnapshotEnd | None]:
            await busy.sleep(0)
            self.number += 1
            return iter([*[None] * 40, *[Piece("pods", {"a": 1})] * 40, end(self.number)])

    async with linked(Source(), clock=busy, sleep=busy.sleep) as client:
        for number in (1, 2):
            busy.longest = 0.0
            assert (await client.take()).number == number
            assert 0.0 < busy.longest <= snapshots.SLICE_S + 2 * busy.STEP_S
