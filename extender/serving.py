"""The extender's service, from its settings until it is cancelled. Most of its start are the imports of this module."""

import asyncio
import logging
import socket
import ssl
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

import uvicorn

import vgpu
from extender import admin_service, assembly
from extender.admin.exchange.child import AdminChild
from extender.admin.exchange.process import AdminProcess
from extender.app import SchedulerVerbs, app
from extender.assembly import Observers, Run
from extender.clocks import Clocks
from extender.history import process as history
from extender.history.process import DrainProcess
from extender.history.recording.recorder import HistoryRecorder
from extender.lead import predecessor
from extender.lead.leadership import Leadership
from extender.lead.scheduler_lease import SchedulerLease
from extender.protocol import client_names
from extender.settings import ExtenderSettings
from extender.shutdown import shut_down
from extender.state import demand
from vgpu.adapters import listening, metrics_server, process
from vgpu.adapters.kubernetes.client import KubernetesClient

KEEP_ALIVE_S: Final = 120  # Go's clients keep idle connections for 90 s, and retry no POST on a closed connection
# Without a free descriptor asyncio tries accept as many times a second as the backlog says, and logs each failure.
BACKLOG: Final = 128
GRACE_S: Final = 5  # for calls in flight, and for clients that do not close idle connections

log = logging.getLogger("extender")


@dataclass(frozen=True, slots=True)
class EntryInputs:
    """What only the entry point reads: clocks, randomness and the environment.

    Attributes:
        clocks: of the service.
        perf_counter: seconds, for the durations of calls.
        random: a number from 0 to 1.
        new_id: a new unique ID.
        environment: of the processes that are started.
    """

    clocks: Clocks
    perf_counter: Callable[[], float]
    random: Callable[[], float]
    new_id: Callable[[], str]
    environment: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Replica:
    """The identity of this process, and that of the process before it in this container; empty where none is known."""

    identity: str
    predecessor: str


async def serve(settings: ExtenderSettings, machine: EntryInputs, admin_child: AdminChild | None) -> None:
    """Serve until cancelled; then wait for the outcomes of all Bindings and release the Lease.

    `admin_child` is the admin's process where it was started already.
    """
    host = settings.identity or socket.gethostname()
    identity = f"{host}_{machine.new_id()}"
    spill_bytes = settings.history_spill_mib << 20
    with (
        history.recorder(
            settings.history_dir, max_bytes=spill_bytes, replica=identity, clocks=machine.clocks
        ) as recorder,
        predecessor.noted(settings.history_dir, host, identity) as before,
    ):
        await _serve(settings, machine, recorder, Replica(identity, before), admin_child)


async def _serve(
    settings: ExtenderSettings,
    machine: EntryInputs,
    recorder: HistoryRecorder,
    replica: Replica,
    admin_child: AdminChild | None,
) -> None:
    clocks = machine.clocks
    kubeconfig = str(settings.kubeconfig) if settings.kubeconfig else None
    async with await KubernetesClient.connect(kubeconfig, user_agent=f"vgpu-extender/{vgpu.__version__}") as client:
        seen = assembly.Observers(client, settings, clocks, machine.random, recorder, replica.identity)
        log.info("packing: %s", demand.described(settings.defaults, seen.cluster.weights))
        scheduler = SchedulerLease(seen.scheduler_leases, *settings.scheduler_lease_at, socket.gethostname())
        leadership = _leadership(seen, scheduler, replica)
        acting = assembly.actors(seen, leadership)
        late = (*acting.tasks, lambda: scheduler.end_when_moved(lambda: not leadership.refusal()), leadership.run)
        listener = listening.listen(settings.host, settings.port)
        admin = _admin_process(seen, leadership, recorder, machine, replica.identity, admin_child)
        if admin:
            seen.is_admin_up = admin.is_running
        administering = asyncio.create_task(admin.run() if admin else _nothing())
        reporting = asyncio.create_task(_when_listed(seen, [*_metrics(seen), *_drain(settings, machine)]))
        background = asyncio.create_task(seen.run(late))
        server = process.HttpServer(_config(settings, acting.verbs, seen, machine.perf_counter))
        for running in (background, reporting):
            running.add_done_callback(lambda _: setattr(server, "should_exit", True))
        end_others = partial(_cancel_once, administering, reporting)
        with listener:
            await server.serve_until_cancelled([listener], end_others)  # all end at the same time
        end_others()
        await shut_down(acting.verbs.binder, leadership, background)
        await asyncio.wait([administering, reporting])
    for ended in (background, reporting):
        if not ended.cancelled() and (failure := ended.exception()) is not None:
            raise failure


async def _when_listed(seen: Observers, runs: Iterable[Run]) -> None:
    """Run these until cancelled, from when the first lists are complete."""
    await seen.watches.wait()
    async with asyncio.TaskGroup() as group:
        for run in runs:
            group.create_task(run())
        await asyncio.Event().wait()


def _cancel_once(*tasks: asyncio.Task[None]) -> None:
    """Cancel tasks; a second cancellation would cut off the end of a process that the first began."""
    for task in tasks:
        if not task.cancelling():
            task.cancel()


def _drain(settings: ExtenderSettings, machine: EntryInputs) -> tuple[Run, ...]:
    if settings.history_dir is None:
        return ()
    return (DrainProcess({**machine.environment, **settings.drain_environment}, machine.clocks).run,)


def _metrics(seen: Observers) -> tuple[Run, ...]:
    address = seen.settings.metrics_listen
    return (lambda: metrics_server.serve(seen.registry, address, seen.clocks.monotonic),) if address else ()


def _leadership(seen: Observers, scheduler: SchedulerLease, replica: Replica) -> Leadership:
    settings = seen.settings
    return Leadership(
        seen.client,
        seen.cluster.leases,
        seen.watches.pods,
        namespace=settings.namespace,
        identity=replica.identity,
        clock=seen.clocks.monotonic,
        now=seen.clocks.now,
        predecessor=replica.predecessor,
        may_lead=scheduler.is_beside_leader,
        annotations=lambda: seen.lease_annotations,
    )


def _config(
    settings: ExtenderSettings, verbs: SchedulerVerbs, seen: Observers, perf_counter: Callable[[], float]
) -> uvicorn.Config:
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
        app(verbs, seen, perf_counter),
        timeout_keep_alive=KEEP_ALIVE_S,
        timeout_graceful_shutdown=GRACE_S,
        backlog=BACKLOG,
        lifespan="off",
        access_log=False,
        log_config=None,
        **tls,
    )


def _admin_process(
    seen: Observers,
    leadership: Leadership,
    recorder: HistoryRecorder,
    machine: EntryInputs,
    identity: str,
    admin_child: AdminChild | None,
) -> AdminProcess | None:
    agent = f"vgpu-admin/{vgpu.__version__}"
    return admin_service.admin_process(seen, leadership, recorder, machine.new_id, agent, identity, admin_child)


async def _nothing() -> None:
    """Serve no admin REST."""
