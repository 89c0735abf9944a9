"""The admin REST over the extender's world of three nodes, without a listener: httpx calls the ASGI application."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

import httpx
import pytest

from extender.admin import assembly
from extender.admin.assembly import Parts
from extender.admin.audit import AdminAction
from extender.admin.snapshots import Snapshots
from extender.filter import Filter
from tests.extender.conftest import World
from vgpu.adapters.kubernetes.client import Client
from vgpu.placement.policies import DefaultPolicies


@dataclass
class Admin:
    """The REST as a client sees it, and the world behind."""

    world: World
    http: httpx.AsyncClient
    actions: list[AdminAction] = field(default_factory=list)

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


Opened = Callable[..., AbstractAsyncContextManager[Admin]]


@pytest.fixture
def opened(world: World) -> Opened:
    """Open the REST with other parts than the default ones."""

    @asynccontextmanager
    async def opened(**parts: Any) -> AsyncIterator[Admin]:
        @asynccontextmanager
        async def connect() -> AsyncIterator[Client]:
            yield parts.pop("client", world.client)

        actions: list[AdminAction] = []
        defaults = DefaultPolicies()
        made = Parts(
            snapshots=Snapshots(
                world.cluster, Filter(world.cluster, defaults), world.seen.gangs, world.seen.decisions.known
            ),
            ready=world.watches.wait,
            connect=connect,
            why_not_leader=world.leader.refusal,
            policies=DefaultPolicies,
            clock=world.clock,
            now=lambda: datetime.now(UTC),
            on_action=actions.append,
            **{key: value for key, value in parts.items() if key != "client"},
        )
        async with assembly.opened(made, asyncio.get_running_loop())() as app:
            transport = httpx.ASGITransport(app, raise_app_exceptions=True)
            async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1:9871") as http:
                yield Admin(world, http, actions)

    return opened


@pytest.fixture
async def admin(opened: Opened) -> AsyncIterator[Admin]:
    async with opened() as made:
        yield made
