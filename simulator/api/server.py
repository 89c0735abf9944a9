"""Serving a cluster on a socket, inside the event loop of who asked for it."""

import asyncio
import contextlib
import socket
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from datetime import datetime

import uvicorn

from simulator.api import app
from simulator.api.admission import Webhooks
from simulator.api.cluster import Cluster
from simulator.api.store import Store


class _Server(uvicorn.Server):
    """A server that leaves the process's signals to whoever runs it."""

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


def make_cluster(now: Callable[[], datetime], uid: Callable[[], str]) -> Cluster:
    """Return an empty cluster that asks the webhooks configured in it; `now` and `uid` make the stamps of objects."""
    store = Store()
    return Cluster(store, Webhooks(store), now, uid)


@asynccontextmanager
async def serving(cluster: Cluster, port: int = 0) -> AsyncIterator[str]:
    """Serve a cluster on the loopback address, and give its URL; port 0 takes a free one.

    At the end watches are let go and the store is closed.

    Raises:
        OSError: the port is taken.
    """
    listener = socket.create_server(("127.0.0.1", port))
    listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)  # asyncio does so for sockets of its own making only
    config = uvicorn.Config(app.build(cluster), lifespan="off", access_log=False, log_level="warning", log_config=None)
    server = _Server(config)
    task = asyncio.create_task(server.serve(sockets=[listener]))
    try:
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"
    finally:
        cluster.store.close()
        server.should_exit = True
        await task
