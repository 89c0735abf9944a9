"""Serves metrics over HTTP at `/metrics`, without the API server's help: no token is asked for, and nothing is changed.

Whoever can connect can read: a NetworkPolicy says which namespaces may. Answers are kept for a second, so that clients
that ask in a loop cost no more than that.
"""

import asyncio
import logging
import socket
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any, Final

import uvicorn

from vgpu.adapters import listening, metrics, process
from vgpu.adapters.metrics import Registry

PATH: Final = "/metrics"
FRESH_S: Final = 1.0
_CONNECTIONS: Final = 32
_KEEP_ALIVE_S: Final = 75  # above Prometheus' usual interval of 15 to 60 s

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]

log = logging.getLogger(__name__)


class MetricsApp:
    """The ASGI application."""

    def __init__(self, registry: Registry, clock: Callable[[], float], *, blocks: bool = False) -> None:
        """`clock` is monotonic, in seconds; `blocks`: whether the metrics are read in a thread, because that blocks."""
        self._registry = registry
        self._clock = clock
        self._blocks = blocks
        self._kept: dict[str, tuple[float, bytes]] = {}
        self._reading = asyncio.Lock()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:  # noqa: ARG002 - ASGI's signature
        """Answer one request."""
        if scope["type"] != "http":
            return
        if scope["path"] != PATH or scope["method"] != "GET":
            await _send(send, 404, "text/plain", b"metrics are at /metrics\n")
            return
        accept = dict(scope["headers"]).get(b"accept", b"").decode("latin-1")
        try:
            await _send(send, 200, metrics.content_type(accept), await self._body(accept))
        except Exception:
            log.exception("the metrics cannot be read")
            await _send(send, 500, "text/plain", b"the metrics cannot be read; the log says why\n")

    async def _body(self, accept: str) -> bytes:
        kind = metrics.content_type(accept)
        async with self._reading:
            at, body = self._kept.get(kind, (None, b""))
            if at is None or self._clock() - at >= FRESH_S:
                render = self._registry.render
                body, _ = await asyncio.to_thread(render, accept) if self._blocks else render(accept)
                self._kept[kind] = (self._clock(), body)
        return body


async def serve(registry: Registry, address: str, clock: Callable[[], float], *, blocks: bool = False) -> None:
    """Serve at IP:PORT until cancelled; where the port is taken, log that and return. Arguments as for MetricsApp."""
    try:
        listener = bound(address)
    except OSError as error:
        log.error("metrics are not served: %s cannot be bound: %s", address, error)  # noqa: TRY400 - a setting is wrong
        return
    await serve_on(listener, registry, clock, blocks=blocks)


def bound(address: str) -> socket.socket:
    """Return a socket that listens at IP:PORT. Raises OSError, and ValueError where the text is no such address."""
    at = listening.parse(address)
    return listening.listen(at.host, at.port)


async def serve_on(
    listener: socket.socket, registry: Registry, clock: Callable[[], float], *, blocks: bool = False
) -> None:
    """Serve on a socket until cancelled, and close it. Arguments as for MetricsApp."""
    config = uvicorn.Config(
        MetricsApp(registry, clock, blocks=blocks),
        lifespan="off",
        access_log=False,
        log_config=None,
        limit_concurrency=_CONNECTIONS,
        timeout_keep_alive=_KEEP_ALIVE_S,
        timeout_graceful_shutdown=1,
    )
    with listener:
        await process.HttpServer(config).serve_until_cancelled([listener])


async def _send(send: Send, status: int, content_type: str, body: bytes) -> None:
    headers = [(b"content-type", content_type.encode()), (b"content-length", str(len(body)).encode())]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})
