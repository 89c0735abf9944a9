"""Filter: which nodes can take a pod, and why the others cannot. A pure question; it reserves nothing."""

from collections.abc import Awaitable, Callable, Sequence
from typing import Final

from extender import placement_cache
from extender.cluster import Cluster
from extender.objects import Pod
from extender.placement_cache import PlacementCache
from extender.room import Room
from extender.verdict import Placement, Verdict
from vgpu.assignment import Assignment
from vgpu.placement import choose
from vgpu.placement.choose import Refusal
from vgpu.placement.policies import DefaultPolicies
from vgpu.reasons import Reason
from vgpu.share import NodeState

SLICE_S: Final = 0.02  # for which one call holds the event loop
BUDGET_S: Final = 2.0  # well below kube-scheduler's httpTimeout of 5 s, in which it schedules no other pod
NODES_PER_LOOK: Final = 4  # at the clock: a node takes 5 ms at most, for a pod of 32 containers


class Filter:
    """Answers from the cluster's state now, with the cluster's default policies."""

    def __init__(
        self, cluster: Cluster, defaults: DefaultPolicies, cached_requests: int = placement_cache.MAX_REQUESTS
    ) -> None:
        self._cluster = cluster
        self._defaults = defaults
        self._cache = PlacementCache(cached_requests)
        self._room = Room(cluster, defaults)

    def nodes(self, pod: Pod, names: Sequence[str]) -> Verdict:
        """Return the verdict on every node named; unknown names are refused, never an error."""
        verdict = Verdict()
        placement_on = self.placement(pod)
        for name in names:
            verdict.add(name, placement_on(name))
        return verdict

    async def judge(self, pod: Pod, names: Sequence[str], pause: Callable[[float], Awaitable[None]]) -> Verdict:
        """Return the verdict on every node named, in slices of time with a pause after each.

        Other calls are answered in the pauses. Nodes that 2 s do not suffice for are refused as NotJudged; the next
        attempt finds the others in the cache.
        """
        verdict = Verdict()
        placement_on = self.placement(pod)
        begun = resumed = self._cluster.now()
        in_time = True
        for index, name in enumerate(names):
            if index % NODES_PER_LOOK == 0:
                now = self._cluster.now()
                in_time = now - begun <= BUDGET_S
                if now - resumed > SLICE_S:
                    await pause(0)
                    resumed = self._cluster.now()
            verdict.add(name, placement_on(name) if in_time else Refusal(Reason.NOT_JUDGED))
        return verdict

    def node(self, pod: Pod, name: str) -> Placement:
        """Return where a pod is placed on one node, or why it cannot be. A pod that asks for no GPU gets no grants."""
        return self.placement(pod)(name)

    def placement(self, pod: Pod) -> Callable[[str], Placement]:
        """Return the function that places a pod on a node; what is the same for all nodes is decided once, here."""
        if pod.parsed.problems:
            return lambda _: Refusal(Reason.INVALID_REQUEST)
        request = pod.parsed.request
        if request is None:
            return lambda _: Assignment({})
        if not pod.is_admitted(self._cluster.slice_mib):
            return lambda _: Refusal(Reason.NOT_ADMITTED)
        policy = self._defaults.gpu_policy_for(request.options)
        placements = self._cache.for_request(request, policy)
        devices = request.devices(self._cluster.slice_mib)

        def placement_on(name: str) -> Placement:
            state = self._cluster.usable_state(name)
            if not isinstance(state, NodeState):
                return Refusal(state)
            placement = placements.on(state)
            if isinstance(placement, Assignment) and not self._kubelet_has_room(name, state, devices):
                return Refusal(Reason.KUBELET_OFFERS_LESS)
            left = self._room.with_nominated(state, pod)
            if left is not state and isinstance(placement, Assignment):
                placement = choose.place(request, left, policy)
                return placement if isinstance(placement, Assignment) else Refusal(Reason.CARD_RESERVED)
            return placement

        return placement_on

    def _kubelet_has_room(self, name: str, state: NodeState, devices: dict[str, int]) -> bool:
        return self._cluster.objects.nodes[name].has_room(state.devices, devices)
