"""`/usage`, `/rightsize` and `/history`: what was used, what should be asked for, and what happened."""

import asyncio
from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, datetime
from http import HTTPStatus
from typing import Annotated, Any, Final, TypeVar

from fastapi import APIRouter, Query, Request, Response

from extender.admin.answers import paging, periods, schemas
from extender.admin.answers.json_response import answer
from extender.admin.answers.listed import right_sizes as sizes
from extender.admin.answers.listed import usage as usages
from extender.admin.answers.listed.usage import LABEL
from extender.admin.answers.queries import HistoryQuery, RightSizeQuery, UsageQuery
from extender.admin.exchange import times
from extender.admin.problems import AdminProblem, bad_field
from extender.admin.routes.context import Called, Context, Using
from extender.admin.routes.history_route import HistoryRoute
from extender.admin.security import visibility
from extender.admin.security.access import READ_CARDS, READ_PODS, Caller
from extender.history.recording.events import EventKind
from extender.history.reporting.reports import (
    Dimension,
    HistoryEntry,
    HistoryFilters,
    Reports,
    RightSizeRow,
    UsageFilters,
    UsageGroup,
)
from vgpu.domain.errors import HistoryUnavailable, MalformedCursor
from vgpu.domain.identifiers import NO_NAMESPACE, CardUuid, Namespace, NodeName

router = APIRouter(tags=["history"], route_class=HistoryRoute)

WAIT_S: Final = 3.0
RETRY_S: Final = 0.2
BEHIND_MS: Final = 60_000  # of what is stored: the extender stores a mark every 5 s, and the drain retries every 5 s
T = TypeVar("T")


@router.get("/usage", response_model=schemas.UsageSchema)
async def usage(request: Request, context: Using, caller: Called, query: Annotated[UsageQuery, Query()]) -> Response:
    """Report what pods of a period used and cost, by namespace, owner, label, card, model, node or day.

    Shows the namespaces in which the caller may get pods.
    """
    reports = reports_of(context)
    groups = [_group(dimension) for dimension in query.by or ["namespace"]]
    since, until = periods.read(query.since, query.until, context.now())
    filters = UsageFilters(
        namespaces=await readable_namespaces(context, caller, query.namespace),
        owner=query.owner or None,
        nodes=frozenset(map(NodeName, query.node)) or None,
        cards=frozenset(map(CardUuid, query.gpu)) or None,
        models=frozenset(query.model) or None,
        labels=_labels(query.label),
    )
    begin, end = periods.ms(since), periods.ms(until)
    found = await asked(context, caller, lambda: reports.usage(groups, begin, end, filters))
    items, left_out = paging.best(found, query.list_request(), usages.kind(groups))
    body = {
        "since": text(since),
        "until": text(until),
        "items": items,
        "itemsLeftOut": left_out,
        "currency": reports.currency,
        **await stored(context, caller, reports, since, until),
    }
    return answer(request, body)


@router.get("/rightsize", response_model=schemas.RightSizesSchema)
async def right_sizes(
    request: Request, context: Using, caller: Called, query: Annotated[RightSizeQuery, Query()]
) -> Response:
    """Compare what containers used with what they ask for, and say what they should ask for.

    Advice needs an hour of measurement. Shows the namespaces in which the caller may get pods.
    """
    reports = reports_of(context)
    since, until = periods.read(query.since, query.until, context.now())
    namespaces = await readable_namespaces(context, caller, query.namespace)
    filters = UsageFilters(namespaces=namespaces, owner=query.owner or None, labels=_labels(query.label))
    begin, end = periods.ms(since), periods.ms(until)
    found = await asked(context, caller, lambda: reports.right_sizes(begin, end, filters, query.pod))
    rows = _worst(found.rows) if query.worst else found.rows
    items, left_out = paging.best(rows, query.list_request(), sizes.KIND)
    body = {
        "since": text(since),
        "until": text(until),
        "items": items,
        "itemsLeftOut": left_out,
        "complete": found.is_complete,
        **await stored(context, caller, reports, since, until),
    }
    return answer(request, body)


@router.get("/history", response_model=schemas.HistorySchema)
async def history(
    request: Request, context: Using, caller: Called, query: Annotated[HistoryQuery, Query()]
) -> Response:
    """List what happened, the latest first: decisions with their reasons, starts, ends, cards, admin actions.

    Shows events of the namespaces in which the caller may get pods; others with the right to list gpunodes.
    """
    reports = reports_of(context)
    since, until = periods.read(query.since, query.until, context.now())
    namespaces = await readable_namespaces(context, caller, query.namespace)
    if namespaces is not None and not query.namespace and await context.access.may(caller, READ_CARDS):
        namespaces |= {NO_NAMESPACE}
    filters = HistoryFilters(
        kinds=frozenset(EventKind(kind) for kind in query.kind) or None,
        namespaces=namespaces,
        pod=query.name or None,
        pod_uid=query.uid or None,
        node=query.node or None,
        gpu=query.gpu or None,
        since_ms=periods.ms(since),
        until_ms=periods.ms(until),
    )
    try:
        page = await asked(context, caller, lambda: reports.history(filters, query.cursor, query.limit))
    except MalformedCursor as error:
        raise bad_field("cursor", "is no cursor of this query; take nextCursor of the page before") from error
    period = await stored(context, caller, reports, since, until)
    return answer(request, {"items": [_entry(entry) for entry in page.entries], "nextCursor": page.cursor, **period})


def reports_of(context: Context) -> Reports:
    """Return the history. Raises AdminProblem where none is kept."""
    if context.reports is None:
        raise AdminProblem(HTTPStatus.SERVICE_UNAVAILABLE, "the extender keeps no history; start it with --history-dir")
    return context.reports


async def asked(context: Context, caller: Caller, ask: Callable[[], T]) -> T:
    """Ask the database in a thread; at most a few questions at once, for which callers have turns.

    A database that does not answer is asked again for `WAIT_S`: at the start of the extender its tables are being made.
    """
    loop = asyncio.get_running_loop()
    waits_until = loop.time() + WAIT_S
    while True:
        try:
            async with context.history_turns.turn(caller.counted_as):
                return await asyncio.to_thread(ask)
        except HistoryUnavailable as error:
            if loop.time() >= waits_until:
                detail = f"the history's database does not answer: {error}"
                raise AdminProblem(HTTPStatus.SERVICE_UNAVAILABLE, detail, headers={"Retry-After": "5"}) from error
        await asyncio.sleep(RETRY_S)


async def stored(
    context: Context, caller: Caller, reports: Reports, since: datetime, until: datetime
) -> dict[str, str]:
    """Return how much of a period is stored, in fields of an answer that are empty where all of it is.

    `storedSince`: when the history began, where that is later than the period; each replica may have a history of its
    own, that began with its pod. `staleSince`: until when it is stored, where what is missing is not in the future.
    """
    begin_ms, until_ms = periods.ms(since), periods.ms(until)
    began_ms, last_ms = await asked(context, caller, lambda: (reports.stored_since_ms(), reports.stored_until_ms()))
    stored_ms, wanted_ms = max(last_ms, begin_ms), min(until_ms, periods.ms(context.now()))
    return {
        "storedSince": times.text(began_ms) if began_ms > begin_ms + BEHIND_MS else "",
        "staleSince": times.text(stored_ms) if stored_ms < wanted_ms - BEHIND_MS else "",
    }


async def readable_namespaces(context: Context, caller: Caller, asked: Iterable[str]) -> frozenset[Namespace] | None:
    """Return the namespaces that count, None for all. Raises AdminProblem: 403 for one asked for by name."""
    named = frozenset(map(Namespace, asked))
    if await context.access.may(caller, READ_PODS):
        return named or None
    wanted = named or (await context.snapshot()).namespaces
    sees = await visibility.namespaces(context.access, caller, wanted)
    if hidden := sorted(namespace for namespace in named if not sees(namespace)):
        raise AdminProblem(HTTPStatus.FORBIDDEN, f"{caller.name} may not get pods in namespace {hidden[0]}")
    return frozenset(namespace for namespace in wanted if sees(namespace))


def _group(text: str) -> UsageGroup:
    if text.startswith(LABEL) and len(text) > len(LABEL):
        return UsageGroup(Dimension.LABEL, text.removeprefix(LABEL))
    plain = [dimension for dimension in Dimension if dimension is not Dimension.LABEL]
    if text not in plain:
        raise bad_field("by", f"{text[:60]!r} is not one of {', '.join(plain)}, label:KEY")
    return UsageGroup(Dimension(text))


def _labels(listed: Iterable[str]) -> dict[str, str]:
    found = {}
    for label in listed:
        key, equals, value = label.partition("=")
        if not key or not equals:
            raise bad_field("label", f"{label[:60]!r} is not KEY=VALUE")
        found[key] = value
    return found


def _worst(rows: Sequence[RightSizeRow]) -> list[RightSizeRow]:
    """Return the rows that left guaranteed time unused, most of it first."""
    return sorted((row for row in rows if row.unused_s > 0), key=lambda row: (-row.unused_s, row.namespace, row.owner))


def _entry(entry: HistoryEntry) -> dict[str, Any]:
    at = datetime.fromtimestamp(entry.at_ms / 1000, UTC)
    return {"id": entry.id, "time": text(at), "kind": entry.kind, "namespace": entry.namespace, "event": entry.event}


def text(at: datetime) -> str:
    """Return a time as the history's answers have it."""
    return at.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
