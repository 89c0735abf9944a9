"""`python -m extender`: read the settings, build the objects, serve until told to stop."""

import asyncio
import logging
import socket
import ssl
import time
from datetime import UTC, datetime
from typing import Any, Final

from vgpu.adapters import extras

with extras.needed("cluster", by="extender"):
    import uvicorn

    import vgpu
    from extender import watches as watching
    from extender.app import Verbs, app
    from extender.bind import Binder
    from extender.cluster import Cluster
    from extender.event_recorder import Teller
    from extender.leadership import Leadership
    from extender.settings import Settings
    from extender.unschedulable import Waiting
    from vgpu.adapters import process
    from vgpu.adapters.kubernetes.client import Client

KEEP_ALIVE_S: Final = 120  # Go's clients keep idle connections for 90 s, and do not retry a POST on one just closed
GRACE_S: Final = 5  # for calls on their way, and for clients that do not close their idle connections

log = logging.getLogger("extender")


def main() -> None:
    """Run the extender; exit 2 on bad settings, 1 when it cannot go on."""
    settings = process.read_settings(Settings)
    process.run("extender", settings.log_level, lambda: serve(settings))


async def serve(settings: Settings) -> None:
    """Serve until cancelled; then finish the Bindings on their way and give the Lease back."""
    kubeconfig = str(settings.kubeconfig) if settings.kubeconfig else None
    async with await Client.connect(kubeconfig, user_agent=f"vgpu-extender/{vgpu.__version__}") as client:
        cluster = Cluster(settings.slice_mib, time.monotonic)
        teller = Teller(client, time.monotonic, _now)
        waiting = Waiting(cluster, settings.defaults, teller)
        watches = watching.watches(client, cluster, waiting, teller, settings.namespace)
        leadership = Leadership(
            client,
            cluster,
            watches.pods,
            namespace=settings.namespace,
            identity=settings.identity or socket.gethostname(),
            settle_s=settings.scheduler_http_timeout,
            now=_now,
        )
        binder = Binder(client, cluster, settings.defaults, leadership)
        background = asyncio.create_task(_background(watches, leadership, teller, waiting))
        server = process.Server(_config(settings, Verbs(cluster, settings.defaults, binder, teller, watches)))
        background.add_done_callback(lambda _: setattr(server, "should_exit", True))
        await server.serve_until_cancelled()
        await binder.drain()
        background.cancel()
        await leadership.resign()
        await asyncio.gather(background, return_exceptions=True)
    if not background.cancelled() and (failure := background.exception()) is not None:
        raise failure


async def _background(watches: watching.Watches, leadership: Leadership, teller: Teller, waiting: Waiting) -> None:
    async with asyncio.TaskGroup() as group:
        group.create_task(watches.run())
        group.create_task(teller.run())
        await watches.wait()
        group.create_task(waiting.run())
        log.info("the first lists are complete")
        await leadership.run()


def _config(settings: Settings, verbs: Verbs) -> uvicorn.Config:
    tls: dict[str, Any] = {}
    if settings.client_ca is not None:
        tls = {
            "ssl_certfile": settings.tls_cert,
            "ssl_keyfile": settings.tls_key,
            "ssl_ca_certs": str(settings.client_ca),
            "ssl_cert_reqs": ssl.CERT_REQUIRED,
        }
    return uvicorn.Config(
        app(verbs, time.perf_counter),
        host=settings.host,
        port=settings.port,
        timeout_keep_alive=KEEP_ALIVE_S,
        timeout_graceful_shutdown=GRACE_S,
        access_log=False,
        log_config=None,
        **tls,
    )


def _now() -> datetime:
    return datetime.now(UTC)


if __name__ == "__main__":
    main()
