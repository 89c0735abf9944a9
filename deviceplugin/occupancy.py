"""Who is on this node's cards, from three witnesses: the kubelet's listing, our own records, the watch."""

from collections.abc import Callable, Iterable, Mapping

from deviceplugin.candidates import Listing
from deviceplugin.pod_resources import PodResources
from vgpu import names, usage
from vgpu.node import allocations as records
from vgpu.node import device_ids, proof
from vgpu.node.allocations import Allocation, Allocations
from vgpu.node.inventory import HeldDevices, Inventory
from vgpu.node.pods import BoundPod, Pods
from vgpu.node.refusal import Refusal
from vgpu.share import Usage
from vgpu.usage import Usages

_IN_FLIGHT_S = 5.0  # an allocation this young may not be listed yet; where its holder is known, the pod tells


class Occupancy:
    """Keeps the inventory's held IDs true, and names the tenants that count at the guard."""

    def __init__(
        self,
        pods: Pods,
        holders: PodResources,
        allocations: Allocations,
        inventory: Inventory,
        wall_clock: Callable[[], float],
    ) -> None:
        """`wall_clock` gives seconds since 1970, as records carry them."""
        self._pods = pods
        self._pod_resources = holders
        self._allocations = allocations
        self._inventory = inventory
        self._wall_clock = wall_clock

    def recount(self) -> None:
        """Tell the inventory what is held now."""
        allocations, pods, now = self._allocations.all(), self._pods.all(), self._wall_clock()
        self._inventory.set_held(held(self._listing(), allocations, pods, now))

    def tenants(self, *, but: str) -> list[Usages]:
        """What each proven pod takes, `but` the one with that UID; and who is listed and not in the API any more."""
        proven = {each.holder.uid for each in self._allocations.all() if each.is_proven and each.holder}
        pods = (self._pods.get(uid) for uid in sorted(proven - {but}))
        proven_usages = [self.usage(pod) for pod in pods if pod is not None and not pod.is_over]
        return proven_usages + [self._stray(held) for key, held in self._listing().items() if not self._pods.named(key)]

    def usage(self, pod: BoundPod) -> Usages:
        """What a pod takes of each card by its assignment; nothing where it has none to trust."""
        assignment = proof.assignment_of(pod)
        request = pod.parsed.request
        if isinstance(assignment, Refusal) or request is None:
            return {}
        return usage.on_node(self._inventory.node(), [(request, assignment)])

    def _listing(self) -> Listing:
        """What was listed last, less those who have ended since: the next listing may be a second away."""
        listing = self._pod_resources.snapshot.listing
        return {key: held for key, held in listing.items() if not self._pods.has_ended(key)}

    def _stray(self, held: Mapping[str, Mapping[str, frozenset[str]]]) -> Usages:
        """What a pod takes that was deleted by force and still runs: its slices, and at least the card's idleness."""
        mib = self._inventory.slice_mib
        slices = device_ids.by_gpu(each for one in held.values() for each in one.get(names.SLICE, ()))
        cards = device_ids.by_gpu(each for one in held.values() for each in one.get(names.CARD, ()))
        shared = {gpu: Usage(slices=count, memory_mib=count * mib, shares=1) for gpu, count in slices.items()}
        return shared | {gpu: Usage(wholes=1) for gpu in cards}


def held(listing: Listing, allocations: Iterable[Allocation], pods: Iterable[BoundPod], now: float) -> HeldDevices:
    """IDs that the kubelet lists as held, and those given to pods that it does not list: init containers never are."""
    every = list(allocations)
    ours = {each.id: each for each in records.live(every, pods)}
    ours |= {each.id: each for each in every if each.holder is None and now - each.created < _IN_FLIGHT_S}
    ids = {resource: _listed(listing, resource) for resource in names.KUBELET_RESOURCES}
    for each in ours.values():
        ids[each.resource] = ids[each.resource] | each.ids
    return HeldDevices(ids[names.SLICE], ids[names.CARD])


def _listed(listing: Listing, resource: str) -> frozenset[str]:
    containers = (holdings for pod in listing.values() for holdings in pod.values())
    return frozenset(each for holdings in containers for each in holdings.get(resource, ()))
