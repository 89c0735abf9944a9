"""Which container holds given device IDs: Get of the remembered holders first, a listing only where that fails.

Pod-resources carries names only. The pod's UID comes from the watch, or from a quorum read where the name may stand for
another pod.
"""

import logging
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from deviceplugin import init_chains
from deviceplugin.init_chains import Chain
from deviceplugin.kubelet.messages import Holdings
from deviceplugin.pod_resources import PodResources
from vgpu.domain.asks.request import ContainerKind
from vgpu.domain.errors import KubeletError, KubernetesError
from vgpu.domain.identifiers import ContainerName
from vgpu.node.containers.allocations import Allocations, Holder
from vgpu.node.containers.bound_pod import BoundPod, PodKey
from vgpu.node.containers.node_api import SinglePodReader
from vgpu.node.containers.pods import NodePods
from vgpu.node.containers.refusal import ContainerRefusal, NodeReason

_LIST_WAIT_S: Final = 10.0  # the kubelet gives PreStartContainer 30 s

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class FoundHolder:
    """A pod that holds the IDs. `listed` is the container that pod-resources names, None for an init container."""

    key: PodKey
    listed: ContainerName | None


@dataclass(frozen=True, slots=True)
class PodHolding:
    """A pod that holds IDs, the allocations of those IDs, and the listed container (None: an init container)."""

    pod: BoundPod
    chain: Chain
    listed: ContainerName | None


class HolderLookup:
    """Asks the kubelet, the watch and the API server."""

    def __init__(
        self, pods: NodePods, allocations: Allocations, reader: SinglePodReader, pod_resources: PodResources
    ) -> None:
        self._pods = pods
        self._allocations = allocations
        self._reader = reader
        self._pod_resources = pod_resources

    async def find(self, resource: str, ids: frozenset[str]) -> PodHolding | ContainerRefusal:
        """Return who holds the IDs, or why that is not known for certain."""
        chains = self._allocations.chains(resource, ids)
        if not chains:
            return ContainerRefusal(
                NodeReason.ALLOCATION_LOST, "this node has no record of these devices; delete the pod"
            )
        found = await self._find(resource, ids, chains)
        if found is None:
            return ContainerRefusal(NodeReason.HOLDER_UNKNOWN, "the kubelet does not say which pod holds these devices")
        pod = await self._pod(found.key, chains)
        return (
            pod
            if isinstance(pod, ContainerRefusal)
            else PodHolding(pod, init_chains.chain_of(pod, chains), found.listed)
        )

    async def earlier_holder(self, resource: str, ids: frozenset[str], holding: PodHolding) -> BoundPod | None:
        """Return another pod that was given any of the IDs earlier and still holds them: the first record wins."""
        for allocation in self._allocations.overlapping(resource, ids):
            if (
                allocation.holder is None
                or allocation.holder.uid == holding.pod.uid
                or allocation.sequence > holding.chain[0].sequence
            ):
                continue
            other = self._pods.get(allocation.holder.uid)
            if other is None or other.is_terminal:
                continue
            if find_in(other.key, await self._holdings(other.key), resource, ids):
                return other
        return None

    async def _find(self, resource: str, ids: frozenset[str], chains: Sequence[Chain]) -> FoundHolder | None:
        """Get the remembered holders first; wait for a listing where that finds none."""
        unlisted = []
        for holder, is_doubtful in self._remembered(chains) if chains[0][-1].holder else ():
            kinds = self._kinds(holder, resource)
            found = find_in(holder.key, await self._holdings(holder.key), resource, ids)
            if found is not None and (found.listed or kinds.get(holder.container) is ContainerKind.INIT):
                return found
            if set(kinds.values()) == {ContainerKind.INIT}:
                unlisted.append(FoundHolder(holder.key, None))
                if not is_doubtful:
                    return unlisted[-1]
        listing = (await self._pod_resources.fresh(_LIST_WAIT_S)).listing
        seen = [found for key in listing if (found := find_in(key, listing[key], resource, ids))]
        known = {holder.key for holder, _ in self._remembered(chains)}
        # Two pods may be listed with the IDs. The one that is not recorded is being started; earlier_holder refuses it.
        seen.sort(key=lambda found: (found.listed is None, found.key in known))
        return next(iter(seen + unlisted), None)

    async def _pod(self, key: PodKey, chains: Sequence[Chain]) -> BoundPod | ContainerRefusal:
        """Return the pod of a name. A quorum read decides where several pods had the name, or the watch may lag."""
        named = self._pods.named(key)
        uids = {
            allocation.holder.uid
            for chain in chains
            for allocation in chain
            if allocation.holder and allocation.holder.key == key
        }
        if len(named) == 1 and uids == {named[0].uid}:
            return named[0]
        try:
            pod = await self._reader.pod(key)
        except KubernetesError as error:
            return ContainerRefusal(NodeReason.HOLDER_UNKNOWN, f"pod {key[1]} cannot be read: {error}")
        if pod is None:
            return ContainerRefusal(NodeReason.HOLDER_UNKNOWN, f"pod {key[1]} is not bound to this node")
        self._pods.upsert(pod)
        return pod

    def _remembered(self, chains: Sequence[Chain]) -> Iterator[tuple[Holder, bool]]:
        """Yield the recorded holders whose pods are still here, newest first, and whether each is doubtful."""
        for chain in chains:
            for allocation in reversed(chain):
                pod = self._pods.get(allocation.holder.uid) if allocation.holder else None
                if allocation.holder is not None and pod is not None and not pod.is_terminal:
                    yield allocation.holder, allocation.is_doubtful

    async def _holdings(self, key: PodKey) -> Holdings:
        """Return what a pod's containers hold; nothing where the kubelet does not answer."""
        try:
            return await self._pod_resources.get(key)
        except KubeletError as error:
            log.debug("pod-resources: %s", error)
            return {}

    def _kinds(self, holder: Holder, resource: str) -> dict[ContainerName, ContainerKind]:
        """Return the kinds of the containers of the holder's pod that ask for the resource, by container name."""
        pod = self._pods.get(holder.uid)
        requests = pod.device_requests if pod else ()
        return {request.container: request.kind for request in requests if request.resource == resource}


def find_in(key: PodKey, holdings: Holdings, resource: str, ids: frozenset[str]) -> FoundHolder | None:
    """Return which container holds exactly the IDs, or None where no container of the pod holds any of them.

    Where containers hold a part of them only, an init container has handed them on: `listed` is None.
    """
    held = {name: holding.get(resource, frozenset()) for name, holding in holdings.items()}
    exact = next((name for name, theirs in held.items() if theirs == ids), None)
    is_touched = any(not ids.isdisjoint(theirs) for theirs in held.values())
    return FoundHolder(key, exact) if is_touched else None
