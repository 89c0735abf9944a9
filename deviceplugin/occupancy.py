"""What containers hold of this node's cards: from the kubelet's listing, the records of allocations, and the watch."""

from collections.abc import Callable, Iterable
from typing import Final

from deviceplugin.kubelet.messages import Listing
from deviceplugin.pod_resources import PodResources
from vgpu.domain import names
from vgpu.domain.cards.share import Usage
from vgpu.domain.grants import usage
from vgpu.domain.grants.usage import Usages
from vgpu.domain.identifiers import NO_POD, PodUid
from vgpu.node.cards import device_ids
from vgpu.node.cards.inventory import HeldDevices, Inventory
from vgpu.node.containers import allocations as records
from vgpu.node.containers import proof
from vgpu.node.containers.allocations import Allocation, Allocations
from vgpu.node.containers.bound_pod import BoundPod
from vgpu.node.containers.card_holders import CardHolder
from vgpu.node.containers.departed import DepartedHolders
from vgpu.node.containers.pods import NodePods
from vgpu.node.containers.refusal import ContainerRefusal

_IN_FLIGHT_S: Final = 5.0  # a younger allocation without a known holder counts as held: it may not be listed yet


class Occupancy:
    """Keeps the inventory's held devices up to date, and gives the guard what each tenant takes."""

    def __init__(
        self,
        pods: NodePods,
        pod_resources: PodResources,
        allocations: Allocations,
        departed: DepartedHolders,
        inventory: Inventory,
        wall_clock: Callable[[], float],
    ) -> None:
        """`wall_clock` gives seconds since 1970, as in the records of allocations."""
        self._pods = pods
        self._pod_resources = pod_resources
        self._allocations = allocations
        self._departed = departed
        self._inventory = inventory
        self._wall_clock = wall_clock

    def recount(self) -> None:
        """Update the inventory's held devices."""
        allocations, pods, now = self._allocations.all(), self._pods.all(), self._wall_clock()
        self._inventory.set_held(held(self._listing(), allocations, pods, now, self._departed.held()))

    def refresh(self) -> None:
        """Recount, and update the compute that is guaranteed: not in Allocate, as it reads every pod's assignment."""
        self.recount()
        guaranteed = usage.total(self.tenants(but=NO_POD))
        self._inventory.set_cores({gpu: taken.cores for gpu, taken in guaranteed.items() if taken.cores})

    def tenants(self, *, but: PodUid) -> list[Usages]:
        """Return what each proven pod takes, except the pod with UID `but`, and what pods hold that the API lacks."""
        proven = {
            allocation.holder.uid
            for allocation in self._allocations.all()
            if allocation.is_proven and allocation.holder
        }
        pods = (self._pods.get(uid) for uid in sorted(proven - {but}))
        usages = [self.usage(pod) for pod in pods if pod is not None and not pod.is_terminal]
        return [*usages, self._of_departed()]

    def held(self) -> frozenset[CardHolder]:
        """Return which container holds devices of which card: those that were proven, and those that are listed."""
        proven = (
            (allocation.holder.uid, allocation.holder.container, allocation.ids)
            for allocation in self._allocations.all()
            if allocation.is_proven and allocation.holder
        )
        listed = (
            (pod.uid, container, ids)
            for key, holdings in self._pod_resources.snapshot.listing.items()
            for pod in self._pods.named(key)
            for container, by_resource in holdings.items()
            for ids in by_resource.values()
        )
        every = (*proven, *listed)
        return frozenset(
            CardHolder(uid, container, gpu) for uid, container, ids in every for gpu in device_ids.by_gpu(ids)
        )

    def usage(self, pod: BoundPod) -> Usages:
        """Return what a pod takes of each card by its assignment; nothing where that is not trusted."""
        assignment = proof.assignment_of(pod)
        request = pod.parsed.request
        if isinstance(assignment, ContainerRefusal) or request is None:
            return {}
        return usage.on_node(self._inventory.node(), [(request, assignment)])

    def _listing(self) -> Listing:
        """Return the last listing without the pods that have ended since: the next listing may be a second away."""
        listing = self._pod_resources.snapshot.listing
        return {key: held for key, held in listing.items() if not self._pods.has_ended(key)}

    def _of_departed(self) -> Usages:
        """Return what pods take that were deleted by force and may still run: their slices, or whole cards."""
        listed = {key: held for key, held in self._listing().items() if not self._pods.named(key)}
        ids = _of_both(listed, self._departed.held())
        mib = self._inventory.slice_mib
        slices = device_ids.by_gpu(ids.slices)
        shared = {gpu: Usage(slices=count, memory_mib=count * mib, shares=1) for gpu, count in slices.items()}
        return shared | {gpu: Usage(wholes=1) for gpu in device_ids.by_gpu(ids.cards)}


def held(
    listing: Listing,
    allocations: Iterable[Allocation],
    pods: Iterable[BoundPod],
    now: float,
    departed: Iterable[Allocation] = (),
) -> HeldDevices:
    """Return the IDs that the kubelet lists, and those of records that it does not list, such as init containers'.

    `departed` are allocations of pods that are gone, which may be in use.
    """
    every = list(allocations)
    ours = {allocation.id: allocation for allocation in records.live(every, pods)}
    ours |= {
        allocation.id: allocation
        for allocation in every
        if allocation.holder is None and abs(now - allocation.created) < _IN_FLIGHT_S
    }
    return _of_both(listing, [*ours.values(), *departed])


def _of_both(listing: Listing, allocations: Iterable[Allocation]) -> HeldDevices:
    """Return the IDs that are listed or recorded."""
    ids = {resource: _listed(listing, resource) for resource in names.KUBELET_RESOURCES}
    for allocation in allocations:
        ids[allocation.resource] = ids[allocation.resource] | allocation.ids
    return HeldDevices(ids[names.SLICE], ids[names.CARD])


def _listed(listing: Listing, resource: str) -> frozenset[str]:
    containers = (holdings for pod in listing.values() for holdings in pod.values())
    return frozenset(holding for holdings in containers for holding in holdings.get(resource, ()))
