"""Who holds given IDs, by the kubelet's word: Get of those remembered first, a listing only where that fails."""

import logging
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from deviceplugin.init_chains import Chain
from deviceplugin.kubelet.pod_resources_client import Holdings
from deviceplugin.pod_resources import PodResources
from vgpu.errors import KubeletError
from vgpu.node.allocations import Holder
from vgpu.node.pods import PodKey, Pods
from vgpu.node.refusal import NodeReason, Refusal
from vgpu.request import ContainerKind

_LIST_WAIT_S: Final = 10.0  # the kubelet gives PreStartContainer 30

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class FoundHolder:
    """Who holds the IDs. `listed` is the container that pod-resources names, None for an init container's pod."""

    key: PodKey
    listed: str | None


class HolderLookup:
    """Asks the kubelet."""

    def __init__(self, pods: Pods, holders: PodResources) -> None:
        self._pods = pods
        self._pod_resources = holders

    async def find(self, resource: str, ids: frozenset[str], chains: Sequence[Chain]) -> FoundHolder | Refusal:
        """Ask for those remembered first, by Get; wait for a listing where that does not settle it."""
        unlisted = []
        for holder, is_doubtful in self._remembered(chains) if chains[0][-1].holder else ():
            kinds = self._kinds(holder, resource)
            found = find_in(holder.key, await self.holdings(holder.key), resource, ids)
            if found is not None and (found.listed or kinds.get(holder.container) is ContainerKind.INIT):
                return found
            if set(kinds.values()) == {ContainerKind.INIT}:
                unlisted.append(FoundHolder(holder.key, None))
                if not is_doubtful:
                    return unlisted[-1]
        listing = (await self._pod_resources.fresh(_LIST_WAIT_S)).listing
        seen = [found for key in listing if (found := find_in(key, listing[key], resource, ids))]
        known = {holder.key for holder, _ in self._remembered(chains)}
        seen.sort(key=lambda found: (found.listed is None, found.key in known))  # of two, the later one is refused
        unknown = Refusal(NodeReason.HOLDER_UNKNOWN, "the kubelet does not say whose devices these are")
        return next(iter(seen + unlisted), unknown)

    def _remembered(self, chains: Sequence[Chain]) -> Iterator[tuple[Holder, bool]]:
        """Those whose pods are still here, newest first, and whether that is in doubt."""
        for chain in chains:
            for each in reversed(chain):
                pod = self._pods.get(each.holder.uid) if each.holder else None
                if each.holder is not None and pod is not None and not pod.is_over:
                    yield each.holder, each.is_doubtful

    async def holdings(self, key: PodKey) -> Holdings:
        """What a pod's containers hold, by the kubelet's word; nothing where it does not say."""
        try:
            return await self._pod_resources.get(key)
        except KubeletError as error:
            log.debug("pod-resources: %s", error)
            return {}

    def _kinds(self, holder: Holder, resource: str) -> dict[str, ContainerKind]:
        """The containers of the holder's pod that want the resource. Init containers are never listed."""
        pod = self._pods.get(holder.uid)
        return {want.container: want.kind for want in pod.device_requests if want.resource == resource} if pod else {}


def find_in(
    key: PodKey, holdings: Mapping[str, Mapping[str, frozenset[str]]], resource: str, ids: frozenset[str]
) -> FoundHolder | None:
    """Find who holds exactly the IDs; where somebody holds a part of them, an init container has handed them on."""
    held = {name: each.get(resource, frozenset()) for name, each in holdings.items()}
    exact = next((name for name, theirs in held.items() if theirs == ids), None)
    touched = any(not ids.isdisjoint(theirs) for theirs in held.values())
    return FoundHolder(key, exact) if touched else None
