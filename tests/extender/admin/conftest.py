"""The admin REST over the extender's world of three nodes, without a listener: httpx calls the ASGI application."""

from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

import httpx
import pytest
from starlette.types import ASGIApp

from extender.admin import assembly
from extender.admin.assembly import Parts
from extender.admin.exchange.messages import SnapshotEnd
from extender.admin.exchange.mirror import Mirror
from extender.admin.exchange.snapshot_changes import SnapshotInputs
from extender.admin.exchange.snapshots import ClusterSnapshot, Snapshots
from extender.admin.security.audit import AuditedAction
from extender.verbs.filter import Filter
from tests.extender.conftest import World
from vgpu.placement.policies import DefaultPolicies


@dataclass
class Admin:
    """The REST as a client sees it, and the world behind."""

    world: World
    app: ASGIApp
    http: httpx.AsyncClient
    actions: list[AuditedAction] = field(default_factory=list)

    async def get(self, path: str, status: int = 200, **query: Any) -> Any:
        answer = await self.http.get(f"/api/v1{path}", params=query)
        assert answer.status_code == status, answer.text
        return answer.json()

    async def post(self, path: str, body: Any = None, status: int = 200) -> Any:
        answer = await self.http.post(f"/api/v1{path}", json=body)
        assert answer.status_code == status, answer.text
        return answer.json()

    async def fresh(self) -> None:
        """Let the next request make a new snapshot."""
        self.world.clock.seconds += 1


def shown(world: World) -> SnapshotInputs:
    """Return what snapshots of the world show."""
    defaults = DefaultPolicies()
    return SnapshotInputs(
        world.cluster, Filter(world.cluster, defaults), world.seen.gangs, world.seen.decisions.known,
        world.watches.wait, world.leader.refusal, lambda: defaults,
    )  # fmt: skip


class CopiedSnapshots(Snapshots):
    """The cluster as the admin's process has it: a copy that is made of the pieces, without a socket."""

    def __init__(self, inputs: SnapshotInputs) -> None:
        super().__init__(inputs)
        self._mirror = Mirror()

    async def take(self) -> ClusterSnapshot:
        """Return a new snapshot. Raises SnapshotNotReady."""
        for frame in await self.changes():
            if isinstance(frame, SnapshotEnd):
                return self._mirror.take(frame)
            if frame is not None:
                self._mirror.apply(frame)
        raise AssertionError("the pieces have no end")


Opened = Callable[..., AbstractAsyncContextManager[Admin]]


@pytest.fixture
def opened(world: World) -> Opened:
    """Open the REST with other parts than the default ones."""

    @asynccontextmanager
    async def opened(**parts: Any) -> AsyncIterator[Admin]:
        actions: list[AuditedAction] = []
        given: dict[str, Any] = {"source": CopiedSnapshots(shown(world)), "client": world.client} | parts
        made = Parts(clock=world.clock, now=lambda: datetime.now(UTC), on_action=actions.append, **given)
        async with assembly.opened(made) as app:
            transport = httpx.ASGITransport(app, raise_app_exceptions=True)
            async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1:9871") as http:
                yield Admin(world, app, http, actions)

    return opened


@pytest.fixture
async def admin(opened: Opened) -> AsyncIterator[Admin]:
    async with opened() as made:
        yield made
