"""The admin's listener."""

import asyncio
import socket
from datetime import datetime
from typing import Any, Final

import uvicorn
from starlette.types import ASGIApp

from extender.admin import connections, serving_certificate
from extender.admin.exchange.messages import Listener
from vgpu.adapters import process

KEEP_ALIVE_S: Final = 75
GRACE_S: Final = 2


async def serve(listener: Listener, app: ASGIApp, now: datetime) -> None:
    """Serve until cancelled; then finish the requests in flight. `now` is the wall clock. Raises OSError."""
    asyncio.get_running_loop().set_exception_handler(connections.note_full)
    with connections.listen(listener.host, listener.port, connections.most_connections()) as listening:
        await process.HttpServer(_config(listener, app, now)).serve_until_cancelled(sockets=[listening])


def _config(listener: Listener, app: ASGIApp, now: datetime) -> uvicorn.Config:
    tls: dict[str, Any] = {}
    if listener.tls_cert is not None:
        tls = {"ssl_certfile": str(listener.tls_cert), "ssl_keyfile": str(listener.tls_key)}
    elif not listener.is_loopback:
        tls = {"ssl_certfile": serving_certificate.self_signed(socket.gethostname(), now)}
    return uvicorn.Config(
        app,
        http=connections.Protocol,
        timeout_keep_alive=KEEP_ALIVE_S,
        timeout_graceful_shutdown=GRACE_S,
        h11_max_incomplete_event_size=64 << 10,
        server_header=False,
        access_log=False,
        log_config=None,
        lifespan="off",
        **tls,
    )
