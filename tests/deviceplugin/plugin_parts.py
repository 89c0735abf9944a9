"""The plugin's parts without its sockets: fakes of the kubelet and of the API server, and a clock that a test sets."""

import asyncio
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from deviceplugin.allocate import AllocationRecorder, Allocator
from deviceplugin.candidate_search import DEADLINE_S
from deviceplugin.holder_lookup import HolderLookup
from deviceplugin.kubelet.messages import Holdings, Listing
from deviceplugin.occupancy import Occupancy
from deviceplugin.pod_resources import PodResources
from deviceplugin.preferred_allocation import PreferredAllocation
from deviceplugin.prestart import Prover
from deviceplugin.responses import Injection
from tests.strategies import container
from tests.vgpu.node.builders import SLICE_MIB, allocation, bound, gpu, slices
from vgpu.domain import names
from vgpu.domain.errors import KubernetesError
from vgpu.domain.formats import limits
from vgpu.domain.identifiers import ContainerName
from vgpu.node.cards.inventory import Inventory
from vgpu.node.containers.allocations import Allocation, Allocations
from vgpu.node.containers.bound_pod import BoundPod, PodKey
from vgpu.node.containers.departed import DepartedHolders
from vgpu.node.containers.limits_writer import LimitsWriter
from vgpu.node.containers.pods import NodePods
from vgpu.node.containers.refusal import ContainerRefusal
from vgpu.node.containers.state_files import StateFiles
from vgpu.node.space.membership import GroupMembership

IDS = slices(0, 0, 1, 2, 3)


def share(name: str, cores: int, **fields: Any) -> BoundPod:
    """A bound pod of 1 GiB: four slices."""
    return bound(name, container(gpu_mem=1024, gpu_cores=cores), **fields)


@dataclass
class FakePodResources:
    """Pod-resources with the holdings that a test sets."""

    held: dict[PodKey, Holdings] = field(default_factory=dict)
    lists: int = 0

    async def list(self) -> Listing:
        self.lists += 1
        return dict(self.held)

    async def get(self, key: PodKey) -> Holdings:
        return self.held.get(key, {})


@dataclass
class FakePodReader:
    """Reads of single pods from the API server, which may fail."""

    pods: dict[PodKey, BoundPod] = field(default_factory=dict)
    fetched: list[PodKey] = field(default_factory=list)
    fails: bool = False

    async def pod(self, key: PodKey) -> BoundPod | None:
        self.fetched.append(key)
        if self.fails:
            raise KubernetesError(0, "Timeout", "")
        return self.pods.get(key)


class PluginParts:
    """The parts, connected as in a running plugin."""

    def __init__(self, state: Path) -> None:
        self.now = 0.0
        self.kubelet, self.server = FakePodResources(), FakePodReader()
        self.pods, self.files = NodePods(), StateFiles(state)
        self.allocations = Allocations(self.files.allocations)
        self.pod_resources = PodResources(self.kubelet, lambda: self.now)
        self.inventory = Inventory(SLICE_MIB)
        self.inventory.set_gpus((gpu(0), gpu(1)), {})
        self.reported: list[tuple[str, str]] = []
        self.mountinfos: dict[int, str] | None = {}
        self.departed = DepartedHolders(self.pods, self.allocations, lambda: self.mountinfos, lambda: self.now)
        self.occupancy = Occupancy(
            self.pods, self.pod_resources, self.allocations, self.departed, self.inventory, lambda: self.now
        )
        numbers = iter(range(1000))
        recorder = AllocationRecorder(self.pods, self.allocations, lambda: f"new{next(numbers)}", lambda: self.now)
        self.preferred = PreferredAllocation(
            self.pods, self.allocations, self.departed, self.server, self.pod_resources, DEADLINE_S
        )
        self.library = self.files.libraries.install(b"library")
        injection = Injection(self.files, self.library)
        self.allocator = Allocator(self.preferred, recorder, self.inventory, injection, self._allocated)
        holders = HolderLookup(self.pods, self.allocations, self.server, self.pod_resources)
        writer = LimitsWriter(self.allocations, self.files)
        self.groups = GroupMembership(self.files, lambda: self.now, self._slept)
        self.prover = Prover(holders, self.inventory, self.occupancy, writer, self.groups, self._report)

    async def _slept(self, seconds: float) -> None:
        self.now += seconds
        await asyncio.sleep(0)

    def _allocated(self, allocated: Allocation) -> None:
        self.pod_resources.allocated(allocated.holder.key if allocated.holder else None, allocated.ids)
        self.occupancy.recount()

    def allocate(self, ids: frozenset[str], pod: BoundPod | None, **more: Any) -> Allocation:
        """Record an allocation and prepare its files, as Allocate does."""
        fields = {"library": self.library, "sequence": self.allocations.next_sequence(), **more}
        new = allocation(ids, pod, **fields)
        self.allocations.add(new)
        self.files.prepare(new.id)
        return new

    def set_holder(self, pod: BoundPod, ids: frozenset[str]) -> None:
        """Let pod-resources list a pod's container as the holder of these IDs."""
        self.kubelet.held[pod.key] = {ContainerName("main"): {names.SLICE: ids}}

    def enforced_limits(self, allocated: Allocation) -> list[tuple[str, int]]:
        """Card and cores of each entry in an allocation's limits file."""
        written = limits.decode(self.files.limits(allocated.id).read_bytes())
        return [(card.gpu, card.cores) for card in written.cards]

    async def prove(self, ids: frozenset[str] = IDS) -> str:
        """The reason for which PreStartContainer refuses these IDs; empty where they are proven."""
        refusal = await self.prover.prove(names.SLICE, ids)
        return refusal.reason if refusal else ""

    def _report(self, pod: BoundPod, refusal: ContainerRefusal) -> None:
        self.reported.append((pod.uid, str(refusal.reason)))

    async def list_once(self) -> None:
        """Let pod-resources be listed once."""
        self.now += 1
        updating = asyncio.create_task(self.pod_resources.run(lambda: None))
        await self.pod_resources.fresh(1)
        updating.cancel()
