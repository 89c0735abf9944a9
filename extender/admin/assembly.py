"""Builds the admin REST: the context of its routers."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import datetime
from http import HTTPStatus
from typing import Final

from starlette.types import ASGIApp

import vgpu
from extender.admin import app
from extender.admin.answers.event_streams import Streams
from extender.admin.exchange.snapshots import ClusterSnapshot, ClusterSource, SnapshotNotReady
from extender.admin.problems import AdminProblem
from extender.admin.routes.card_settings import CardSettings
from extender.admin.routes.context import Context
from extender.admin.routes.installed_pods import InstalledPods
from extender.admin.routes.leader_relay import LeaderRelay
from extender.admin.security.access import Access, LocalAccess, StaticTokenAccess
from extender.admin.security.audit import Audit, AuditedAction
from extender.admin.security.rate_limits import RateLimits
from extender.admin.security.token_reviews import KubernetesAccess
from extender.admin.worker.placement_process import PlacementProcess
from extender.history.reporting.reports import Reports
from vgpu.adapters.kubernetes.client import KubernetesClient
from vgpu.adapters.pinned_http import PinnedHttp
from vgpu.domain import names
from vgpu.domain.asks import aliases
from vgpu.domain.identifiers import Namespace

MAX_AGE_S: Final = 0.5


@dataclass(frozen=True, slots=True)
class Parts:
    """What the admin REST is made of.

    Attributes:
        source: what the extender knows of the cluster.
        client: of the API server.
        clock: monotonic, in seconds.
        now: the wall clock.
        token: the static token; empty for none.
        has_reviews: whether the API server reviews tokens and rights; otherwise loopback or the static token counts.
        reports: the history; None where none is kept.
        on_action: takes each admin action; it must return at once.
        gpushare_unit_mib: MiB of one `aliyun.com/gpu-mem`.
        namespace: in which vgpushare is installed.
        extender_version: of the extender whose cluster is shown.
        has_own_history: whether other replicas have histories of their own, so that the leading one's counts.
    """

    source: ClusterSource
    client: KubernetesClient
    clock: Callable[[], float]
    now: Callable[[], datetime]
    token: str = ""
    has_reviews: bool = False
    reports: Reports | None = None
    on_action: Callable[[AuditedAction], None] = lambda _: None
    gpushare_unit_mib: int = aliases.GIB_IN_MIB
    namespace: Namespace = names.NAMESPACE
    extender_version: str = vgpu.__version__
    has_own_history: bool = False


@asynccontextmanager
async def opened(parts: Parts) -> AsyncIterator[ASGIApp]:
    """Make the application."""
    context = _context(parts)
    try:
        yield app.build(context)
    finally:
        await context.placement.close()
        if context.relay is not None:
            await context.relay.close()


class KeptSnapshot:
    """The last snapshot, for half a second: many requests share one, so that no client decides what it costs the verbs.

    `clock` is monotonic, in seconds.
    """

    def __init__(self, source: ClusterSource, clock: Callable[[], float]) -> None:
        self._source = source
        self._clock = clock
        self._last = ClusterSnapshot(0)
        self._asked_at = float("-inf")
        self._lock = asyncio.Lock()

    async def get(self) -> ClusterSnapshot:
        """Return a snapshot of the last half second. Raises AdminProblem: 503 until the first lists are complete."""
        async with self._lock:
            now = self._clock()
            if now - self._asked_at > MAX_AGE_S:
                self._last, self._asked_at = await self._taken(), now
            return self._last

    async def _taken(self) -> ClusterSnapshot:
        try:
            return await self._source.take()
        except SnapshotNotReady as error:
            raise AdminProblem(HTTPStatus.SERVICE_UNAVAILABLE, str(error), headers={"Retry-After": "5"}) from None


def _context(parts: Parts) -> Context:
    snapshot = KeptSnapshot(parts.source, parts.clock)
    return Context(
        snapshot=snapshot.get,
        reserved=parts.source.reserved,
        why_gangs_wait=parts.source.why_gangs_wait,
        requests=parts.source.requests,
        access=_access(parts),
        rates=RateLimits(parts.clock),
        placement=PlacementProcess(),
        streams=Streams(snapshot.get),
        cards=CardSettings(parts.client),
        audit=Audit(parts.now, parts.on_action),
        now=parts.now,
        reports=parts.reports,
        gpushare_unit_mib=parts.gpushare_unit_mib,
        installed=InstalledPods(parts.client, parts.namespace),
        extender_version=parts.extender_version,
        relay=LeaderRelay(snapshot.get, PinnedHttp()) if parts.has_own_history else None,
    )


def _access(parts: Parts) -> Access:
    if parts.has_reviews:
        return KubernetesAccess(parts.client, parts.clock)
    return StaticTokenAccess(parts.token) if parts.token else LocalAccess()
