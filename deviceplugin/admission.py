"""GetPreferredAllocation and Allocate: the kubelet admits a container, and waits for both without a deadline.

Whom the container belongs to is found out in the first and remembered in the second; neither fails on doubt, because
their error makes the pod Failed for good. Allocate lists nothing and asks nobody.
"""

import logging
from collections.abc import Callable, Collection
from dataclasses import dataclass

from deviceplugin import responses
from deviceplugin.candidate_search import CandidateSearch
from deviceplugin.candidates import Candidate
from deviceplugin.occupancy import Occupancy
from deviceplugin.pod_resources import PodResources
from deviceplugin.responses import ContainerResponse, Injection
from vgpu.node import proof
from vgpu.node.allocations import Allocation, Allocations, Holder
from vgpu.node.inventory import Inventory
from vgpu.node.node_api import PodReader
from vgpu.node.pods import Pods
from vgpu.node.refusal import Refusal

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class _Preferred:
    """The last answer to GetPreferredAllocation: Allocate follows it at once."""

    choice: Candidate | None
    ids: frozenset[str]


class Admission:
    """One kubelet's admissions; it admits one container at a time."""

    def __init__(
        self,
        pods: Pods,
        holders: PodResources,
        allocations: Allocations,
        inventory: Inventory,
        occupancy: Occupancy,
        reader: PodReader,
        injection: Injection,
        *,
        wall_clock: Callable[[], float],
        new_id: Callable[[], str],
    ) -> None:
        """`wall_clock` gives seconds since 1970; `new_id` names directories, never the same twice."""
        self._pods = pods
        self._pod_resources = holders
        self._allocations = allocations
        self._inventory = inventory
        self._occupancy = occupancy
        self._reader = reader
        self._injection = injection
        self._wall_clock = wall_clock
        self._new_id = new_id
        self._preferred: dict[str, _Preferred] = {}
        self._last: dict[str, Allocation] = {}

    async def prefer(self, resource: str, available: Collection[str], must: Collection[str], size: int) -> list[str]:
        """Choose IDs on the cards that were assigned to whoever is being admitted."""
        async with self._pod_resources.admitting() as look:
            choice, listing = await CandidateSearch(self._pods, self._allocations, self._reader, look).find(
                resource, size
            )
            held = {each for pod in listing.values() for one in pod.values() for each in one.get(resource, ())}
            ids = responses.prefer(available, must, size, _assigned_gpus(choice), held)
            self._preferred[resource] = _Preferred(choice, frozenset(ids))
            _log_choice(resource, size, choice)
            return ids

    def allocate(self, resource: str, ids: frozenset[str]) -> ContainerResponse:
        """Make the allocation's directory and say what the container gets. Raises OSError where there is no room."""
        allocation = self._record(resource, ids)
        self._allocations.add(allocation)
        try:
            self._injection.files.prepare(allocation.id)
        except OSError:
            log.exception("files of allocation %s; PreStartContainer tries again", allocation.id)
        self._last[resource] = allocation
        self._pod_resources.allocated(allocation.holder.key if allocation.holder else None, ids)
        self._occupancy.recount()
        return responses.plan(ids, self._inventory.gpus(), allocation.id, self._injection)

    def _record(self, resource: str, ids: frozenset[str]) -> Allocation:
        preferred, last = self._preferred.pop(resource, None), self._last.get(resource)
        new_id = self._new_id()
        holder, doubtful, chain = None, True, new_id
        if preferred is not None and preferred.choice is not None:
            choice = preferred.choice
            holder = Holder.of(choice.pod, choice.device_request.container)
            doubtful = choice.is_doubtful or preferred.ids != ids
        elif preferred is None and last is not None and ids <= self._handed_on(last) and (heir := self._heir(last)):
            holder, doubtful, chain = heir, last.is_doubtful, last.chain
        return Allocation(
            id=new_id,
            resource=resource,
            ids=ids,
            chain=chain,
            sequence=self._allocations.next_sequence(),
            created=self._wall_clock(),
            library=self._injection.library,
            holder=holder,
            is_doubtful=doubtful,
        )

    def _handed_on(self, last: Allocation) -> frozenset[str]:
        """Every ID that went through the hands of the pod that was served last."""
        same = (each for each in self._allocations.all() if each.resource == last.resource)
        pods = (each.ids for each in same if each.chain == last.chain or _is_one_pod(each, last))
        return frozenset().union(*pods)

    def _heir(self, last: Allocation) -> Holder | None:
        """The container after the one served last: the kubelet hands init containers' IDs on without asking."""
        pod = self._pods.get(last.holder.uid) if last.holder else None
        if pod is None or last.holder is None:
            return None
        device_requests = [want.container for want in pod.device_requests if want.resource == last.resource]
        after = (
            device_requests[device_requests.index(last.holder.container) + 1 :]
            if last.holder.container in device_requests
            else []
        )
        return Holder.of(pod, after[0]) if after else None


def _is_one_pod(one: Allocation, other: Allocation) -> bool:
    return one.holder is not None and other.holder is not None and one.holder.uid == other.holder.uid


def _assigned_gpus(choice: Candidate | None) -> list[str]:
    if choice is None:
        return []
    assignment = proof.assignment_of(choice.pod)
    if isinstance(assignment, Refusal):
        return []
    return [grant.gpu for grant in assignment.containers.get(choice.device_request.container, ())]


def _log_choice(resource: str, size: int, choice: Candidate | None) -> None:
    if choice is None:
        log.warning("nobody waits for %d of %s", size, resource)
    elif choice.is_doubtful:
        log.warning("%d of %s: probably %s/%s", size, resource, *choice.pod.key)
