"""Removes files of the state directory that nothing uses: allocations of pods that are gone, libraries not mounted."""

import asyncio
import logging
from collections.abc import Callable, Collection, Iterable
from typing import Final

from deviceplugin.kubelet.messages import Listing
from deviceplugin.pod_resources import PodResources, PodResourcesListing
from vgpu.domain.identifiers import PodUid
from vgpu.node.containers.allocations import Allocation, Allocations
from vgpu.node.containers.departed import DepartedHolders
from vgpu.node.containers.pods import NodePods
from vgpu.node.containers.state_files import StateFiles
from vgpu.node.space.membership import GroupMembership

PERIOD_S: Final = 60.0
LONGEST_STEP_S: Final = 5 * PERIOD_S  # between two collections, by the wall clock
MIN_AGE_S: Final = 600.0
MIN_AGE_OF_PROVEN_S: Final = 60.0  # the watch has shown the pod and its end; the library's copy takes 300 KB of disk

log = logging.getLogger(__name__)


def expired(
    allocations: Iterable[Allocation],
    uids: Collection[PodUid],
    listings: Iterable[Listing],
    now: float,
    is_used: Callable[[Allocation], bool] = lambda _: False,
) -> list[Allocation]:
    """Return the allocations to remove: no such pod in the watch, old enough, and held in none of the listings.

    `is_used` says of an allocation whether processes of a pod that is gone use it: it stays until they end.

    One that was created far in the future is old too: the clock was ahead then.

    Pass two listings taken apart: a single one has been seen to miss a pod that the kubelet was starting.
    """
    taken = list(listings)
    return [
        allocation
        for allocation in allocations
        if (allocation.holder is None or allocation.holder.uid not in uids)
        and abs(now - allocation.created) > (MIN_AGE_OF_PROVEN_S if allocation.is_proven else MIN_AGE_S)
        and not any(_is_held(allocation, listing) for listing in taken)
        and not is_used(allocation)
    ]


def _is_held(allocation: Allocation, listing: Listing) -> bool:
    """Return whether the holder is listed with any of the IDs; where no holder is known, whether any pod is."""
    pods = listing.values() if allocation.holder is None else [listing.get(allocation.holder.key, {})]
    return any(
        not allocation.ids.isdisjoint(holdings.get(allocation.resource, frozenset()))
        for pod in pods
        for holdings in pod.values()
    )


class GarbageCollector:
    """Removes what has expired, every minute."""

    def __init__(
        self,
        pods: NodePods,
        pod_resources: PodResources,
        allocations: Allocations,
        departed: DepartedHolders,
        files: StateFiles,
        groups: GroupMembership,
        library: str,
        *,
        synced: asyncio.Event,
        wall_clock: Callable[[], float],
    ) -> None:
        """`library` is never removed, and nothing is before `synced` says that the watch has shown every pod."""
        self._pods = pods
        self._pod_resources = pod_resources
        self._allocations = allocations
        self._departed = departed
        self._files = files
        self._groups = groups
        self._library = library
        self._synced = synced
        self._wall_clock = wall_clock
        self._earlier = PodResourcesListing()
        self._earlier_s = wall_clock()
        self._torn_since: dict[str, float] = {}

    async def run(self) -> None:
        """Collect each minute until cancelled."""
        while True:
            await asyncio.sleep(PERIOD_S)
            self.collect()

    def collect(self) -> None:
        """Collect once; the first call only remembers the listing. Nothing is old by a clock that was set meanwhile."""
        earlier_s, self._earlier_s = self._earlier_s, self._wall_clock()
        was_set = not 0 <= self._earlier_s - earlier_s <= LONGEST_STEP_S
        earlier, self._earlier = self._earlier, self._pod_resources.snapshot
        if was_set or not self._synced.is_set() or not 0 < earlier.number < self._earlier.number:
            return
        uids = {pod.uid for pod in self._pods.all()}
        listings = (earlier.listing, self._earlier.listing)
        every, now = self._allocations.all(), self._wall_clock()
        for allocation in expired(every, uids, listings, now, self._departed.is_used):
            log.info("allocation %s has expired", allocation.id)
            self._remove(allocation.id)
        unread = self._allocations.sweep()
        self._remove_torn(unread.torn)
        if not unread.foreign:
            every = self._allocations.all()
            self._leave_groups({allocation.id for allocation in every})
            self._files.libraries.remove_others({allocation.library for allocation in every} | {self._library})

    def _remove_torn(self, torn: Collection[str]) -> None:
        """Remove directories whose records have been missing or damaged for as long as an allocation is kept.

        No container can start with such a directory: PreStartContainer refuses device IDs without a record. A container
        that runs keeps the files that it has mounted.
        """
        now = self._wall_clock()
        self._torn_since = {allocation_id: self._torn_since.get(allocation_id, now) for allocation_id in torn}
        for allocation_id, since in list(self._torn_since.items()):
            if now - since > MIN_AGE_S:
                log.warning("allocation %s has no readable record: removed", allocation_id)
                del self._torn_since[allocation_id]
                self._remove(allocation_id)

    def _leave_groups(self, allocations: Collection[str]) -> None:
        """Let only these allocations be members of groups in space."""
        try:
            self._groups.keep(allocations)
        except OSError:
            log.exception("members of groups in space")

    def _remove(self, allocation_id: str) -> None:
        """Remove an allocation; where that fails, the next collection tries again."""
        try:
            self._files.remove(allocation_id)
        except OSError:
            log.exception("allocation %s", allocation_id)
            return
        self._allocations.forget(allocation_id)
