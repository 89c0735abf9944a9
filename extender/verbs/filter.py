"""Filter: which nodes can take a pod, and why the others cannot. A pure question; it reserves nothing.

Members of gangs are the one exception: `gangs` plans a gang once, and reserves its cards (ADR 75).

The nodes of a call are judged together on the index. Nodes that the index leaves undecided are placed one by one.
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final

from extender.gangs.member_filter import MemberFilter
from extender.index import ask
from extender.index.answer import IndexAnswer
from extender.index.judge import NodeJudge
from extender.protocol.wire import FullNode
from extender.state.cluster import Cluster
from extender.state.objects import WatchedPod
from extender.state.room import ClusterRoom
from extender.verbs import placement_cache, templates
from extender.verbs.placement_cache import PlacementCache
from extender.verbs.verdict import FilterVerdict, Placement
from vgpu.domain.asks.request import PodRequest
from vgpu.domain.cards.reasons import Reason
from vgpu.domain.cards.share import NodeState
from vgpu.domain.grants.assignment import Assignment
from vgpu.domain.identifiers import NodeName
from vgpu.placement import choose
from vgpu.placement.choose import NodeRefusal
from vgpu.placement.policies import DefaultPolicies

SLICE_S: Final = 0.02  # for which one call holds the event loop
BUDGET_S: Final = 2.0  # well below kube-scheduler's httpTimeout of 5 s, in which it schedules no other pod
NODES_PER_CLOCK_READ: Final = 4  # that are placed exactly: one takes 5 ms at most, for a pod of 32 containers


@dataclass(frozen=True, slots=True)
class FilteredPod:
    """A pod, with what one call decides once for all nodes.

    Attributes:
        pod: the pod.
        request: what it asks for now, with the cards that affinity allows and rules out; None where it asks for no GPU.
        refusal: why no node can take the pod, whatever the node; None where a node may.
    """

    pod: WatchedPod
    request: PodRequest | None
    refusal: Reason | None


class Filter:
    """Answers from the cluster's state now, with the cluster's default policies.

    Without `gangs` members of gangs are judged as other pods are.
    """

    def __init__(
        self,
        cluster: Cluster,
        defaults: DefaultPolicies,
        cached_requests: int = placement_cache.MAX_REQUESTS,
        gangs: MemberFilter | None = None,
    ) -> None:
        self._cluster = cluster
        self._gangs = gangs
        self._defaults = defaults
        self._cache = PlacementCache(cached_requests)
        self._room = ClusterRoom(cluster, defaults)
        self._judge = NodeJudge(cluster.rows.index)

    def nodes(self, pod: WatchedPod, names: Sequence[NodeName]) -> FilterVerdict:
        """Return the verdict on every node named, with the details; each node is placed exactly."""
        verdict = FilterVerdict()
        placement_on = self.placement(pod)
        for name in names:
            verdict.add(name, placement_on(name))
        return verdict

    async def judge(
        self,
        pod: WatchedPod,
        names: Sequence[NodeName],
        pause: Callable[[float], Awaitable[None]],
        full: Mapping[NodeName, FullNode] | None = None,
    ) -> IndexAnswer:
        """Return the judgement of every node named, in slices of time with a pause after each.

        A node that no watch has shown is judged from its labels and amounts in `full`: some callers send whole nodes.

        Other calls are answered in the pauses. Nodes that 2 s do not suffice for are refused as NotJudged; the next
        attempt finds the others in the cache.
        """
        begun = self._cluster.now()
        await self._cluster.index(pause)
        asked = self._asked(pod)
        if self._gangs is not None and pod.parsed.gang is not None and not full and asked.refusal is None:
            planned = await self._gangs.answer(pod, names, self._judged_alone, pause)
            if planned is not None:
                return planned
            asked = self._asked(pod)  # the cluster may have changed in the pauses
        answer = self._judged(asked, names)
        undecided = answer.undecided
        if undecided:
            await self._decide(answer, undecided, self._placement(asked), begun, pause)
        if full and asked.request is not None and asked.refusal is None:
            self._judge_templates(answer, asked.request, full)
        return answer

    def _judge_templates(self, answer: IndexAnswer, request: PodRequest, full: Mapping[NodeName, FullNode]) -> None:
        known, request = self._cluster.objects, templates.in_labels(request)
        policy = self._defaults.gpu_policy_for(request.options)
        for position, name in enumerate(answer.names):
            if name not in known.nodes and name not in known.gpunodes:
                placement = templates.view(name, full[name], self._cluster.slice_mib).place(request, policy)
                answer.decide(position, placement.reason if isinstance(placement, NodeRefusal) else None)

    async def _decide(
        self,
        answer: IndexAnswer,
        undecided: Sequence[int],
        placement_on: Callable[[NodeName], Placement],
        begun: float,
        pause: Callable[[float], Awaitable[None]],
    ) -> None:
        """Place the pod on each node that is undecided."""
        resumed, in_time = self._cluster.now(), True
        for count, position in enumerate(undecided):
            if count % NODES_PER_CLOCK_READ == 0:
                now = self._cluster.now()
                in_time = now - begun <= BUDGET_S
                if now - resumed > SLICE_S:
                    await pause(0)
                    resumed = self._cluster.now()
            placement = placement_on(answer.names[position]) if in_time else NodeRefusal(Reason.NOT_JUDGED)
            answer.decide(position, placement.reason if isinstance(placement, NodeRefusal) else None)

    def _judged_alone(self, pod: WatchedPod, names: Sequence[NodeName]) -> IndexAnswer:
        """Return the judgement of a pod on the index as if it were in no gang."""
        return self._judged(self._asked(pod), names)

    def _judged(self, asked: FilteredPod, names: Sequence[NodeName]) -> IndexAnswer:
        request, pod = asked.request, asked.pod
        if asked.refusal is not None or request is None:
            return self._judge.alike(names, asked.refusal)
        slice_mib, is_narrowed = self._cluster.slice_mib, request is not pod.parsed.request
        asks = ask.of_pod(request, slice_mib) if is_narrowed else pod.asked.asks(slice_mib)
        self._cluster.rows.asked("filter", partial(self._judge.prepare, asks))
        return self._judge.judge(
            asks,
            names,
            self._cluster.now(),
            exact=self._cluster.owners.nodes_with(request.options.selector.named_uuids),
            reserved=[*self._cluster.objects.nominations.nodes(), *self._cluster.holds.against(pod)],
        )

    def _asked(self, pod: WatchedPod) -> FilteredPod:
        """Return a pod with what is decided for all nodes, as the cluster is now."""
        return FilteredPod(pod, self._cluster.neighbours.request(pod), self._refusal(pod))

    def _refusal(self, pod: WatchedPod) -> Reason | None:
        """Return why no node can take a pod, whatever the node."""
        if pod.parsed.problems:
            return Reason.INVALID_REQUEST
        if pod.parsed.request is not None and not pod.is_admitted(self._cluster.slice_mib):
            return Reason.NOT_ADMITTED
        return None

    def node(self, pod: WatchedPod, name: NodeName) -> Placement:
        """Return where a pod is placed on one node, or why it cannot be. A pod that asks for no GPU gets no grants."""
        return self.placement(pod)(name)

    def placement(self, pod: WatchedPod) -> Callable[[NodeName], Placement]:
        """Return the function that places a pod on a node; what is the same for all nodes is decided once, here."""
        return self._placement(self._asked(pod))

    def _placement(self, asked: FilteredPod) -> Callable[[NodeName], Placement]:
        pod, request, refusal = asked.pod, asked.request, asked.refusal
        if refusal is not None:
            return lambda _: NodeRefusal(refusal)
        if request is None:
            return lambda _: Assignment({})
        placement_on, preferred = self._placing(pod, request), self._cluster.neighbours.preferred(pod, request)
        return placement_on if preferred is None else _first(self._placing(pod, preferred), placement_on)

    def _placing(self, pod: WatchedPod, request: PodRequest) -> Callable[[NodeName], Placement]:
        policy = self._defaults.gpu_policy_for(request.options)
        placements = self._cache.for_request(request, policy)
        devices = request.devices(self._cluster.slice_mib)
        usable, kubelets, holds = self._cluster.states.usable, self._cluster.objects.nodes, self._cluster.holds

        def placement_on(name: NodeName) -> Placement:
            state = usable(name)
            if not isinstance(state, NodeState):
                return NodeRefusal(state)
            placement = placements.on(state)
            if isinstance(placement, Assignment) and not kubelets[name].has_room(state.devices, devices):
                return NodeRefusal(Reason.KUBELET_OFFERS_LESS)
            left = self._room.with_nominated(state, pod)
            if left is not state and isinstance(placement, Assignment):
                placement = choose.place(request, left, policy)
                if not isinstance(placement, Assignment):
                    return NodeRefusal(Reason.CARD_RESERVED)
            kept = holds.left(left, pod)
            if kept is not left and isinstance(placement, Assignment):
                placement = choose.place(request, kept, policy)
                return placement if isinstance(placement, Assignment) else NodeRefusal(Reason.CARD_KEPT_FOR_GANG)
            return placement

        return placement_on


def _first(
    preferred: Callable[[NodeName], Placement], placement_on: Callable[[NodeName], Placement]
) -> Callable[[NodeName], Placement]:
    """Return the function that places a pod as it prefers, and on a node where that fails, as it must be."""

    def either(name: NodeName) -> Placement:
        found = preferred(name)
        return found if isinstance(found, Assignment) else placement_on(name)

    return either
