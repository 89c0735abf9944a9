"""`/events`: what changes, as server-sent events."""

from collections.abc import Callable
from http import HTTPStatus
from typing import Annotated

from fastapi import APIRouter, Query, Request, Response

from extender.admin.answers.event_response import EventResponse
from extender.admin.answers.event_streams import StreamEvent
from extender.admin.answers.queries import EventQuery
from extender.admin.problems import AdminProblem
from extender.admin.routes.context import Called, Context, Using, identified
from extender.admin.security import visibility
from extender.admin.security.access import READ_CARDS, Caller
from vgpu.domain.identifiers import Namespace

router = APIRouter(tags=["events"])

STREAM = {
    "description": "A stream of the events `pod`, `gpu` and `node`, each with `{type, object}` as data, where type is "
    "ADDED, MODIFIED or DELETED; `overflow` before the end of a stream that is read too slowly: read the lists again.",
    "content": {
        "text/event-stream": {
            "schema": {"type": "string"},
            "example": 'event: pod\ndata: {"type":"MODIFIED","object":{"namespace":"default","name":"train"}}\n\n',
        }
    },
}


@router.get("/events", response_class=Response, responses={200: STREAM})
async def stream_events(
    request: Request, context: Using, caller: Called, query: Annotated[EventQuery, Query()]
) -> Response:
    """Stream changes of pods, cards and nodes: read the lists first, then apply the changes."""
    sees = await _sees(context, caller, query)
    stream = context.streams.open(caller.counted_as, sees, is_local=caller.is_local)

    async def still_allowed() -> bool:
        """Whether the token is still good; the stream's filter follows the rights that the caller has now."""
        try:
            again = await identified(request)
            stream.sees = await _sees(context, again, query)
        except AdminProblem as problem:
            return problem.status not in (HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN)
        return True

    return EventResponse(stream, still_allowed, context.streams.close)


async def _sees(context: Context, caller: Caller, query: EventQuery) -> Callable[[StreamEvent], bool]:
    """Return which changes the caller gets. Raises AdminProblem where the caller asks for what it may not see."""
    kinds = set(query.kind or ("pod", "gpu", "node"))
    may_see_cards = await context.access.may(caller, READ_CARDS)
    if query.kind and kinds & {"gpu", "node"} and not may_see_cards:
        raise AdminProblem(HTTPStatus.FORBIDDEN, f"{caller.name} may not {READ_CARDS}")
    asked = set(map(Namespace, query.namespace))
    namespaces = asked or (await context.snapshot()).namespaces
    sees_pods = await visibility.namespaces(context.access, caller, namespaces)
    if any(not sees_pods(namespace) for namespace in asked):
        raise AdminProblem(HTTPStatus.FORBIDDEN, f"{caller.name} may not get pods in every namespace asked for")

    def sees(change: StreamEvent) -> bool:
        if change.kind not in kinds:
            return False
        if change.kind != "pod":
            return may_see_cards
        return (not asked or change.namespace in asked) and sees_pods(change.namespace)

    return sees
