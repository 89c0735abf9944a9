"""Ends what is under way when the server stops: streams at once, and what takes too long with an answer.

uvicorn lets requests finish, and cancels those that are left after a time limit. An event stream never finishes: each
open page held up the end, and left a traceback in the log.
"""

import asyncio
from http import HTTPStatus
from typing import Final

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from extender.admin import problems
from extender.admin.problems import AdminProblem

STOPS: Final = AdminProblem(
    HTTPStatus.SERVICE_UNAVAILABLE, "the admin REST stops", headers={"Retry-After": "5", "Connection": "close"}
)


class StoppableApp:
    """Passes requests on to `app`, which hears of the stop as of a client that goes."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app
        self._stopping = asyncio.Event()

    def stop(self) -> None:
        """Tell every request that waits for its client's going, as streams do, that the client goes."""
        self._stopping.set()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer; with 503 where the server cancels the request before its answer has begun."""
        messages = _RequestMessages(receive, send, self._stopping)
        try:
            await self._app(scope, messages.receive, messages.send)
        except asyncio.CancelledError:
            if not messages.is_answered:
                await problems.response(STOPS, scope["path"])(scope, receive, send)


class _RequestMessages:
    """The messages of one request. `is_answered` says whether an answer has begun."""

    def __init__(self, receive: Receive, send: Send, stopping: asyncio.Event) -> None:
        self._receive = receive
        self._send = send
        self._stopping = stopping
        self._has_body = False
        self.is_answered = False

    async def receive(self) -> Message:
        """Return the next message. After the whole body, the stop is the client's going."""
        if self._has_body:
            return await self._gone()
        message = await self._receive()
        self._has_body = not message.get("more_body", False)
        return message

    async def send(self, message: Message) -> None:
        """Send a message of the answer."""
        self.is_answered = True
        await self._send(message)

    async def _gone(self) -> Message:
        waiting = {asyncio.ensure_future(self._receive()), asyncio.ensure_future(self._stopping.wait())}
        try:
            await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in waiting:
                task.cancel()
        return {"type": "http.disconnect"}
