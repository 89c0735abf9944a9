"""GetPreferredAllocation: find the container that the kubelet is admitting, and prefer IDs on its assigned cards.

An error here makes the pod Failed for good, so on doubt the likeliest container is taken. PreStartContainer decides.
"""

import logging
from collections.abc import Collection
from dataclasses import dataclass

from deviceplugin import responses
from deviceplugin.candidate_search import CandidateSearch
from deviceplugin.candidates import AdmissionCandidate
from deviceplugin.pod_resources import PodResources
from vgpu.domain.identifiers import CardUuid
from vgpu.node.containers import proof
from vgpu.node.containers.allocations import Allocations
from vgpu.node.containers.departed import DepartedHolders
from vgpu.node.containers.node_api import SinglePodReader
from vgpu.node.containers.pods import NodePods
from vgpu.node.containers.refusal import ContainerRefusal

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Preference:
    """An answer to GetPreferredAllocation: the IDs, and the container that they are for (None: not found)."""

    candidate: AdmissionCandidate | None
    ids: frozenset[str]


class PreferredAllocation:
    """Answers the kubelet, which admits one container at a time."""

    def __init__(
        self,
        pods: NodePods,
        allocations: Allocations,
        departed: DepartedHolders,
        reader: SinglePodReader,
        pod_resources: PodResources,
        search_s: float,
    ) -> None:
        """`search_s` is how long a search for the container may take."""
        self._pods = pods
        self._allocations = allocations
        self._departed = departed
        self._reader = reader
        self._pod_resources = pod_resources
        self._search_s = search_s
        self._last: dict[str, Preference] = {}

    async def prefer(self, resource: str, available: Collection[str], must: Collection[str], size: int) -> list[str]:
        """Return the IDs to prefer for the container that is being admitted."""
        async with self._pod_resources.admitting() as list_pods:
            search = CandidateSearch(self._pods, self._allocations, self._reader, list_pods, self._search_s)
            candidate, listing = await search.find(resource, size)
            held = {
                device_id for pod in listing.values() for one in pod.values() for device_id in one.get(resource, ())
            }
            departed = (allocation for allocation in self._departed.held() if allocation.resource == resource)
            held = held.union(*(allocation.ids for allocation in departed))
            ids = responses.preferred_ids(available, must, size, _assigned_gpus(candidate), held)
            self._last[resource] = Preference(candidate, frozenset(ids))
            _log_candidate(resource, size, candidate)
            return ids

    def take(self, resource: str) -> Preference | None:
        """Return the last answer for a resource, once: the Allocate that follows it is for this container."""
        return self._last.pop(resource, None)


def _assigned_gpus(candidate: AdmissionCandidate | None) -> list[CardUuid]:
    if candidate is None:
        return []
    assignment = proof.assignment_of(candidate.pod)
    if isinstance(assignment, ContainerRefusal):
        return []
    return [grant.gpu for grant in assignment.containers.get(candidate.device_request.container, ())]


def _log_candidate(resource: str, size: int, candidate: AdmissionCandidate | None) -> None:
    if candidate is None:
        log.warning("no container waits for %d of %s", size, resource)
    elif candidate.is_doubtful:
        log.warning("%d of %s: probably for pod %s/%s", size, resource, *candidate.pod.key)
