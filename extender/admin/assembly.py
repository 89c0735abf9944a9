"""Builds the admin REST: the context of its routers, within its own event loop."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from datetime import datetime
from http import HTTPStatus
from typing import Final

from starlette.types import ASGIApp

from extender.admin import app
from extender.admin.access import Access, LocalAccess, StaticTokenAccess
from extender.admin.audit import AdminAction, Audit
from extender.admin.card_settings import CardSettings
from extender.admin.context import Context
from extender.admin.placement_process import PlacementProcess
from extender.admin.problems import AdminProblem
from extender.admin.rate_limits import RateLimits
from extender.admin.reviews import KubernetesAccess
from extender.admin.snapshots import Snapshot, Snapshots, WaitingGangs
from extender.admin.streams import Streams
from extender.history.reports import Reports
from extender.objects import Pod
from vgpu import aliases
from vgpu.adapters.kubernetes.client import Client
from vgpu.placement.choose import Refusal
from vgpu.placement.policies import DefaultPolicies
from vgpu.request import PodRequest

READY_S: Final = 5.0


@dataclass(frozen=True, slots=True)
class Parts:
    """What the admin REST gets from the extender.

    Attributes:
        snapshots: of the cluster; they live on the verbs' event loop.
        ready: returns when the first lists are complete, on the verbs' event loop.
        connect: makes an API client for the admin's own event loop.
        why_not_leader: returns why this replica does not bind; empty where it does.
        policies: returns the cluster's packing policies, with what it has learned by now.
        clock: monotonic, in seconds.
        now: the wall clock.
        token: the static token; empty for none.
        has_reviews: whether the API server reviews tokens and rights; otherwise loopback or the static token counts.
        open_reports: opens the history, within the admin's thread; None where none is kept.
        on_action: takes each admin action, such as the history's recorder; it must return at once.
        gpushare_unit_mib: MiB of one `aliyun.com/gpu-mem`.
    """

    snapshots: Snapshots
    ready: Callable[[], Awaitable[None]]
    connect: Callable[[], AbstractAsyncContextManager[Client]]
    why_not_leader: Callable[[], str]
    policies: Callable[[], DefaultPolicies]
    clock: Callable[[], float]
    now: Callable[[], datetime]
    token: str = ""
    has_reviews: bool = False
    open_reports: Callable[[], Reports | None] = lambda: None
    on_action: Callable[[AdminAction], None] = lambda _: None
    gpushare_unit_mib: int = aliases.GIB_IN_MIB


def opened(parts: Parts, verbs_loop: asyncio.AbstractEventLoop) -> Callable[[], AbstractAsyncContextManager[ASGIApp]]:
    """Return what makes the application within the admin's event loop."""

    @asynccontextmanager
    async def make() -> AsyncIterator[ASGIApp]:
        async with parts.connect() as client:
            context = _context(parts, client, _Remote(parts, verbs_loop))
            try:
                yield app.build(context)
            finally:
                await context.placement.close()

    return make


class _Remote:
    """Calls into the verbs' event loop from the admin's.

    The last snapshot is kept on this side, because each call takes the verbs' loop 0.3 ms.
    """

    def __init__(self, parts: Parts, loop: asyncio.AbstractEventLoop) -> None:
        self._parts = parts
        self._loop = loop
        self._last = Snapshot(0)

    async def snapshot(self) -> Snapshot:
        """Return a snapshot. Raises AdminProblem: 503 while the first lists are not complete."""
        if not self._last.is_fresh(self._parts.clock()):
            self._last = await self._take()
        return self._last

    async def _take(self) -> Snapshot:
        async def take() -> Snapshot:
            async with asyncio.timeout(READY_S):
                await self._parts.ready()
            return await self._parts.snapshots.take()

        try:
            return await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(take(), self._loop))
        except TimeoutError:
            detail = "the first lists of the cluster are not complete"
            raise AdminProblem(HTTPStatus.SERVICE_UNAVAILABLE, detail, headers={"Retry-After": "5"}) from None

    async def reserved(self, pod: Pod) -> dict[str, Refusal]:
        """Return the nodes where cards are reserved for other pods than this one."""
        found = asyncio.run_coroutine_threadsafe(self._parts.snapshots.reserved(pod), self._loop)
        return await asyncio.wrap_future(found)

    async def why_gangs_wait(self, pods: Collection[Pod]) -> WaitingGangs:
        """Return why the gangs of some pods wait."""
        found = asyncio.run_coroutine_threadsafe(self._parts.snapshots.why_gangs_wait(pods), self._loop)
        return await asyncio.wrap_future(found)

    async def requests(self, pods: Sequence[Pod]) -> list[PodRequest | None]:
        """Return what pods ask for beside the pods that are on cards now."""
        found = asyncio.run_coroutine_threadsafe(self._parts.snapshots.requests(pods), self._loop)
        return await asyncio.wrap_future(found)


def _context(parts: Parts, client: Client, remote: _Remote) -> Context:
    return Context(
        snapshot=remote.snapshot,
        reserved=remote.reserved,
        why_gangs_wait=remote.why_gangs_wait,
        requests=remote.requests,
        why_not_leader=parts.why_not_leader,
        access=_access(parts, client),
        rates=RateLimits(parts.clock),
        placement=PlacementProcess(),
        streams=Streams(remote.snapshot),
        cards=CardSettings(client),
        audit=Audit(parts.now, parts.on_action),
        policies=parts.policies,
        now=parts.now,
        reports=parts.open_reports(),
        gpushare_unit_mib=parts.gpushare_unit_mib,
    )


def _access(parts: Parts, client: Client) -> Access:
    if parts.has_reviews:
        return KubernetesAccess(client, parts.clock)
    return StaticTokenAccess(parts.token) if parts.token else LocalAccess()
