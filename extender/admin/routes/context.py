"""What the routers use, and how a request becomes an authenticated caller."""

from collections.abc import Awaitable, Callable, Collection, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Annotated, Final

from fastapi import Depends, Request

from extender.admin.answers.event_streams import Streams
from extender.admin.answers.list_cache import ListCache
from extender.admin.answers.snapshot_answers import SnapshotAnswers
from extender.admin.answers.summary_parts import SummaryParts
from extender.admin.exchange.snapshots import ClusterSnapshot, WaitingGangs
from extender.admin.problems import AdminProblem
from extender.admin.routes.card_settings import CardSettings
from extender.admin.routes.installed_pods import InstalledPods
from extender.admin.routes.leader_relay import LeaderRelay
from extender.admin.security import access as rights
from extender.admin.security.access import Access, Caller
from extender.admin.security.audit import Audit
from extender.admin.security.caller_turns import CallerTurns
from extender.admin.security.rate_limits import RateLimits
from extender.admin.worker.placement_process import PlacementProcess
from extender.history.reporting.reports import Reports
from extender.state.gang_members import GangKey
from extender.state.objects import WatchedPod
from vgpu.domain.asks import aliases
from vgpu.domain.asks.request import PodRequest
from vgpu.domain.identifiers import NodeName
from vgpu.placement.choose import NodeRefusal

HISTORY_AT_ONCE: Final = 4
HISTORY_WAITING: Final = 1_024
HISTORY_OF_CALLER: Final = 128  # of whom several may look at pages with charts
ANONYMOUS: Final = "system:unauthenticated"


@dataclass(frozen=True, slots=True)
class Context:
    """What the routers use.

    Attributes:
        snapshot: returns the cluster's state; it waits for the first lists.
        reserved: returns the nodes on which cards are reserved for other pods than this one.
        why_gangs_wait: returns why gangs wait, by their keys.
        requests: returns what pods ask for, with the cards that affinity to the pods on them allows and rules out.
        access: authenticates and authorizes.
        rates: bounds the requests of a caller.
        placement: explains and simulates.
        streams: event streams.
        cards: changes settings of cards.
        installed: reads which images run.
        audit: records admin actions.
        now: the wall clock.
        reports: the history; None where none is kept.
        gpushare_unit_mib: MiB of one `aliyun.com/gpu-mem`.
        extender_version: of the extender whose cluster is shown.
        relay: to the leading replica, whose history counts; None where all replicas have the same one.
        lists: ordered lists that are kept between requests.
        summaries: those of the latest snapshot.
        parts: what those are added up from.
        history_turns: bounds the questions to the database.
    """

    snapshot: Callable[[], Awaitable[ClusterSnapshot]]
    reserved: Callable[[WatchedPod], Awaitable[dict[NodeName, NodeRefusal]]]
    why_gangs_wait: Callable[[Collection[GangKey]], Awaitable[WaitingGangs]]
    requests: Callable[[Sequence[WatchedPod]], Awaitable[list[PodRequest | None]]]
    access: Access
    rates: RateLimits
    placement: PlacementProcess
    streams: Streams
    cards: CardSettings
    installed: InstalledPods
    audit: Audit
    now: Callable[[], datetime]
    reports: Reports | None = None
    gpushare_unit_mib: int = aliases.GIB_IN_MIB
    extender_version: str = ""
    relay: LeaderRelay | None = None
    lists: ListCache = field(default_factory=ListCache)
    summaries: SnapshotAnswers = field(default_factory=SnapshotAnswers)
    parts: SummaryParts = field(default_factory=SummaryParts)
    history_turns: CallerTurns = field(
        default_factory=lambda: CallerTurns(HISTORY_AT_ONCE, HISTORY_WAITING, HISTORY_OF_CALLER)
    )


def of(request: Request) -> Context:
    """Return the application's context."""
    found: Context = request.app.state.context
    return found


async def authenticated(request: Request) -> Caller:
    """Return the caller of a request, after the rate limits. Raises AdminProblem."""
    context = of(request)
    try:
        caller = await identified(request)
    except AdminProblem:
        context.rates.check(ANONYMOUS)
        raise
    context.rates.check(caller.counted_as)
    return caller


async def identified(request: Request) -> Caller:
    """Return the caller of a request that has been counted already. Raises AdminProblem."""
    token = rights.token_of(request.headers)
    host, origin = (request.headers.get(name, "") for name in ("host", "origin"))
    return await of(request).access.authenticate(token, host, origin)


async def using(request: Request) -> Context:
    """Return the application's context. A coroutine, because FastAPI calls other functions in a thread of a pool."""
    return of(request)


Called = Annotated[Caller, Depends(authenticated)]
Using = Annotated[Context, Depends(using)]
