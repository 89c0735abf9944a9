"""What a node has room for when pods have left it, and which cards are reserved for pods that were nominated for it."""

from collections.abc import Collection, Iterable, Sequence

from extender.state import bound_usage, gang_members
from extender.state.budgets import Budgets
from extender.state.cluster import Cluster
from extender.state.objects import WatchedPod
from vgpu.domain.cards.share import NodeState
from vgpu.domain.grants import usage
from vgpu.domain.identifiers import NodeName, PodUid
from vgpu.placement import preempt
from vgpu.placement.policies import DefaultPolicies
from vgpu.placement.preempt import Eviction, EvictionCandidate

NO_BUDGETS = Budgets()


class ClusterRoom:
    """Answers from the cluster's state now, with the cluster's default policies. It changes nothing."""

    def __init__(self, cluster: Cluster, defaults: DefaultPolicies) -> None:
        self._cluster = cluster
        self._defaults = defaults

    def with_nominated(self, state: NodeState, pod: WatchedPod) -> NodeState:
        """Return a node's state, in which the cards reserved against a pod are taken. The same state where none is."""
        before = self._cluster.objects.nominations.before(pod, state.name)
        return self._reserved(state, self._leaving(state, ()), before) if before else state

    def eviction(
        self, pod: WatchedPod, node: NodeName, leaving: Collection[PodUid], budgets: Budgets
    ) -> Eviction | None:
        """Return the cheapest eviction after which a node can take a pod, or None where no eviction helps.

        Pods that are being deleted, and those whose UIDs are in `leaving`, leave in any case.
        """
        request, state = self._cluster.neighbours.request(pod), self._cluster.states.usable(node)
        if request is None or not isinstance(state, NodeState) or not pod.is_admitted(self._cluster.slice_mib):
            return None
        going = self._leaving(state, leaving)
        gone = {candidate.uid for candidate in going}
        lower = [
            preempt.together([_candidate(other, state, budgets) for other in others])
            for others in self._by_gang(node, gone)
            if all(other.scheduling.priority < pod.scheduling.priority for other in others)
        ]
        free = self._cluster.holds.left(preempt.without(state, going), pod)
        base = self._reserved(free, (), self._cluster.objects.nominations.before(pod, node))
        devices, kubelet = request.devices(self._cluster.slice_mib), self._cluster.objects.nodes[node]
        policy = self._defaults.gpu_policy_for(request.options)
        return preempt.on_node(
            request, base, policy, lower, budgets.allowed, lambda used: kubelet.has_room(used, devices)
        )

    def with_gangs(self, pod: WatchedPod, node: NodeName, uids: Collection[PodUid]) -> tuple[PodUid, ...]:
        """Return these pods of a node, and those of their gangs there that a pod may evict."""
        more = [
            other.uid
            for others in self._by_gang(node)
            if any(other.uid in uids for other in others)
            for other in others
            if other.uid not in uids and other.scheduling.priority < pod.scheduling.priority
        ]
        return (*uids, *more)

    def _by_gang(self, node: NodeName, gone: Collection[PodUid] = ()) -> Iterable[Sequence[WatchedPod]]:
        """Return the other pods of a node that hold cards; those of one gang together, which wait for each other."""
        found: dict[object, list[WatchedPod]] = {}
        for other in self._cluster.objects.pods_on(node).values():
            if other.uid not in gone and bound_usage.granted(other):
                found.setdefault(gang_members.key_of(other) or other.uid, []).append(other)
        return found.values()

    def leaving(self, node: NodeName) -> list[PodUid]:
        """Return the UIDs of the pods of a node that hold cards and are being deleted."""
        return [pod.uid for pod in self._cluster.objects.pods_on(node).values() if pod.scheduling.is_terminating]

    def _leaving(self, state: NodeState, uids: Collection[PodUid]) -> list[EvictionCandidate]:
        return [
            _candidate(pod, state, NO_BUDGETS)
            for pod in self._cluster.objects.pods_on(state.name).values()
            if pod.scheduling.is_terminating or pod.uid in uids
        ]

    def _reserved(
        self, state: NodeState, leaving: Iterable[EvictionCandidate], nominated: Iterable[WatchedPod]
    ) -> NodeState:
        """Add what nominated pods will take once the leaving pods have left."""
        after = preempt.without(state, leaving)
        for pod in nominated:
            request = pod.parsed.request
            if request is None:
                continue
            taken = preempt.usage_if_placed(request, after, self._defaults.gpu_policy_for(request.options))
            if taken is not None:
                after, state = preempt.with_usage(after, taken), preempt.with_usage(state, taken)
        return state


def _candidate(pod: WatchedPod, state: NodeState, budgets: Budgets) -> EvictionCandidate:
    held, request = bound_usage.granted(pod), pod.parsed.request
    return EvictionCandidate(
        uid=pod.uid,
        priority=pod.scheduling.priority,
        started=pod.scheduling.started,
        usage=usage.of_pod(held[1], held[0], state.slice_mib, state.card_slices) if held else {},
        devices=request.devices(state.slice_mib) if request else {},
        budgets=budgets.of(pod),
    )
