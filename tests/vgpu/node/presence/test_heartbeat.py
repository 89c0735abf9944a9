"""The node's Lease: renewed each second, released at once, and retried while the API server fails."""

import asyncio

import pytest

from vgpu.domain.errors import KubernetesError
from vgpu.node.presence import heartbeat
from vgpu.node.presence.heartbeat import Heartbeat


class Lease:
    """Records the writes of a Lease, in order."""

    def __init__(self) -> None:
        self.written: list[str] = []
        self.fails = False
        self.duration_s = 0

    async def renew(self, duration_s: int) -> None:
        self.duration_s = duration_s
        self._write("here")

    async def release(self) -> None:
        self._write("away")

    def _write(self, what: str) -> None:
        self.written.append(what)
        if self.fails:
            raise KubernetesError(0, "Timeout", "")


class Node:
    """A node whose time and registration a test sets."""

    def __init__(self) -> None:
        self.lease = Lease()
        self.now = 0.0
        self.registered = False
        self.looks = 0
        self.presence = Heartbeat(self.lease, self.is_registered, lambda: self.now)

    def is_registered(self) -> bool:
        self.looks += 1
        return self.registered

    async def after(self, seconds: float) -> list[str]:
        self.now += seconds
        self.lease.written.clear()
        await self.presence.step()
        return list(self.lease.written)


async def test_the_lease_is_renewed_each_second_and_released_at_once() -> None:
    node = Node()
    assert await node.after(0) == ["away"]
    node.registered = True
    assert await node.after(0.05) == ["here"]
    assert await node.after(0.9) == []
    assert await node.after(0.1) == ["here"]
    node.registered = False
    assert await node.after(0.05) == ["away"]
    assert await node.after(60) == []


@pytest.mark.parametrize(
    ("nodes", "period", "duration"), [(1, 1, 3), (500, 1, 3), (1000, 2, 6), (5000, 10, 30), (50_000, 10, 30)]
)
async def test_large_clusters_renew_less_often(nodes: int, period: float, duration: int) -> None:
    node = Node()
    node.presence.nodes, node.registered = nodes, True
    assert await node.after(0) == ["here"]
    assert node.lease.duration_s == duration
    assert await node.after(period - 0.1) == []
    assert await node.after(0.1) == ["here"]
    node.registered = False
    assert await node.after(0.05) == ["away"]  # a change is written at once, whatever the period


async def test_a_change_of_registration_is_told() -> None:
    node, told = Node(), []
    node.presence.on_change = lambda: told.append(node.registered)
    for registered in (True, True, False):
        node.registered = registered
        await node.after(0.05)
    assert told == [True, False]


async def test_failed_writes_are_retried_soon_but_not_in_a_loop() -> None:
    node = Node()
    node.lease.fails = True
    node.registered = True
    assert await node.after(0) == ["here"]
    assert await node.after(0.05) == []
    assert await node.after(0.25) == ["here"]
    node.registered = False
    assert await node.after(0.01) == ["away"]
    assert await node.after(0.05) == []
    node.lease.fails = False
    assert await node.after(0.25) == ["away"]
    assert await node.after(10) == []


async def test_between_two_writes_it_only_looks_when_woken() -> None:
    node = Node()
    running = asyncio.create_task(node.presence.run())
    await asyncio.sleep(0.01)
    assert (node.lease.written, node.looks) == (["away"], 1)
    for registered, written in ((True, "here"), (False, "away")):
        node.registered = registered
        node.presence.wake()
        await asyncio.sleep(0.01)
        assert node.lease.written[-1] == written
    assert node.looks == 3
    running.cancel()


async def test_a_change_during_a_write_is_written_after_it() -> None:
    node = Node()
    renew = node.lease.renew

    async def slowly(duration_s: int) -> None:
        await renew(duration_s)
        node.registered = False
        node.presence.wake()
        await asyncio.sleep(0)

    node.lease.renew = slowly  # type: ignore[method-assign]
    node.registered = True
    running = asyncio.create_task(node.presence.run())
    await asyncio.sleep(0.01)
    assert node.lease.written == ["here", "away"]
    running.cancel()


async def test_a_release_that_fails_is_repeated_when_the_plugin_stops() -> None:
    node = Node()
    node.lease.fails = True
    stopping = asyncio.create_task(node.presence.stop())
    await asyncio.sleep(0.01)
    node.lease.fails = False
    await stopping
    assert node.lease.written == ["away", "away"]


async def test_a_stop_ends_without_an_api_server(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(heartbeat, "_RELEASE_S", 0.6)
    node = Node()
    node.lease.fails = True
    await asyncio.wait_for(node.presence.stop(), 3)
    assert 2 <= len(node.lease.written) <= 4
