"""Creates an API server and serves it over HTTP, for tests and `python -m vgpu.simulator`."""

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from datetime import datetime

from vgpu.simulator.api import app
from vgpu.simulator.api import http_server as http
from vgpu.simulator.api.admission import Webhooks
from vgpu.simulator.api.cluster import InMemoryCluster
from vgpu.simulator.api.store import HISTORY, Store


def make_cluster(now: Callable[[], datetime], uid: Callable[[], str], history: int = HISTORY) -> InMemoryCluster:
    """Return an empty cluster with admission webhooks.

    `now` and `uid` return the time and new UIDs for objects; `history` changes of each resource are kept at least.
    """
    store = Store(history)
    return InMemoryCluster(store, Webhooks(store), now, uid)


@asynccontextmanager
async def serving(cluster: InMemoryCluster, port: int = 0) -> AsyncIterator[str]:
    """Serve a cluster on the loopback address, and yield its URL; port 0 takes a free one.

    At the end the store is closed, which ends all watches.

    Raises:
        OSError: the port is in use.
    """
    async with http.serve(app.build(cluster), port, before_end=cluster.store.close) as address:
        yield f"http://{address}"
