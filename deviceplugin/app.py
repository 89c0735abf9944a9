"""The plugin put together: what runs beside what, and in which order it starts and stops.

At the start the watch is given half a second before the kubelet may ask; after a restart of the kubelet nothing comes
before registering.
"""

import asyncio
import logging
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from typing import Any, Final

import vgpu
from deviceplugin.admission import Admission
from deviceplugin.devices import DeviceLists
from deviceplugin.garbage_collection import GarbageCollector
from deviceplugin.kubelet.pod_resources_client import PodResourcesClient
from deviceplugin.kubelet.registration import Registration, Stream
from deviceplugin.kubelet.server import Server, Servicer
from deviceplugin.occupancy import Occupancy
from deviceplugin.pod_resources import PodResources
from deviceplugin.prestart import Prover
from deviceplugin.responses import DeviceList, Injection
from deviceplugin.settings import Settings
from vgpu import names
from vgpu.adapters.kubernetes.client import Client
from vgpu.adapters.kubernetes.reflector import Reflector
from vgpu.node import node_api as clusters
from vgpu.node import pods as bound
from vgpu.node import watermarks
from vgpu.node.allocations import Allocations
from vgpu.node.arbiter import Arbiter
from vgpu.node.gpunode import GpuNodePublisher
from vgpu.node.health import Diagnosis, Driver, Health
from vgpu.node.heartbeat import Heartbeat
from vgpu.node.inventory import Inventory
from vgpu.node.node_api import NodeApi
from vgpu.node.node_lease import NodeLease
from vgpu.node.pods import Pods
from vgpu.node.refusal_reporter import RefusalReporter
from vgpu.node.state_files import StateFiles
from vgpu.node.watermarks import Watermarks

_SYNC_S: Final = 0.5
_SOCKETS: Final = {names.SLICE: "slice.sock", names.CARD: "card.sock"}

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Clocks:
    """Time and chance, as the outside gives them.

    Attributes:
        monotonic: seconds that never go back.
        wall: seconds since 1970.
        now: the time of day, with its zone.
        new_id: names that never come twice.
    """

    monotonic: Callable[[], float]
    wall: Callable[[], float]
    now: Callable[[], datetime]
    new_id: Callable[[], str]


class Plugin:
    """One node's plugin."""

    def __init__(self, settings: Settings, driver: Driver, client: Client, clocks: Clocks) -> None:
        """Build everything; raises OSError where the state directory or the library cannot be used."""
        files = StateFiles(settings.state_dir)
        library = files.install_library(settings.library_path())
        regions = "a tmpfs" if files.mount_regions(settings.regions_mib) else "a directory"
        log.info("library %s, regions in %s", library, regions)
        injection = Injection(files, library, DeviceList(settings.device_list), settings.cdi_kind)
        allocations = Allocations(files.allocations)
        self._source = PodResourcesClient(settings.kubelet_dir / "pod-resources" / "kubelet.sock")
        self._pod_resources = PodResources(self._source, clocks.monotonic)
        self._inventory = Inventory(settings.slice_mib)
        pods = Pods(self._released)
        self._occupancy = Occupancy(pods, self._pod_resources, allocations, self._inventory, clocks.wall)
        cluster = NodeApi(client, settings.node_name, clocks.now)
        self._reports = RefusalReporter(cluster)
        self._watch = Reflector(
            client,
            clusters.pods_path(),
            pods,
            params={"fieldSelector": f"spec.nodeName={settings.node_name}"},
            decode=bound.decode,
        )
        admission = Admission(
            pods,
            self._pod_resources,
            allocations,
            self._inventory,
            self._occupancy,
            cluster,
            injection,
            wall_clock=clocks.wall,
            new_id=clocks.new_id,
        )
        prover = Prover(
            pods,
            self._pod_resources,
            allocations,
            self._inventory,
            self._occupancy,
            cluster,
            files,
            self._reports.refused,
        )
        devices = DeviceLists(self._inventory)
        self._streams = {resource: Stream() for resource in names.KUBELET_RESOURCES}
        directory = settings.kubelet_dir / "device-plugins"
        self._servers = {
            resource: Server(
                directory / "vgpushare" / _SOCKETS[resource],
                Servicer(resource, self._inventory, devices, admission, prover, stream),
            )
            for resource, stream in self._streams.items()
        }
        self._registrations = [
            Registration(directory, resource, f"vgpushare/{_SOCKETS[resource]}", self._streams[resource], server.ensure)
            for resource, server in self._servers.items()
        ]
        self._health = Health(
            driver,
            self._inventory,
            Diagnosis(settings.xid_quarantine),
            poll_s=settings.health_period,
            clock=clocks.monotonic,
        )
        self._status = GpuNodePublisher(cluster, self._inventory, vgpu.__version__, clocks.monotonic)
        lease = NodeLease(client, settings.namespace, settings.node_name, clocks.now)
        self._presence = Heartbeat(lease, self._is_registered, clocks.monotonic)
        self._arbiter = Arbiter(settings.arbiter_path(), files.watermarks, files.allocations, clocks.monotonic)
        self._watermarks = Reflector(
            client,
            names.GPUNODES_PATH,
            Watermarks(files.watermarks, settings.watermark),
            params={"fieldSelector": f"metadata.name={settings.node_name}"},
            decode=watermarks.decode,
        )
        self._has_turns = settings.turns
        self._cleaner = GarbageCollector(
            pods, self._pod_resources, allocations, files, library, synced=self._watch.synced, wall_clock=clocks.wall
        )

    async def run(self) -> None:
        """Serve until cancelled; then give the Lease up first, so that nothing more is bound here."""
        await self._health.check()
        try:
            async with asyncio.TaskGroup() as group:
                start = partial(_start, group)
                if self._has_turns:
                    start(self._watermarks.run())
                    start(self._arbiter.run())
                start(self._watch.run())
                await self._wait_for_watch()
                self._occupancy.recount()
                for registration in self._registrations:
                    start(registration.run())
                start(self._pod_resources.run(lambda _: self._occupancy.recount()))
                start(self._health.poll())
                start(self._health.listen())
                start(self._status.run())
                start(self._presence.run())
                start(self._cleaner.run())
        finally:
            await self._stop()

    async def _stop(self) -> None:
        await self._presence.leave()
        await asyncio.gather(*(server.stop() for server in self._servers.values()))
        await self._reports.drain()
        await self._source.close()

    async def _wait_for_watch(self) -> None:
        try:
            async with asyncio.timeout(_SYNC_S):
                await self._watch.synced.wait()
        except TimeoutError:
            log.warning("the pods of this node are not known yet; registering all the same")

    def _released(self) -> None:
        """Give free what a pod had at once: another may be bound to its card within milliseconds."""
        self._occupancy.recount()
        self._pod_resources.refresh_soon()

    def _is_registered(self) -> bool:
        return all(stream.is_live for stream in self._streams.values())


def _start(group: asyncio.TaskGroup, work: Coroutine[Any, Any, None]) -> None:
    group.create_task(work)
