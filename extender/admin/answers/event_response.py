"""The answer that writes an event stream.

The format: https://html.spec.whatwg.org/multipage/server-sent-events.html

It ends when the client goes, when the client reads too slowly, when the caller's rights end, or when the server stops.
"""

import asyncio
import contextlib
from collections.abc import Awaitable, Callable
from typing import Final

from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from extender.admin.answers.event_streams import ClientStream

HEARTBEAT_S: Final = 15.0
SEND_TIMEOUT_S: Final = 10.0
RETRY_MS: Final = 2_000
HEARTBEAT: Final = b": heartbeat\n\n"
OVERFLOW: Final = b"event: overflow\ndata: {}\n\n"
EXPIRED: Final = b"event: expired\ndata: {}\n\n"
MAX_JOINED: Final = 64  # events of one write


class EventResponse(Response):
    """Writes a stream's events, and a comment as heartbeat where there are none.

    `still_allowed` is asked with every heartbeat whether the caller may read on; `close` is called at the end.
    """

    media_type = "text/event-stream"

    def __init__(
        self, stream: ClientStream, still_allowed: Callable[[], Awaitable[bool]], close: Callable[[ClientStream], None]
    ) -> None:
        super().__init__(headers={"Cache-Control": "no-store", "X-Accel-Buffering": "no"}, media_type=self.media_type)
        del self.headers["content-length"]
        self._stream = stream
        self._still_allowed = still_allowed
        self._close = close

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:  # noqa: ARG002 - ASGI's signature
        """Write until the end."""
        writing = asyncio.create_task(self._write(send))
        leaving = asyncio.create_task(_disconnected(receive))
        try:
            await asyncio.wait({writing, leaving}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            self._close(self._stream)
            was_cut = writing.cancel()
            leaving.cancel()
            await asyncio.gather(writing, leaving, return_exceptions=True)
        if was_cut:  # the server stops, and the client waits for the end; one that has gone gets nothing
            with contextlib.suppress(TimeoutError):
                await _send(send, b"", more=False)

    async def _write(self, send: Send) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": self.raw_headers})
        last = await self._copy(send)
        with contextlib.suppress(TimeoutError):
            await _send(send, last, more=False)

    async def _copy(self, send: Send) -> bytes:
        """Copy events until the end; return the last frame."""
        await _send(send, b"retry: %d\n\n" % RETRY_MS)
        stream = self._stream
        while not stream.is_full:
            stream.woken.clear()
            frames = [stream.queue.popleft().frame for _ in range(min(MAX_JOINED, len(stream.queue)))]
            if frames:
                try:
                    await _send(send, b"".join(frames))
                except TimeoutError:
                    return OVERFLOW
            elif not await self._wait(send):
                return EXPIRED
        return OVERFLOW

    async def _wait(self, send: Send) -> bool:
        """Wait for an event, or send a heartbeat; return whether the caller may read on."""
        try:
            async with asyncio.timeout(HEARTBEAT_S):
                await self._stream.woken.wait()
        except TimeoutError:
            if not await self._still_allowed():
                return False
            await _send(send, HEARTBEAT)
        return True


async def _send(send: Send, data: bytes, *, more: bool = True) -> None:
    async with asyncio.timeout(SEND_TIMEOUT_S):
        await send({"type": "http.response.body", "body": data, "more_body": more})


async def _disconnected(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
