"""Searches for the container that the kubelet is admitting, within five seconds: list, wait for the watch, then GET.

The kubelet waits for the answer as long as the search takes, and admits no other pod meanwhile. A wrong guess costs a
pod its start, and one second did not suffice for a pod of a megabyte on a busy machine.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Final

from deviceplugin import candidates
from deviceplugin.candidates import AdmissionCandidate
from deviceplugin.kubelet.messages import Listing
from vgpu.domain.errors import KubeletError, KubernetesError
from vgpu.node.containers.allocations import Allocations
from vgpu.node.containers.bound_pod import PodKey
from vgpu.node.containers.node_api import SinglePodReader
from vgpu.node.containers.pods import NodePods

DEADLINE_S: Final = 5.0
_WATCH_LAG_S: Final = 0.05
_RETRY_S: Final = 0.005
_READ_AGAIN_S: Final = 0.1
_MAX_VAIN_LISTS: Final = 10  # lists without a candidate and without a pod to read: the pod was deleted meanwhile

log = logging.getLogger(__name__)

List = Callable[[], Awaitable[Listing]]


class CandidateSearch:
    """One search. `list_pods` lists pod-resources, which only GetPreferredAllocation may do at this moment."""

    def __init__(
        self,
        pods: NodePods,
        allocations: Allocations,
        reader: SinglePodReader,
        list_pods: List,
        deadline_s: float = DEADLINE_S,
    ) -> None:
        self._pods = pods
        self._was_allocated = allocations.was_allocated
        self._reader = reader
        self._list_pods = list_pods
        self._deadline_s = deadline_s
        self._fetched: set[PodKey] = set()
        self._best: AdmissionCandidate | None = None
        self._listing: Listing = {}
        self._vain_lists = 0

    async def find(self, resource: str, size: int) -> tuple[AdmissionCandidate | None, Listing]:
        """Return the best candidate that can be found in time, and the last listing."""
        try:
            async with asyncio.timeout(self._deadline_s):
                while not await self._is_found(resource, size):
                    pass
        except TimeoutError:
            log.warning(
                "the search for the admitted container took %.0f s; best candidate: %s", self._deadline_s, self._best
            )
        return self._best, self._listing

    async def _is_found(self, resource: str, size: int) -> bool:
        """List once; where that leaves a doubt, wait for the watch and read the pods that it has not shown."""
        try:
            self._listing = await self._list_pods()
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
            self._vain_lists += 1
            return self._best is not None or self._vain_lists >= _MAX_VAIN_LISTS
        await self._pods.wait_for_change(_WATCH_LAG_S)
        await self._fetch(unsure & self._unsure(candidates.unknown_pods(self._pods.all(), self._listing)))
        return False

    def _unsure(self, unknown: frozenset[PodKey]) -> frozenset[PodKey]:
        """Return the pods of which the API server may know more than the watch has shown."""
        admitted = {self._best.pod.key} if self._best and self._best.pod.is_admitted else set()
        return (unknown | admitted) - self._fetched

    async def _fetch(self, keys: frozenset[PodKey]) -> None:
        for key in sorted(keys):
            try:
                pod = await self._reader.pod(key)
            except KubernetesError as error:
                log.warning("pod %s/%s: %s", *key, error)
                await asyncio.sleep(_READ_AGAIN_S)
                continue
            self._fetched.add(key)
            if pod is not None:
                self._pods.upsert(pod)
