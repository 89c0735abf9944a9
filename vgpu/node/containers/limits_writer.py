"""Puts a proven container's limits into its allocation's files, and records the holder."""

from collections.abc import Iterable

from vgpu.domain.grants.assignment import Assignment
from vgpu.domain.identifiers import ContainerName
from vgpu.node.containers import proof
from vgpu.node.containers.allocations import Allocation, Allocations, Holder
from vgpu.node.containers.bound_pod import BoundPod
from vgpu.node.containers.state_files import StateFiles


class LimitsWriter:
    """Writes limits and records."""

    def __init__(self, allocations: Allocations, files: StateFiles) -> None:
        self._allocations = allocations
        self._files = files

    def write(
        self, pod: BoundPod, assignment: Assignment, allocations: Iterable[tuple[Allocation, ContainerName]]
    ) -> None:
        """Write the limits of each allocation, given with the name of its container.

        Raises OSError, and StateUnusable where the container's library is damaged.
        """
        for allocation, container in allocations:
            self._allocations.set_holder(allocation, Holder.of(pod, container), proven=True)
            self._write(pod, assignment, allocation, container)

    def _write(self, pod: BoundPod, assignment: Assignment, allocation: Allocation, container: ContainerName) -> None:
        request = pod.parsed.request
        asked = proof.request_of(request, container) if request else None
        if request is not None and asked is not None:
            self._files.prepare(allocation.id, self._files.libraries.region_header(allocation.library))
            self._files.copy_library(allocation.id, allocation.library)
            limits = proof.limits_for(request, asked, assignment.containers[container], pod.space, pod.job)
            self._files.write_limits(allocation.id, limits)
