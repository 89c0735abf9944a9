"""What a pod asks for now: its request, with what the pods that are bound or being bound make of its affinities."""

from collections.abc import Mapping, Sequence

from extender.state.objects import WatchedPod
from extender.state.reservations import Reservations
from extender.state.store import ObjectStore
from vgpu.domain.asks.request import PodRequest
from vgpu.placement import racks


class PodRequests:
    """Answers from the pods of the store and from the reservations."""

    def __init__(self, objects: ObjectStore, reservations: Reservations) -> None:
        self._objects = objects
        self._reservations = reservations

    def of(self, pod: WatchedPod) -> PodRequest | None:
        """Return what a pod asks for, with the cards that affinity to the pods on them allows and rules out now."""
        return self._objects.neighbours.request(pod, self._reservations.assigned())

    def preferred(self, pod: WatchedPod, request: PodRequest) -> PodRequest | None:
        """Return what `of` returned, with the cards that the pod prefers too; None where it prefers none now."""
        if not request.options.prefers_neighbours:
            return None
        return self._objects.neighbours.preferred(pod, request, self._reservations.assigned())

    def rack_tiers(self, pod: WatchedPod, asked: Sequence[str]) -> Mapping[str, int]:
        """Return the tier of each node by its rack, for a pod with a policy for racks; else empty."""
        request = pod.parsed.request
        if request is None or request.options.rack_policy is None:
            return {}
        used = [self._rack(node) for node in self._objects.jobs.nodes(pod, self._reservations.binding())]
        return racks.tiers(request.options.rack_policy, {name: self._rack(name) for name in asked}, used)

    def _rack(self, node: str) -> str:
        kubelet = self._objects.nodes.get(node)
        return kubelet.rack if kubelet else ""
