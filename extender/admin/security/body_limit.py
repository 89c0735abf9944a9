"""Bounds the bodies of requests: the size of each one, and how fast large ones are read.

A body without a length is read until it is too long. Clients that send such bodies one after the other would keep a
processor busy, which the verbs need.
"""

import asyncio
from collections.abc import Awaitable, Callable
from http import HTTPStatus
from typing import Final

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from extender.admin import problems
from extender.admin.problems import AdminProblem
from vgpu.adapters import http_body
from vgpu.pacing.token_bucket import TokenBucket

MAX_BODY: Final = 1 << 20
PIECE: Final = 64 << 10  # the first piece of a body is read at once: most bodies are shorter
PIECES_PER_S: Final = 256.0  # of all requests together
BURST: Final = 64  # pieces that may be read at once


class BodyLimit:
    """Refuses a request's body beyond a size: by its Content-Length at once, or as soon as more has come."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app
        self._pieces = TokenBucket(PIECES_PER_S, BURST, asyncio.get_running_loop().time)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on, with a bounded body."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        length = http_body.length(dict(scope["headers"]).get(b"content-length", b"0").decode("latin-1"))
        if length is None or length > MAX_BODY:
            await _refuse(scope, receive, send)
            return
        body, started = _Body(receive, self._pace), False

        async def noted(message: Message) -> None:
            nonlocal started
            started = True
            await send(message)

        try:
            await self._app(scope, body.receive, noted)
        except _TooLong:
            if not started:
                await _refuse(scope, receive, send)

    async def _pace(self, pieces: int) -> None:
        """Wait until as many pieces may be read; meanwhile the connection's next ones stay with the client."""
        if wait_s := self._pieces.reserve(pieces):
            await asyncio.sleep(wait_s)


class _Body:
    """The messages of one request."""

    def __init__(self, receive: Receive, pace: Callable[[int], Awaitable[None]]) -> None:
        self._receive = receive
        self._pace = pace
        self._bytes = 0

    async def receive(self) -> Message:
        """Return the next message, when it may be read. Raises _TooLong."""
        message = await self._receive()
        before, self._bytes = self._bytes, self._bytes + len(message.get("body", b""))
        if self._bytes > MAX_BODY:
            raise _TooLong
        if pieces := self._bytes // PIECE - before // PIECE:
            await self._pace(pieces)
        return message


async def _refuse(scope: Scope, receive: Receive, send: Send) -> None:
    problem = AdminProblem(
        HTTPStatus.REQUEST_ENTITY_TOO_LARGE, f"the body is longer than {MAX_BODY} bytes",
        headers={"Connection": "close"},
    )  # fmt: skip
    await problems.response(problem, scope["path"])(scope, receive, send)


class _TooLong(BaseException):
    """More of the body came than is read. No handler of the application may take it for an error of its own."""
