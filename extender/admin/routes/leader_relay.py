"""Relays requests to the leading replica, where replicas have histories of their own: one history answers.

The caller's credentials go along, and the leading replica reviews them itself: this one adds no right of its own. A
request that was relayed is never relayed again.
"""

from collections.abc import Awaitable, Callable
from http import HTTPStatus
from typing import Final, Protocol

from starlette.requests import Request
from starlette.responses import Response

from extender.admin.exchange.snapshots import ClusterSnapshot
from extender.admin.problems import AdminProblem
from extender.admin.security.access import Caller
from extender.admin.security.caller_turns import CallerTurns
from extender.lead.admin_address import AdminAddress, LeadingReplica
from vgpu.adapters.pinned_http import ReplicaAnswer
from vgpu.domain import names
from vgpu.domain.errors import ReplicaUnreachable

AT_ONCE: Final = 8
WAITING: Final = 1_024
OF_CALLER: Final = 128
PASSED_ON: Final = ("Authorization", names.ADMIN_TOKEN_HEADER, "Accept", "Accept-Encoding", "If-None-Match")
PASSED_BACK: Final = (
    "Content-Type", "Content-Encoding", "Vary", "ETag", "Cache-Control", "Retry-After", "WWW-Authenticate",
)  # fmt: skip
NOBODY_LEADS: Final = "no replica of the extender leads now, and the history is the leading replica's"
_RETRY_AFTER: Final = {"Retry-After": "5"}


class LeaderHttp(Protocol):
    """Requests to the leading replica."""

    async def ask(self, method: str, url: str, headers: dict[str, str], certificate_sha256: str = "") -> ReplicaAnswer:
        """Send a request without a body. Raises ReplicaUnreachable."""

    async def close(self) -> None:
        """Close the connections."""


class LeaderRelay:
    """Relays to the leading replica, as the snapshots name it; a few requests at once, for which callers have turns."""

    def __init__(self, snapshot: Callable[[], Awaitable[ClusterSnapshot]], http: LeaderHttp) -> None:
        self._snapshot = snapshot
        self._http = http
        self._turns = CallerTurns(AT_ONCE, WAITING, OF_CALLER)

    async def elsewhere(self) -> LeadingReplica | None:
        """Return the leading replica; None where this one leads. Raises AdminProblem until the first lists are here."""
        leader = (await self._snapshot()).leader
        return None if leader.is_here else leader

    async def answer(self, request: Request, caller: Caller, leader: LeadingReplica) -> Response:
        """Return the leading replica's answer to a request without a body.

        Raises:
            AdminProblem: 503, no replica leads, or the one that does cannot be asked.
        """
        address = _address(request, leader)
        headers = {name: value for name in PASSED_ON if (value := request.headers.get(name)) is not None}
        path, query = request.scope["raw_path"].decode("ascii"), request.scope["query_string"].decode("ascii")
        url = f"{address.url}{path}{f'?{query}' if query else ''}"
        try:
            async with self._turns.turn(caller.counted_as):
                found = await self._http.ask(
                    request.method, url, {**headers, names.RELAYED_HEADER: "1"}, address.certificate_sha256
                )
        except ReplicaUnreachable as error:
            detail = f"replica {leader.identity} leads and has the history, and does not answer: {error}"
            raise _unavailable(detail) from error
        passed = {name: value for name in PASSED_BACK if (value := found.headers.get(name)) is not None}
        return Response(found.body, found.status, passed)

    async def close(self) -> None:
        """Close the connections."""
        await self._http.close()


def _address(request: Request, leader: LeadingReplica) -> AdminAddress:
    if not leader.identity:
        raise _unavailable(NOBODY_LEADS)
    if names.RELAYED_HEADER in request.headers:
        raise _unavailable(f"{NOBODY_LEADS}: the leader has just changed, and {leader.identity} leads now")
    if leader.address is None:
        detail = (
            f"replica {leader.identity} leads and has the history, and has published no address: start the extenders "
            "with --admin-advertise-address (docs/history.md)"
        )
        raise _unavailable(detail)
    return leader.address


def _unavailable(detail: str) -> AdminProblem:
    return AdminProblem(HTTPStatus.SERVICE_UNAVAILABLE, detail, headers=_RETRY_AFTER)
