"""What of the state directory may go: directories of pods that are no more, libraries that nobody mounts."""

import asyncio
import logging
from collections.abc import Callable, Collection, Iterable
from typing import Final

from deviceplugin.candidates import Listing
from deviceplugin.pod_resources import PodResources, Snapshot
from vgpu.node.allocations import Allocation, Allocations
from vgpu.node.pods import Pods
from vgpu.node.state_files import StateFiles

PERIOD_S: Final = 60.0
MIN_AGE_S: Final = 600.0

log = logging.getLogger(__name__)


def expired(
    allocations: Iterable[Allocation], uids: Collection[str], listings: Iterable[Listing], now: float
) -> list[Allocation]:
    """Allocations to remove: no such pod in the watch, old enough, and held in none of the listings.

    Two listings are asked, taken apart: one alone has been seen to miss a pod that the kubelet was starting.
    """
    looks = list(listings)
    return [
        each
        for each in allocations
        if (each.holder is None or each.holder.uid not in uids)
        and now - each.created > MIN_AGE_S
        and not any(_is_held(each, listing) for listing in looks)
    ]


def _is_held(allocation: Allocation, listing: Listing) -> bool:
    """Whether the holder, or where none is known anybody, is listed with any of the IDs."""
    who = listing.values() if allocation.holder is None else [listing.get(allocation.holder.key, {})]
    return any(
        not allocation.ids.isdisjoint(holdings.get(allocation.resource, frozenset()))
        for pod in who
        for holdings in pod.values()
    )


class GarbageCollector:
    """Removes what has expired, every minute."""

    def __init__(
        self,
        pods: Pods,
        holders: PodResources,
        allocations: Allocations,
        files: StateFiles,
        library: str,
        *,
        synced: asyncio.Event,
        wall_clock: Callable[[], float],
    ) -> None:
        """Nothing is removed before `synced` says that the watch knows every pod; `library` always stays."""
        self._pods = pods
        self._pod_resources = holders
        self._allocations = allocations
        self._files = files
        self._library = library
        self._synced = synced
        self._wall_clock = wall_clock
        self._earlier = Snapshot()

    async def run(self) -> None:
        """Clean for ever."""
        while True:
            await asyncio.sleep(PERIOD_S)
            self.clean()

    def clean(self) -> None:
        """Clean once; the first call only looks."""
        earlier, self._earlier = self._earlier, self._pod_resources.snapshot
        if not self._synced.is_set() or not 0 < earlier.number < self._earlier.number:
            return
        uids = {pod.uid for pod in self._pods.all()}
        listings = (earlier.listing, self._earlier.listing)
        for each in expired(self._allocations.all(), uids, listings, self._wall_clock()):
            log.info("allocation %s is over", each.id)
            self._allocations.forget(each.id)
            self._files.remove(each.id)
        every = self._allocations.all()
        self._files.remove_others({each.library for each in every} | {self._library}, {each.id for each in every})
