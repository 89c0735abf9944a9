"""Serving an application on the loopback address, inside the event loop of who asked for it."""

import asyncio
import contextlib
import socket
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from typing import Any

import uvicorn
from starlette.types import ASGIApp


class _Server(uvicorn.Server):
    """A server that leaves the process's signals to whoever runs it."""

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


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
    config = uvicorn.Config(app, lifespan="off", access_log=False, log_level="warning", log_config=None, **more)
    server = _Server(config)
    task = asyncio.create_task(server.serve(sockets=[listener]))
    try:
        yield listener.getsockname()[1]
    finally:
        before_end()
        server.should_exit = True
        await task
