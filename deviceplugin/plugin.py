"""The running plugin: what runs beside what, and in which order it starts and stops.

At the start the watch of the pods gets half a second before the kubelet may ask; after a restart of the kubelet,
registering comes first.
"""

import asyncio
import logging
from collections.abc import Callable, Collection, Coroutine
from dataclasses import dataclass
from typing import Any, Final

from deviceplugin.allocate import Allocator
from deviceplugin.devices import refuse_long_list
from deviceplugin.kubelet.messages import ContainerResponse
from deviceplugin.kubelet.pod_resources_client import PodResourcesClient
from deviceplugin.kubelet.registration import ListAndWatchStreams, Registration
from deviceplugin.kubelet.server import ResourceServer
from deviceplugin.occupancy import Occupancy
from deviceplugin.pod_resources import PodResources
from deviceplugin.preferred_allocation import PreferredAllocation
from deviceplugin.prestart import Prover
from vgpu.adapters.kubernetes.reflector import Reflector
from vgpu.domain.errors import NvmlError
from vgpu.node.cards.health import Health
from vgpu.node.cards.inventory import Inventory
from vgpu.node.containers import allocations as records
from vgpu.node.containers.allocations import Allocation, Allocations
from vgpu.node.containers.departed import DepartedHolders
from vgpu.node.containers.node_api import NodeApi
from vgpu.node.containers.pods import NodePods
from vgpu.node.containers.state_files import StateFiles
from vgpu.node.presence.heartbeat import Heartbeat

_SYNC_S: Final = 0.5

log = logging.getLogger(__name__)

Run = Callable[[], Coroutine[Any, Any, None]]


@dataclass(frozen=True, slots=True)
class PluginNode:
    """What the plugin knows about its node, shared by all of its parts."""

    files: StateFiles
    allocations: Allocations
    departed: DepartedHolders
    inventory: Inventory
    pods: NodePods
    client: PodResourcesClient
    pod_resources: PodResources
    occupancy: Occupancy
    api: NodeApi

    def proven(self) -> tuple[Allocation, ...]:
        """Return the proven allocations whose pods run."""
        return tuple(
            allocation for allocation in records.live(self.allocations.all(), self.pods.all()) if allocation.is_proven
        )

    def released(self) -> None:
        """Free at once what an ended pod held: the next pod may be bound to its card within milliseconds."""
        self.occupancy.recount()
        self.pod_resources.refresh_soon()

    def allocated(self, allocation: Allocation) -> None:
        """Count what Allocate has just given."""
        self.pod_resources.allocated(allocation.holder.key if allocation.holder else None, allocation.ids)
        self.occupancy.recount()


@dataclass(frozen=True, slots=True)
class PluginVerbs:
    """The kubelet's three questions."""

    preferred: PreferredAllocation
    allocator: Allocator
    prover: Prover

    async def prefer(self, resource: str, available: Collection[str], must: Collection[str], size: int) -> list[str]:
        """Answer GetPreferredAllocation."""
        return await self.preferred.prefer(resource, available, must, size)

    def allocate(self, resource: str, ids: frozenset[str], first_sent: float | None) -> ContainerResponse:
        """Answer Allocate."""
        return self.allocator.allocate(resource, ids, first_sent)

    async def prove(self, resource: str, ids: frozenset[str]) -> object | None:
        """Answer PreStartContainer."""
        return await self.prover.prove(resource, ids)


@dataclass(frozen=True, slots=True)
class ResourceEndpoint:
    """One resource's socket, and its registration with the kubelet."""

    stream: ListAndWatchStreams
    server: ResourceServer
    registration: Registration


@dataclass(frozen=True, slots=True)
class Plugin:
    """One node's plugin.

    Attributes:
        node: what it knows.
        health: of the cards; checked once before anything else.
        watch: of the pods that are bound to the node.
        endpoints: one for each resource.
        heartbeat: the node's Lease.
        early: what runs from the start on.
        late: what runs once the watch has had its time.
    """

    node: PluginNode
    health: Health
    watch: Reflector
    endpoints: tuple[ResourceEndpoint, ...]
    heartbeat: Heartbeat
    early: tuple[Run, ...]
    late: tuple[Run, ...]

    async def run(self) -> None:
        """Serve until cancelled; then release the Lease first, so that nothing more is bound here.

        Raises UnusableSetting, and NvmlError where the driver was replaced, so that only a restart helps.
        """
        await self.health.start()
        refuse_long_list(self.node.inventory)
        try:
            async with asyncio.TaskGroup() as group:
                for run in self.early:
                    group.create_task(run())
                await self._wait_for_watch()
                self.node.occupancy.recount()
                for run in (*(endpoint.registration.run for endpoint in self.endpoints), *self.late):
                    group.create_task(run())
        except* NvmlError as failed:
            raise failed.exceptions[0] from None
        finally:
            await self._stop()

    async def _stop(self) -> None:
        await self.heartbeat.stop()
        await asyncio.gather(*(endpoint.server.stop() for endpoint in self.endpoints))
        await self.node.client.close()

    async def _wait_for_watch(self) -> None:
        try:
            async with asyncio.timeout(_SYNC_S):
                await self.watch.synced.wait()
        except TimeoutError:
            log.warning("the pods of this node are not known yet; registering all the same")
