"""The admin's listener."""

import asyncio
import socket
from collections.abc import Callable, Mapping
from datetime import datetime
from pathlib import Path
from typing import Any, Final

import uvicorn
from starlette.types import ASGIApp

from extender.admin import connections, serving_certificate
from extender.admin.exchange.messages import Listener
from extender.admin.stopping import StoppableApp
from vgpu.adapters import process

KEEP_ALIVE_S: Final = 75
GRACE_S: Final = 0.3  # for the requests in flight; streams of events have no end


class StoppingServer(process.HttpServer):
    """A server that tells its application when it begins to stop."""

    def __init__(self, config: uvicorn.Config, app: StoppableApp) -> None:
        super().__init__(config)
        self._app = app

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """End the streams, then finish the requests in flight."""
        self._app.stop()
        await super().shutdown(sockets)


async def serve(
    listener: Listener, app: ASGIApp, now: datetime, serving: Callable[[str], None] = lambda _: None
) -> None:
    """Serve until cancelled; then finish the requests in flight. `now` is the wall clock. Raises OSError.

    `serving` takes the hash of the certificate, once the address is this process's; an empty text without TLS.
    """
    asyncio.get_running_loop().set_exception_handler(connections.note_full)
    with connections.listen(listener.host, listener.port, connections.most_connections()) as listening:
        tls = _tls(listener, now)
        stoppable = StoppableApp(app)
        server = StoppingServer(_config(stoppable, tls), stoppable)
        serving(serving_certificate.sha256(Path(tls["ssl_certfile"])) if tls else "")
        await server.serve_until_cancelled(sockets=[listening])


def _tls(listener: Listener, now: datetime) -> dict[str, str]:
    if listener.tls_cert is not None:
        return {"ssl_certfile": str(listener.tls_cert), "ssl_keyfile": str(listener.tls_key)}
    return {} if listener.is_loopback else {"ssl_certfile": serving_certificate.self_signed(socket.gethostname(), now)}


def _config(app: ASGIApp, tls: Mapping[str, Any]) -> uvicorn.Config:
    return uvicorn.Config(
        app,
        http=connections.Protocol,
        timeout_keep_alive=KEEP_ALIVE_S,
        timeout_graceful_shutdown=GRACE_S,  # type: ignore[arg-type] # asyncio.wait_for gets it, and takes fractions
        h11_max_incomplete_event_size=64 << 10,
        server_header=False,
        access_log=False,
        log_config=None,
        lifespan="off",
        **tls,
    )
