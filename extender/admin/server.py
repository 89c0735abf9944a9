"""The admin's listener: a thread with an event loop of its own beside the verbs' loop.

A failure here never ends the extender: the thread is started again after a pause. A thread gives up the interpreter's
lock after 0.5 ms, so that the verbs' loop waits that long at most for the lock.
"""

import asyncio
import contextlib
import logging
import socket
import sys
import threading
from collections.abc import Callable, Coroutine
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any, Final

import uvicorn
from starlette.types import ASGIApp

from extender.admin import connections, serving_certificate
from vgpu.adapters import process
from vgpu.errors import VgpuError

SWITCH_S: Final = 0.0005
KEEP_ALIVE_S: Final = 75
GRACE_S: Final = 2
AGAIN_S: Final = 5.0

log = logging.getLogger(__name__)

Opened = Callable[[], AbstractAsyncContextManager[ASGIApp]]


@dataclass(frozen=True, slots=True)
class Listener:
    """Where to listen. Without files, an address other than loopback gets a certificate of its own (ADR 44)."""

    host: str
    port: int
    is_loopback: bool
    tls_cert: Path | None = None
    tls_key: Path | None = None


class AdminServer:
    """Serves until cancelled.

    `opened` makes the application within the thread's loop, with what it uses; `now` is the wall clock.
    """

    def __init__(self, listener: Listener, opened: Opened, now: Callable[[], datetime]) -> None:
        self._listener = listener
        self._opened = opened
        self._now = now

    async def run(self) -> None:
        """Serve in a thread until cancelled; start the thread again where it fails."""
        sys.setswitchinterval(SWITCH_S)
        while True:
            try:
                await _in_thread(self._serve)
                log.warning("the admin listener ended")
            except (VgpuError, OSError, RuntimeError) as error:
                log.warning("the admin listener failed: %s", error)
            await asyncio.sleep(AGAIN_S)

    async def _serve(self) -> None:
        asyncio.get_running_loop().set_exception_handler(connections.note_full)
        async with self._opened() as app:
            with connections.listen(
                self._listener.host, self._listener.port, connections.most_connections()
            ) as listening:
                server = process.Server(_config(self._listener, app, self._now()))
                serving = asyncio.create_task(server.serve(sockets=[listening]))
                try:
                    await asyncio.shield(serving)
                except asyncio.CancelledError:
                    server.should_exit = True
                    await serving


async def _in_thread(main: Callable[[], Coroutine[Any, Any, None]]) -> None:
    """Run a coroutine in a thread of its own; when this is cancelled, cancel it and wait for its end."""
    outer, ended = asyncio.get_running_loop(), asyncio.Event()
    inner: list[tuple[asyncio.AbstractEventLoop, asyncio.Task[None]]] = []
    failure: list[BaseException] = []

    async def noted() -> None:
        task = asyncio.create_task(main())
        inner.append((asyncio.get_running_loop(), task))
        with contextlib.suppress(asyncio.CancelledError):
            await task

    def work() -> None:
        try:
            asyncio.run(noted())
        except BaseException as error:  # noqa: BLE001 - raised again in the verbs' loop
            failure.append(error)
        with contextlib.suppress(RuntimeError):  # the verbs' loop may be closed
            outer.call_soon_threadsafe(ended.set)

    thread = threading.Thread(target=work, name="admin", daemon=True)
    thread.start()
    try:
        await ended.wait()
    except asyncio.CancelledError:
        for loop, task in inner:
            loop.call_soon_threadsafe(task.cancel)
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(ended.wait(), GRACE_S + 1)
        raise
    if failure:
        raise failure[0]


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
