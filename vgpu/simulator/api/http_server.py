"""Serves an ASGI application on the loopback address, in the caller's event loop."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any, Final

import uvicorn
from starlette.types import ASGIApp

from vgpu.adapters import listening
from vgpu.adapters.listening import ListenAddress
from vgpu.adapters.process import HttpServer

GRACE_S: Final = 2  # for requests in flight at the end


@asynccontextmanager
async def serve(
    app: ASGIApp, port: int = 0, *, before_end: Callable[[], None] = lambda: None, **more: Any
) -> AsyncIterator[ListenAddress]:
    """Serve, and yield the address; port 0 takes a free one. `more` is configuration for uvicorn, such as certificates.

    `before_end` is called at the end, before the server stops: it must end long-running requests.

    Raises:
        OSError: the port is in use.
    """
    listener = listening.listen(listening.loopback(), port)
    options: dict[str, Any] = {"lifespan": "off", "access_log": False, "log_config": None} | more
    config = uvicorn.Config(app, timeout_graceful_shutdown=GRACE_S, **options)
    server = HttpServer(config)
    task = asyncio.create_task(server.serve(sockets=[listener]))
    try:
        host, taken, *_ = listener.getsockname()
        yield ListenAddress(host, taken)
    finally:
        before_end()
        server.should_exit = True
        await task
