"""The node's Lease: renewed each second, released at once, and retried while the API server fails."""

from vgpu.errors import KubernetesError
from vgpu.node.heartbeat import Heartbeat


class Lease:
    """Records the writes of a Lease, in order."""

    def __init__(self) -> None:
        self.written: list[str] = []
        self.fails = False

    async def renew(self) -> None:
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
        self.presence = Heartbeat(self.lease, lambda: self.registered, lambda: self.now)

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
