"""Allocate: make an allocation's directory, record whom it is thought to be for, and answer with its mounts.

The kubelet waits without a deadline and admits no other pod meanwhile, so nothing is listed and no request is sent
here. An error makes the pod Failed for good, so a doubtful holder is recorded as such, and PreStartContainer decides.
"""

import logging
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from deviceplugin import responses
from deviceplugin.kubelet.messages import ContainerResponse
from deviceplugin.preferred_allocation import Preference, PreferredAllocation
from deviceplugin.responses import Injection
from vgpu.node.cards.inventory import Inventory
from vgpu.node.containers.allocations import Allocation, Allocations, Holder
from vgpu.node.containers.pods import NodePods

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class _Expected:
    """Whom new IDs are thought to be for; `chain` is empty where the IDs come from no earlier allocation."""

    holder: Holder | None
    is_doubtful: bool
    chain: str = ""


_NOT_EXPECTED: Final = _Expected(None, is_doubtful=True)


class AllocationRecorder:
    """Records allocations. `new_id` names directories and never repeats; `wall_clock` gives seconds since 1970."""

    def __init__(
        self, pods: NodePods, allocations: Allocations, new_id: Callable[[], str], wall_clock: Callable[[], float]
    ) -> None:
        self._pods = pods
        self._allocations = allocations
        self._new_id = new_id
        self._wall_clock = wall_clock
        self._last: dict[str, Allocation] = {}

    def recorded(self, resource: str, ids: frozenset[str], first_sent: float | None) -> Allocation | None:
        """Return the record that a call made that is sent again; None where the call is a new one, or made none."""
        if first_sent is None:
            return None
        chains = self._allocations.chains(resource, ids)
        return chains[0][-1] if chains and chains[0][-1].created >= first_sent else None

    def record(self, resource: str, ids: frozenset[str], preference: Preference | None, library: str) -> Allocation:
        """Make the directory and the record of an allocation; `library` is the limiter that will be mounted."""
        expected = self._expected(resource, ids, preference)
        new_id = self._new_id()
        allocation = Allocation(
            id=new_id,
            resource=resource,
            ids=ids,
            chain=expected.chain or new_id,
            sequence=self._allocations.next_sequence(),
            created=self._wall_clock(),
            library=library,
            holder=expected.holder,
            is_doubtful=expected.is_doubtful,
        )
        self._allocations.add(allocation)
        self._last[resource] = allocation
        return allocation

    def _expected(self, resource: str, ids: frozenset[str], preference: Preference | None) -> _Expected:
        if preference is not None:
            return _preferred(preference, ids)
        last = self._last.get(resource)
        if last is None or not ids <= self._ids_of_the_pod(last):
            return _NOT_EXPECTED
        holder = self._next_container(last)
        return _Expected(holder, last.is_doubtful, last.chain) if holder else _NOT_EXPECTED

    def _ids_of_the_pod(self, last: Allocation) -> frozenset[str]:
        """Return every ID that the pod of the last allocation was given: the kubelet may hand any of them on."""
        same = (allocation for allocation in self._allocations.all() if allocation.resource == last.resource)
        pods = (
            allocation.ids for allocation in same if allocation.chain == last.chain or _have_one_pod(allocation, last)
        )
        return frozenset().union(*pods)

    def _next_container(self, last: Allocation) -> Holder | None:
        """Return the container after the last one served: it gets an init container's IDs without a preference."""
        pod = self._pods.get(last.holder.uid) if last.holder else None
        if pod is None or last.holder is None:
            return None
        containers = [
            device_request.container
            for device_request in pod.device_requests
            if device_request.resource == last.resource
        ]
        if last.holder.container not in containers:
            return None
        following = containers[containers.index(last.holder.container) + 1 :]
        return Holder.of(pod, following[0]) if following else None


class Allocator:
    """Answers Allocate. `on_allocated` is called with each allocation before the answer."""

    def __init__(
        self,
        preferred: PreferredAllocation,
        recorder: AllocationRecorder,
        inventory: Inventory,
        injection: Injection,
        on_allocated: Callable[[Allocation], None],
    ) -> None:
        self._preferred = preferred
        self._recorder = recorder
        self._inventory = inventory
        self._injection = injection
        self._on_allocated = on_allocated

    def allocate(self, resource: str, ids: frozenset[str], first_sent: float | None = None) -> ContainerResponse:
        """Record an allocation and return what the container gets.

        A call that was sent before (since `first_sent`, in seconds since 1970) and recorded gets its answer again.
        Where the disk is full, PreStartContainer makes the record and the files, or refuses the container.
        """
        preference = self._preferred.take(resource)
        allocation = self._recorder.recorded(resource, ids, first_sent) or self._recorder.record(
            resource, ids, preference, self._injection.library
        )
        try:
            self._injection.files.prepare(allocation.id)
        except OSError:
            log.exception("files of allocation %s; PreStartContainer tries again", allocation.id)
        self._on_allocated(allocation)
        return responses.container_response(ids, self._inventory.gpus(), allocation.id, self._injection)


def _preferred(preference: Preference, ids: frozenset[str]) -> _Expected:
    candidate = preference.candidate
    if candidate is None:
        return _NOT_EXPECTED
    holder = Holder.of(candidate.pod, candidate.device_request.container)
    return _Expected(holder, candidate.is_doubtful or preference.ids != ids)


def _have_one_pod(one: Allocation, other: Allocation) -> bool:
    return one.holder is not None and other.holder is not None and one.holder.uid == other.holder.uid
