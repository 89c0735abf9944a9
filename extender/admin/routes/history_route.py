"""Routes that read or write the history: where each replica has one of its own, the leading one acts."""

from collections.abc import Callable, Coroutine
from http import HTTPStatus
from typing import Any

from fastapi import Request, Response
from fastapi.routing import APIRoute

from extender.admin.problems import AdminProblem
from extender.admin.routes import context as requests

Handler = Callable[[Request], Coroutine[Any, Any, Response]]


class HistoryRoute(APIRoute):
    """Reads the history. While the leading replica cannot be asked, the answer is 503: no other history stands in."""

    def get_route_handler(self) -> Handler:
        """Return what answers a request."""
        here = super().get_route_handler()

        async def answer(request: Request) -> Response:
            return await _elsewhere(request) or await here(request)

        return answer


class RecordedRoute(APIRoute):
    """Does something that the history records. While the leading replica cannot be asked, it is done here.

    An administrator can act at any time; the record is then in this replica's history, and in the log.
    """

    def get_route_handler(self) -> Handler:
        """Return what answers a request."""
        here = super().get_route_handler()

        async def answer(request: Request) -> Response:
            try:
                found = await _elsewhere(request)
            except AdminProblem as problem:
                if problem.status != HTTPStatus.SERVICE_UNAVAILABLE:
                    raise
                found = None
            if found is None or found.status_code == HTTPStatus.SERVICE_UNAVAILABLE:
                return await here(request)
            return found

        return answer


async def _elsewhere(request: Request) -> Response | None:
    """Return the leading replica's answer; None where this one is to answer. Raises AdminProblem."""
    relay = requests.of(request).relay
    leader = await relay.elsewhere() if relay is not None else None
    if relay is None or leader is None:
        return None
    return await relay.answer(request, await requests.authenticated(request), leader)
