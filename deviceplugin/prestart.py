"""PreStartContainer: the kubelet calls it with device IDs before each start of a container. Proves whose IDs they are.

Pod-resources names the holder of the IDs; the watch or a quorum read gives the pod's UID and assignment. A container
that is proven gets a fresh region and its limits. Any other is refused; the kubelet shows the reason and tries again.
"""

from collections.abc import Callable, Sequence

from deviceplugin import init_chains
from deviceplugin.holder_lookup import HolderLookup, PodHolding
from deviceplugin.occupancy import Occupancy
from vgpu.domain.errors import StateUnusable
from vgpu.domain.grants.assignment import Assignment
from vgpu.domain.identifiers import ContainerName
from vgpu.node.cards import device_ids
from vgpu.node.cards.inventory import Inventory
from vgpu.node.containers import guard, proof
from vgpu.node.containers.allocations import Allocation
from vgpu.node.containers.bound_pod import BoundPod
from vgpu.node.containers.limits_writer import LimitsWriter
from vgpu.node.containers.refusal import ContainerRefusal, NodeReason
from vgpu.node.space.membership import GroupMembership

Report = Callable[[BoundPod, ContainerRefusal], None]


class Prover:
    """Proves containers of this node. `report` is called with each refusal whose pod is known; it must not block."""

    def __init__(
        self,
        holders: HolderLookup,
        inventory: Inventory,
        occupancy: Occupancy,
        writer: LimitsWriter,
        groups: GroupMembership,
        report: Report,
    ) -> None:
        self._holders = holders
        self._inventory = inventory
        self._occupancy = occupancy
        self._writer = writer
        self._groups = groups
        self._report = report

    async def prove(self, resource: str, ids: frozenset[str]) -> ContainerRefusal | None:
        """Make everything ready for the container that holds these IDs; or return why it may not start."""
        holding = await self._holders.find(resource, ids)
        if isinstance(holding, ContainerRefusal):
            return holding
        refusal = await self._earlier_holder(resource, ids, holding)
        refusal = refusal or self._admit(holding) or await self._join(holding)
        if refusal is not None:
            self._report(holding.pod, refusal)
        return refusal

    async def _earlier_holder(self, resource: str, ids: frozenset[str], holding: PodHolding) -> ContainerRefusal | None:
        other = await self._holders.earlier_holder(resource, ids, holding)
        if other is None:
            return None
        return ContainerRefusal(NodeReason.HELD_TWICE, f"pod {other.namespace}/{other.name} holds the same devices")

    def _admit(self, holding: PodHolding) -> ContainerRefusal | None:
        """Check and write in one step without awaiting, so that two starts at once see each other's usage."""
        pod = holding.pod
        assignment = proof.assignment_of(pod)
        if isinstance(assignment, ContainerRefusal):
            return assignment
        containers = init_chains.members(pod, holding.chain, holding.listed)
        allocations = list(zip(holding.chain, containers, strict=True))
        refusal = (
            self._mismatch(pod, assignment, allocations) or proof.covered_files(pod, containers) or self._no_room(pod)
        )
        if refusal is not None:
            return refusal
        try:
            self._writer.write(pod, assignment, allocations)
        except (OSError, StateUnusable) as error:
            return ContainerRefusal(NodeReason.FILES_FAILED, str(error))
        return None

    async def _join(self, holding: PodHolding) -> ContainerRefusal | None:
        """Make the container, which has its limits, a member of its pod's group in space. It is created after this."""
        pod = holding.pod
        if pod.space is None:
            return None
        try:
            for allocation in holding.chain:
                (card,) = device_ids.by_gpu(allocation.ids)  # a request for more is a problem of the pod
                if not await self._groups.join(allocation.id, card, pod.space.group):
                    why = f"no MPS daemon serves group {pod.space.group} on card {card} yet: does vgpu-space run here?"
                    return ContainerRefusal(NodeReason.SPACE_NOT_READY, why)
        except (OSError, StateUnusable) as error:
            return ContainerRefusal(NodeReason.FILES_FAILED, str(error))
        return None

    def _mismatch(
        self, pod: BoundPod, assignment: Assignment, allocations: Sequence[tuple[Allocation, ContainerName]]
    ) -> ContainerRefusal | None:
        request = pod.parsed.request
        if request is None:
            return None
        slice_mib = self._inventory.slice_mib
        checks = (
            proof.card_mismatch(request, assignment, name, allocation.ids, slice_mib)
            for allocation, name in allocations
        )
        return next((refusal for refusal in checks if refusal is not None), None)

    def _no_room(self, pod: BoundPod) -> ContainerRefusal | None:
        tenants, wanted = self._occupancy.tenants(but=pod.uid), self._occupancy.usage(pod)
        return guard.check(self._inventory.gpus(), self._inventory.slice_mib, tenants, wanted)
