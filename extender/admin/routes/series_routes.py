"""`/gpus/{uuid}/series` and `/pods/{namespace}/{name}/series`: what was measured, every five minutes, for charts."""

from dataclasses import replace
from datetime import datetime
from typing import Annotated, Final

from fastapi import APIRouter, Query, Request, Response

from extender.admin.answers import periods, series
from extender.admin.answers.json_response import answer
from extender.admin.answers.paging import Row
from extender.admin.answers.queries import SeriesQuery
from extender.admin.problems import bad_field, not_found
from extender.admin.routes import history_routes
from extender.admin.routes.context import Called, Context, Using
from extender.admin.routes.history_route import HistoryRoute
from extender.admin.routes.inventory_routes import Uuid
from extender.admin.routes.pod_routes import NamespaceInPath, PodName
from extender.admin.security import visibility
from extender.admin.security.access import READ_PODS, Caller
from extender.history.reporting.reports import PodSeries, Reports
from vgpu.domain.identifiers import NO_NODE

router = APIRouter(tags=["history"], route_class=HistoryRoute)

DEFAULT: Final = "24h"
MAX_MS: Final = 31 * 24 * 3_600_000


@router.get("/gpus/{uuid}/series", response_model=series.CardSeriesSchema)
async def card_series(
    request: Request, context: Using, caller: Called, uuid: Uuid, query: Annotated[SeriesQuery, Query()]
) -> Response:
    """Show memory, time used, temperature and power of a card every five minutes, and what its containers used.

    Shows the containers of namespaces in which the caller may get pods. Older figures are hourly. Needs the right to
    list gpunodes.
    """
    await visibility.require_cards(context.access, caller)
    reports = history_routes.reports_of(context)
    node = (await context.snapshot()).node_of_card.get(uuid, NO_NODE)
    if not node:
        raise not_found(f"card {uuid}")
    since, until = _period(query, context.now())
    seen = await history_routes.readable_namespaces(context, caller, ())
    begin, end = periods.ms(since), periods.ms(until)
    found = await history_routes.asked(context, caller, lambda: reports.card_series(node, uuid, begin, end, seen))
    shown = {"uuid": uuid, "node": node, "card": series.card_columns(found.figures)}
    return answer(request, {**shown, **await _shown(context, caller, reports, found.containers, since, until)})


@router.get("/pods/{namespace}/{name}/series", response_model=series.PodSeriesSchema)
async def pod_series(
    request: Request, context: Using, caller: Called, namespace: NamespaceInPath, name: PodName,
    query: Annotated[SeriesQuery, Query()],
) -> Response:  # fmt: skip
    """Show memory, time used and waits of a pod's containers every five minutes; of a name's latest pod.

    Older figures are hourly, without waits. The pod may have ended.
    """
    await visibility.require(context.access, caller, replace(READ_PODS, namespace=namespace))
    reports = history_routes.reports_of(context)
    since, until = _period(query, context.now())
    begin, end = periods.ms(since), periods.ms(until)
    found = await history_routes.asked(context, caller, lambda: reports.pod_series(namespace, name, begin, end))
    return answer(request, await _shown(context, caller, reports, found, since, until))


def _period(query: SeriesQuery, now: datetime) -> tuple[datetime, datetime]:
    since, until = periods.read(query.since or DEFAULT, query.until, now)
    if periods.ms(until) - periods.ms(since) > MAX_MS:
        raise bad_field("since", "is more than 31 days before the end; ask for a shorter time")
    return since, until


async def _shown(
    context: Context, caller: Caller, reports: Reports, found: PodSeries, since: datetime, until: datetime
) -> Row:
    return {
        "since": history_routes.text(since),
        "until": history_routes.text(until),
        "containers": [series.container_columns(container) for container in found.containers],
        "complete": found.is_complete,
        **await history_routes.stored(context, caller, reports, since, until),
    }
