"""Finding out whom the kubelet is admitting, in the time it waits: look, and where that does not settle it, ask."""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Final

from deviceplugin import candidates
from deviceplugin.candidates import Candidate, Listing
from vgpu.errors import KubeletError, KubernetesError
from vgpu.node.allocations import Allocations
from vgpu.node.node_api import PodReader
from vgpu.node.pods import PodKey, Pods

DEADLINE_S: Final = 1.0
_WATCH_LAG_S: Final = 0.05
_RETRY_S: Final = 0.005
_VAIN_LOOKS: Final = 10  # with nothing left to ask: the pod was deleted while it was being admitted

log = logging.getLogger(__name__)

Look = Callable[[], Awaitable[Listing]]


class CandidateSearch:
    """One search. `look` lists pod-resources, as only the admission may."""

    def __init__(self, pods: Pods, allocations: Allocations, reader: PodReader, look: Look) -> None:
        self._pods = pods
        self._was_allocated = allocations.was_allocated
        self._reader = reader
        self._look = look
        self._fetched: set[PodKey] = set()
        self._best: Candidate | None = None
        self._listing: Listing = {}
        self._vain_looks = 0

    async def find(self, resource: str, size: int) -> tuple[Candidate | None, Listing]:
        """The best choice that can be had in time, and what was listed last."""
        try:
            async with asyncio.timeout(DEADLINE_S):
                while not await self._is_found(resource, size):
                    pass
        except TimeoutError:
            log.warning("found out in %.0f s: %s", DEADLINE_S, self._best)
        return self._best, self._listing

    async def _is_found(self, resource: str, size: int) -> bool:
        """Look once, and where that does not settle it, do what may help before the next look."""
        try:
            self._listing = await self._look()
        except KubeletError as error:
            log.debug("pod-resources: %s", error)
            await asyncio.sleep(_RETRY_S)
            return False
        pods = self._pods.all()
        self._best = candidates.choose(resource, size, pods, self._listing, self._was_allocated)
        if self._best is not None and not self._best.is_doubtful:
            return True
        unsure = self._unsure(candidates.unknown_pods(pods, self._listing))
        if not unsure:
            await asyncio.sleep(_RETRY_S)
            self._vain_looks += 1
            return self._best is not None or self._vain_looks >= _VAIN_LOOKS
        await self._pods.wait_for_change(_WATCH_LAG_S)
        await self._fetch(unsure & self._unsure(candidates.unknown_pods(self._pods.all(), self._listing)))
        return False

    def _unsure(self, unknown_pods: frozenset[PodKey]) -> frozenset[PodKey]:
        """Pods of which the API server may know more than our watch does."""
        admitted = {self._best.pod.key} if self._best and self._best.pod.is_admitted else set()
        return (unknown_pods | admitted) - self._fetched

    async def _fetch(self, keys: frozenset[PodKey]) -> None:
        for key in sorted(keys):
            self._fetched.add(key)
            try:
                pod = await self._reader.pod(key)
            except KubernetesError as error:
                log.warning("pod %s/%s: %s", *key, error)
                continue
            if pod is not None:
                self._pods.upsert(pod)
