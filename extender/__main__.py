"""`python -m extender`: read the settings, build the objects, serve until SIGTERM."""

import asyncio
import gc
import logging
import random
import socket
import ssl
import time
import uuid
from collections.abc import Callable, Coroutine, Iterable
from datetime import UTC, datetime
from typing import Any, Final

from vgpu.adapters import extras

with extras.needed("cluster", by="extender"):
    import uvicorn

    import vgpu
    from extender import client_names
    from extender import watches as watching
    from extender.app import Verbs, app
    from extender.bind import Binder
    from extender.budgets import Budgets
    from extender.cluster import Cluster
    from extender.event_recorder import EventRecorder
    from extender.evictor import Evictor
    from extender.filter import Filter
    from extender.leadership import Leadership
    from extender.node_refusals import NodeRefusals
    from extender.preempt import Preemption
    from extender.room import Room
    from extender.scheduler_lease import SchedulerLease
    from extender.settings import Settings
    from extender.shutdown import shut_down
    from extender.unschedulable import UnschedulablePods
    from extender.waker import Waker
    from vgpu.adapters import process
    from vgpu.adapters import settings as settings_reader
    from vgpu.adapters.kubernetes.client import Client

KEEP_ALIVE_S: Final = 120  # Go's clients keep idle connections for 90 s, and retry no POST on a closed connection
GRACE_S: Final = 5  # for calls in flight, and for clients that do not close idle connections

Run = Callable[[], Coroutine[Any, Any, None]]

log = logging.getLogger("extender")


def main() -> None:
    """Run the extender; exit with status 2 on wrong settings, 1 on an error."""
    settings = settings_reader.read(Settings)
    process.run("extender", settings.log_level, lambda: serve(settings))


async def serve(settings: Settings) -> None:
    """Serve until cancelled; then wait for the outcomes of all Bindings and release the Lease."""
    kubeconfig = str(settings.kubeconfig) if settings.kubeconfig else None
    async with await Client.connect(kubeconfig, user_agent=f"vgpu-extender/{vgpu.__version__}") as client:
        cluster = Cluster(settings.slice_mib, time.monotonic)
        node_filter = Filter(cluster, settings.defaults)
        recorder = EventRecorder(client, time.monotonic, _now)
        explaining_filter = Filter(cluster, settings.defaults, cached_requests=1)
        unschedulable = UnschedulablePods(cluster, explaining_filter, recorder, time.monotonic)
        budgets = Budgets()
        refusals = NodeRefusals(
            client,
            cluster,
            recorder,
            evicts_uninvited=settings.uninvited == "evict",
            spared=("kube-system", settings.namespace),
        )
        waker = Waker(client, cluster, settings.defaults, time.monotonic, _now)
        watches = watching.watches(
            client,
            cluster,
            unschedulable,
            recorder,
            budgets,
            refusals,
            waker,
            namespace=settings.namespace,
            jitter=random.random,
        )
        scheduler = SchedulerLease(cluster.leases, settings.scheduler_lease, socket.gethostname())
        leadership = _leadership(settings, client, cluster, watches, scheduler)
        binder = Binder(client, cluster, node_filter, leadership)
        evictor = Evictor(client, recorder, _now)
        room = Room(cluster, settings.defaults)
        preemption = Preemption(cluster, room, budgets, leadership, evictor, time.monotonic)
        verbs = Verbs(cluster, node_filter, settings.defaults, binder, recorder, preemption)
        late = (
            unschedulable.run,
            preemption.run,
            lambda: refusals.run(leadership),
            lambda: waker.run(leadership),
            lambda: scheduler.end_when_moved(lambda: not leadership.refusal()),
            leadership.run,
        )
        background = asyncio.create_task(_background(watches, recorder, late))
        server = process.Server(_config(settings, verbs, watches))
        background.add_done_callback(lambda _: setattr(server, "should_exit", True))
        await server.serve_until_cancelled()
        await shut_down(binder, leadership, background)
    if not background.cancelled() and (failure := background.exception()) is not None:
        raise failure


def _leadership(
    settings: Settings, client: Client, cluster: Cluster, watches: watching.Watches, scheduler: SchedulerLease
) -> Leadership:
    return Leadership(
        client,
        cluster.leases,
        watches.pods,
        namespace=settings.namespace,
        identity=f"{settings.identity or socket.gethostname()}_{uuid.uuid4()}",
        clock=time.monotonic,
        now=_now,
        may_lead=scheduler.is_beside_leader,
    )


async def _background(watches: watching.Watches, recorder: EventRecorder, late: Iterable[Run]) -> None:
    """Run everything until cancelled; `late` begins when the first lists are complete."""
    async with asyncio.TaskGroup() as group:
        group.create_task(watches.run())
        group.create_task(recorder.run())
        await watches.wait()
        gc.freeze()  # the objects of the first lists stay: a full collection of 5,000 nodes' took 80 ms
        log.info("the first lists are complete")
        for run in late:
            group.create_task(run())


def _config(settings: Settings, verbs: Verbs, watches: watching.Watches) -> uvicorn.Config:
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
        app(verbs, watches, time.perf_counter),
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
