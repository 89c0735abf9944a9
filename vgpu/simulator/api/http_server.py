"""Serving an application on the loopback address, inside the event loop of who asked for it."""

import asyncio
import socket
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any, Final

import uvicorn
from starlette.types import ASGIApp

from vgpu.adapters.process import Server

GRACE_S: Final = 2  # for answers on their way at the end


@asynccontextmanager
async def serve(
    app: ASGIApp, port: int = 0, *, before_end: Callable[[], None] = lambda: None, **more: Any
) -> AsyncIterator[int]:
    """Serve, and give the port; 0 takes a free one. `more` is uvicorn's configuration, for certificates.

    `before_end` is called first at the end: it must let go of requests that would last.

    Raises:
        OSError: the port is taken.
    """
    listener = socket.create_server(("127.0.0.1", port))
    # What it accepts inherits this; asyncio sets it only where it made the listening socket, and answers took 40 ms.
    listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    options: dict[str, Any] = {"lifespan": "off", "access_log": False, "log_config": None} | more
    config = uvicorn.Config(app, timeout_graceful_shutdown=GRACE_S, **options)
    server = Server(config)
    task = asyncio.create_task(server.serve(sockets=[listener]))
    try:
        yield listener.getsockname()[1]
    finally:
        before_end()
        server.should_exit = True
        await task
