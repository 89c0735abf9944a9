"""The admin's process: `python -m extender.admin DESCRIPTOR LOG_LEVEL`, started by the extender.

DESCRIPTOR is a socket to the extender; its first frame has the settings. When the extender closes it, or is killed, the
process ends.
"""

import asyncio
import contextlib
import socket
import sys
import time
from datetime import UTC, datetime

from extender.admin import assembly, server
from extender.admin.assembly import Parts
from extender.admin.exchange import pickle_frames
from extender.admin.exchange.cluster_client import ClusterClient
from extender.admin.exchange.messages import StartMessage
from extender.history import folder
from extender.history.reporting import prices
from extender.history.reporting.reports import Reports
from vgpu.adapters import process
from vgpu.adapters.kubernetes.client import KubernetesClient


def main() -> None:
    """Serve the admin REST; exit with status 1 on an error."""
    descriptor, log_level = sys.argv[1:]
    process.run("admin", log_level, lambda: serve(int(descriptor)))


async def serve(descriptor: int) -> None:
    """Serve until cancelled, or until the extender closes the socket."""
    reader, writer = await asyncio.open_connection(sock=socket.socket(fileno=descriptor))
    try:
        start: StartMessage = await pickle_frames.receive(reader)
    except (asyncio.IncompleteReadError, ConnectionError):
        return  # the extender has ended before its own start
    cluster = ClusterClient(reader, writer)
    receiving = asyncio.create_task(cluster.run())
    serving = asyncio.create_task(_serve(start, cluster))
    try:
        await asyncio.wait({receiving, serving}, return_when=asyncio.FIRST_COMPLETED)
    finally:
        receiving.cancel()
        serving.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await serving


async def _serve(start: StartMessage, cluster: ClusterClient) -> None:
    kubeconfig = str(start.kubeconfig) if start.kubeconfig else None
    async with await KubernetesClient.connect(kubeconfig, user_agent=start.user_agent) as client:
        parts = Parts(
            source=cluster,
            client=client,
            clock=time.monotonic,
            now=_now,
            token=start.token,
            has_reviews=start.has_reviews,
            reports=_reports(start),
            on_action=cluster.acted,
            gpushare_unit_mib=start.gpushare_unit_mib,
            namespace=start.namespace,
            extender_version=start.version,
            has_own_history=start.has_own_history,
        )
        async with assembly.opened(parts) as app:
            process.give_way()  # not while it starts: it would wait for other programs of the machine (ADR 154)
            await server.serve(start.listener, app, _now(), cluster.serving)


def _reports(start: StartMessage) -> Reports | None:
    """Open the history. SQLAlchemy takes 45 MB and half a second: it is imported if it is needed."""
    if start.history_dir is None:
        return None
    from extender.history.reporting.sql_reports import SqlReports  # noqa: PLC0415
    from extender.history.storage import database  # noqa: PLC0415

    url = start.history_url or database.sqlite_url(folder.sqlite_file(start.history_dir))
    known = prices.read(start.prices) if start.prices else prices.Prices()
    return SqlReports(database.engine(url), known, lambda: time.time_ns() // 1_000_000)


def _now() -> datetime:
    return datetime.now(UTC)


if __name__ == "__main__":
    main()
