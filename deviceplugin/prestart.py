"""PreStartContainer: the proof. Before each start of a container the kubelet names its IDs, and now nothing is guessed.

Pod-resources tells who holds the IDs, the watch or a quorum read tells the pod's UID and assignment. What is proven
gets a fresh region and its limits; what is not is refused, and the kubelet shows the reason and tries again.
"""

from collections.abc import Callable, Sequence

from deviceplugin import holder_lookup, init_chains
from deviceplugin.holder_lookup import HolderLookup
from deviceplugin.init_chains import Chain
from deviceplugin.occupancy import Occupancy
from deviceplugin.pod_resources import PodResources
from vgpu.assignment import Assignment
from vgpu.errors import KubernetesError
from vgpu.node import guard, proof
from vgpu.node.allocations import Allocation, Allocations, Holder
from vgpu.node.inventory import Inventory
from vgpu.node.node_api import PodReader
from vgpu.node.pods import BoundPod, PodKey, Pods
from vgpu.node.refusal import NodeReason, Refusal
from vgpu.node.state_files import StateFiles

Report = Callable[[BoundPod, Refusal], None]


class Prover:
    """Proves containers of this node, one call each."""

    def __init__(
        self,
        pods: Pods,
        holders: PodResources,
        allocations: Allocations,
        inventory: Inventory,
        occupancy: Occupancy,
        reader: PodReader,
        files: StateFiles,
        report: Report,
    ) -> None:
        """`report` is told of every refusal whose pod is known; it must not block."""
        self._pods = pods
        self._holders = HolderLookup(pods, holders)
        self._allocations = allocations
        self._inventory = inventory
        self._occupancy = occupancy
        self._reader = reader
        self._files = files
        self._report = report

    async def prove(self, resource: str, ids: frozenset[str]) -> Refusal | None:
        """Make everything ready for the container that holds these IDs; or say why it may not start."""
        chains = self._allocations.chains(resource, ids)
        if not chains:
            return Refusal(NodeReason.ALLOCATION_LOST, "this node has no record of these devices; delete the pod")
        found = await self._holders.find(resource, ids, chains)
        if isinstance(found, Refusal):
            return found
        pod = await self._pod(found.key, chains)
        if isinstance(pod, Refusal):
            return pod
        chain = init_chains.chain_of(pod, chains)
        refusal = await self._first_holder(resource, ids, pod, chain) or self._admit(pod, chain, found.listed)
        if refusal is not None:
            self._report(pod, refusal)
        return refusal

    async def _pod(self, key: PodKey, chains: Sequence[Chain]) -> BoundPod | Refusal:
        """The pod of a name. Where the name has stood for another, or our watch may lag, a quorum read settles it."""
        named = self._pods.named(key)
        uids = {each.holder.uid for chain in chains for each in chain if each.holder and each.holder.key == key}
        if len(named) == 1 and uids == {named[0].uid}:
            return named[0]
        try:
            pod = await self._reader.pod(key)
        except KubernetesError as error:
            return Refusal(NodeReason.HOLDER_UNKNOWN, f"pod {key[1]} cannot be read: {error}")
        if pod is None:
            return Refusal(NodeReason.HOLDER_UNKNOWN, f"pod {key[1]} is not bound to this node")
        self._pods.upsert(pod)
        return pod

    async def _first_holder(self, resource: str, ids: frozenset[str], pod: BoundPod, chain: Chain) -> Refusal | None:
        """Of two holders of an ID the first recorded wins: refuse where another pod had it before and still has."""
        for each in self._allocations.overlapping(resource, ids):
            if each.holder is None or each.holder.uid == pod.uid or each.sequence > chain[0].sequence:
                continue
            other = self._pods.get(each.holder.uid)
            if other is None or other.is_over:
                continue
            if holder_lookup.find_in(other.key, await self._holders.holdings(other.key), resource, ids):
                return Refusal(NodeReason.HELD_TWICE, f"pod {other.namespace}/{other.name} holds the same devices")
        return None

    def _admit(self, pod: BoundPod, chain: Chain, listed: str | None) -> Refusal | None:
        """Check, settle and write, in one step without awaiting: two starts at once see each other."""
        assignment = proof.assignment_of(pod)
        if isinstance(assignment, Refusal):
            return assignment
        pairs = list(zip(chain, init_chains.members(pod, chain, listed), strict=True))
        refusal = self._mismatch(pod, assignment, pairs) or guard.check(
            self._inventory.gpus(),
            self._inventory.slice_mib,
            self._occupancy.tenants(but=pod.uid),
            self._occupancy.usage(pod),
        )
        if refusal is not None:
            return refusal
        try:
            for allocation, container in pairs:
                self._allocations.set_holder(allocation, Holder.of(pod, container), proven=True)
                self._write(pod, assignment, allocation, container)
        except OSError as error:
            return Refusal(NodeReason.FILES_FAILED, str(error))
        return None

    def _mismatch(
        self, pod: BoundPod, assignment: Assignment, pairs: Sequence[tuple[Allocation, str]]
    ) -> Refusal | None:
        request = pod.parsed.request
        if request is None:
            return None
        slice_mib = self._inventory.slice_mib
        checks = (proof.card_mismatch(request, assignment, name, each.ids, slice_mib) for each, name in pairs)
        return next((refusal for refusal in checks if refusal is not None), None)

    def _write(self, pod: BoundPod, assignment: Assignment, allocation: Allocation, container: str) -> None:
        request = pod.parsed.request
        asked = proof.request_of(request, container) if request else None
        if request is not None and asked is not None:
            self._files.prepare(allocation.id)
            limits = proof.limits_for(request, asked, assignment.containers[container])
            self._files.write_limits(allocation.id, limits)
