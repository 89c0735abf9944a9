"""One run of the simulator: the API server, the nodes, the real extender and webhook, and the workload.

The run ends when the first of its tasks ends: the stop event is set, a part exits, or a task fails. Then the parts are
stopped first and the API server last, so that the parts can release their Leases.
"""

import asyncio
from collections.abc import Callable, Coroutine, Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Any, Final

import aiohttp

from vgpu.adapters import listening
from vgpu.adapters.listening import ListenAddress
from vgpu.domain import names
from vgpu.domain.cards.device import Node
from vgpu.simulator import installation, nodes, ports, readiness, view
from vgpu.simulator.api import server
from vgpu.simulator.api.cluster import InMemoryCluster
from vgpu.simulator.display import Display
from vgpu.simulator.extender_client import ExtenderClient
from vgpu.simulator.kubelet import Kubelet
from vgpu.simulator.processes import PartProcess
from vgpu.simulator.scheduler import Profile, Scheduler, vgpu_profile
from vgpu.simulator.settings import DEFAULT_PORT, SimulatorSettings
from vgpu.simulator.workload import SimulatedWorkload

READY_S: Final = 60.0
FRAME_S: Final = 0.25
HISTORY: Final = 1_000  # changes of each resource: with 10,000 versions of GPUNodes it would grow by 400 MB for an hour
DEFAULT_SCHEDULER: Final = "default-scheduler"


class PartsNotReady(Exception):
    """The parts were not ready in time."""


@dataclass(frozen=True, slots=True)
class Addresses:
    """The URLs of the parts and the API server."""

    extender: str
    admin: str
    webhook: str
    kubernetes: str


@dataclass(frozen=True, slots=True)
class RunContext:
    """What a run gets from its caller.

    Attributes:
        settings: the user's settings.
        environment: of the parts' processes.
        folder: for kubeconfig and logs; the caller removes it.
        display: shows views of the cluster.
        say: is called with what the run waits for.
        announce: is called with the addresses when all of them answer.
        stop: ends the run when set.
    """

    settings: SimulatorSettings
    environment: Mapping[str, str]
    folder: Path
    display: Display
    say: Callable[[str], None]
    announce: Callable[[Addresses], None]
    stop: asyncio.Event


async def run(context: RunContext, now: Callable[[], datetime], uid: Callable[[], str]) -> None:
    """Run until `context.stop` is set.

    Raises:
        PartExited: a part exited.
        NotReady: the parts were not ready in time.
        PortTaken: the port asked for is in use.
    """
    settings = context.settings
    extender_port = ports.choose(settings.asked_port, DEFAULT_PORT)
    admin_port = ports.choose(settings.asked_admin_port, names.ADMIN_PORT)
    webhook_port, host = ports.free(), listening.loopback()
    async with AsyncExitStack() as stack:
        cluster = server.make_cluster(now, uid, HISTORY)
        kubernetes = await stack.enter_async_context(server.serving(cluster))
        at = Addresses(
            extender=f"http://{ListenAddress(host, extender_port)}",
            admin=f"http://{ListenAddress(host, admin_port)}",
            webhook=f"https://{ListenAddress(host, webhook_port)}",
            kubernetes=kubernetes,
        )
        await installation.install(cluster, at.webhook)
        fleet = nodes.fleet(settings.nodes, settings.cards, settings.card_sizes, settings.slice_mib)
        kubelets = [Kubelet(cluster, node) for node in fleet]
        for kubelet in kubelets:
            await kubelet.register()
        parts = await _start(context, at, stack)
        session = await stack.enter_async_context(aiohttp.ClientSession())
        await _race(
            context.stop.wait(),
            *(part.watch() for part in parts),
            *(kubelet.run() for kubelet in kubelets),
            _simulate(context, at, cluster, fleet, session),
        )


async def _start(context: RunContext, at: Addresses, stack: AsyncExitStack) -> list[PartProcess]:
    """Start the real parts, which the stack stops."""
    kubeconfig = context.folder / "kubeconfig"
    installation.write_kubeconfig(kubeconfig, at.kubernetes)
    parts = []
    history = ["--history-dir", str(context.folder / "history")]
    own = {
        "extender": (at.extender, ["--admin-listen", _address(at.admin), *history]),
        "webhook": (at.webhook, []),
    }
    for name, (url, more) in own.items():
        flags = ["--kubeconfig", str(kubeconfig), "--slice-mib", str(context.settings.slice_mib)]
        flags += ["--listen", _address(url), *more]
        part = await PartProcess.start(name, flags, context.environment, context.folder / f"{name}.log")
        stack.push_async_callback(part.stop)
        parts.append(part)
    return parts


def _address(url: str) -> str:
    return url.partition("//")[2]


async def _simulate(
    context: RunContext, at: Addresses, cluster: InMemoryCluster, fleet: Sequence[Node], session: aiohttp.ClientSession
) -> None:
    """Wait for the parts, then create pods, schedule them and show them, until cancelled."""
    await _ready(at, cluster, session, context.say)
    context.announce(at)
    workload = SimulatedWorkload(cluster)
    await asyncio.gather(
        Scheduler(cluster, vgpu_profile(ExtenderClient(session, at.extender))).run(),
        Scheduler(cluster, Profile(DEFAULT_SCHEDULER)).run(),
        workload.run(context.settings.pods, goes_on=context.settings.goes_on),
        _draw(context.display, lambda: view.view_of(cluster.store, fleet, workload.refused)),
    )


async def _ready(
    at: Addresses, cluster: InMemoryCluster, session: aiohttp.ClientSession, say: Callable[[str], None]
) -> None:
    waits = {
        "the extender": partial(readiness.extender, session, at.extender),
        "the admin REST": partial(readiness.admin, session, at.admin),
        "the webhook": partial(readiness.webhook, session, at.webhook, cluster),
    }
    name = ""
    try:
        async with asyncio.timeout(READY_S):
            for number, (name, until_ready) in enumerate(waits.items(), 1):
                say(f"{number} of {len(waits)}: waiting for {name}")
                await until_ready()
    except TimeoutError:
        raise PartsNotReady(f"{name} is not ready after {READY_S:.0f} s") from None


async def _draw(display: Display, look: Callable[[], view.View]) -> None:
    try:
        while True:
            display.show(look())
            await asyncio.sleep(FRAME_S)
    finally:
        display.show(look())  # the final state


async def _race(*runners: Coroutine[Any, Any, Any]) -> None:
    """Run all until the first ends, then cancel the others; raise what the first one raised."""
    tasks = [asyncio.create_task(runner) for runner in runners]
    try:
        done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
    for task in done:
        task.result()
