"""`python -m extender`: read the settings, build the objects, serve until SIGTERM."""

import asyncio
import logging
import os
import random
import socket
import ssl
import time
import uuid
from datetime import UTC, datetime
from typing import Any, Final

from vgpu.adapters import extras

with extras.needed("cluster", by="extender"):
    import uvicorn

    import vgpu
    from extender import admin_service, assembly
    from extender.admin.exchange.process import AdminProcess
    from extender.app import SchedulerVerbs, app
    from extender.assembly import Observers, Run
    from extender.clocks import Clocks
    from extender.history import process as history
    from extender.history.process import DrainProcess
    from extender.history.recording.recorder import HistoryRecorder
    from extender.lead.leadership import Leadership
    from extender.lead.scheduler_lease import SchedulerLease
    from extender.protocol import client_names
    from extender.settings import ExtenderSettings
    from extender.shutdown import shut_down
    from extender.state import demand
    from vgpu.adapters import metrics_server, process
    from vgpu.adapters import settings as settings_reader
    from vgpu.adapters.kubernetes.client import KubernetesClient

KEEP_ALIVE_S: Final = 120  # Go's clients keep idle connections for 90 s, and retry no POST on a closed connection
# Without a free descriptor asyncio tries accept as many times a second as the backlog says, and logs each failure.
BACKLOG: Final = 128
GRACE_S: Final = 5  # for calls in flight, and for clients that do not close idle connections

log = logging.getLogger("extender")


def main() -> None:
    """Run the extender; exit with status 2 on wrong settings, 1 on an error."""
    settings = settings_reader.read(ExtenderSettings)
    process.run("extender", settings.log_level, lambda: serve(settings))


async def serve(settings: ExtenderSettings) -> None:
    """Serve until cancelled; then wait for the outcomes of all Bindings and release the Lease."""
    clocks = Clocks(time.monotonic, _now)
    replica = f"{settings.identity or socket.gethostname()}_{uuid.uuid4()}"
    spill_bytes = settings.history_spill_mib << 20
    with history.recorder(settings.history_dir, max_bytes=spill_bytes, replica=replica, clocks=clocks) as recorder:
        await _serve(settings, clocks, recorder, replica)


async def _serve(settings: ExtenderSettings, clocks: Clocks, recorder: HistoryRecorder, replica: str) -> None:
    kubeconfig = str(settings.kubeconfig) if settings.kubeconfig else None
    async with await KubernetesClient.connect(kubeconfig, user_agent=f"vgpu-extender/{vgpu.__version__}") as client:
        seen = assembly.Observers(client, settings, clocks, random.random, recorder, replica)
        log.info("packing: %s", demand.described(settings.defaults, seen.cluster.weights))
        scheduler = SchedulerLease(seen.cluster.leases, settings.scheduler_lease, socket.gethostname())
        leadership = _leadership(seen, scheduler, replica)
        acting = assembly.actors(seen, leadership)
        late = (
            *acting.tasks,
            *_metrics(seen),
            lambda: scheduler.end_when_moved(lambda: not leadership.refusal()),
            leadership.run,
            *([DrainProcess(os.environ | settings.drain_environment, clocks).run] if settings.history_dir else []),
        )
        admin = _admin_process(seen, leadership, recorder)
        administering = asyncio.create_task(admin.run() if admin else _nothing())
        background = asyncio.create_task(seen.run(late))
        server = process.HttpServer(_config(settings, acting.verbs, seen))
        background.add_done_callback(lambda _: setattr(server, "should_exit", True))
        await server.serve_until_cancelled()
        administering.cancel()
        await asyncio.gather(administering, return_exceptions=True)
        await shut_down(acting.verbs.binder, leadership, background)
    if not background.cancelled() and (failure := background.exception()) is not None:
        raise failure


def _metrics(seen: Observers) -> tuple[Run, ...]:
    address = seen.settings.metrics_listen
    return (lambda: metrics_server.serve(seen.registry, address, time.monotonic),) if address else ()


def _leadership(seen: Observers, scheduler: SchedulerLease, identity: str) -> Leadership:
    settings = seen.settings
    return Leadership(
        seen.client,
        seen.cluster.leases,
        seen.watches.pods,
        namespace=settings.namespace,
        identity=identity,
        clock=seen.clocks.monotonic,
        now=seen.clocks.now,
        may_lead=scheduler.is_beside_leader,
    )


def _config(settings: ExtenderSettings, verbs: SchedulerVerbs, seen: Observers) -> uvicorn.Config:
    tls: dict[str, Any] = {}
    if settings.client_ca is not None:
        tls = {
            "ssl_certfile": settings.tls_cert,
            "ssl_keyfile": settings.tls_key,
            "ssl_ca_certs": str(settings.client_ca),
            "ssl_cert_reqs": ssl.CERT_REQUIRED,
            "http": client_names.protocol(settings.allowed_clients),
        }
    return uvicorn.Config(
        app(verbs, seen, time.perf_counter),
        host=settings.host,
        port=settings.port,
        timeout_keep_alive=KEEP_ALIVE_S,
        timeout_graceful_shutdown=GRACE_S,
        backlog=BACKLOG,
        lifespan="off",
        access_log=False,
        log_config=None,
        **tls,
    )


def _admin_process(seen: Observers, leadership: Leadership, recorder: HistoryRecorder) -> AdminProcess | None:
    agent = f"vgpu-admin/{vgpu.__version__}"
    return admin_service.admin_process(seen, leadership, recorder, lambda: str(uuid.uuid4()), agent)


async def _nothing() -> None:
    """Serve no admin REST."""


def _now() -> datetime:
    return datetime.now(UTC)


if __name__ == "__main__":
    main()
