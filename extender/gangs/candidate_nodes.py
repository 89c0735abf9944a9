"""The nodes that a gang's plan looks at: for each kind of member the best ones, as many as there are members."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from extender.index.answer import IndexAnswer
from extender.state.cluster import Cluster
from extender.state.objects import WatchedPod
from extender.state.room import ClusterRoom
from vgpu.domain.asks.policy import PackingPolicy
from vgpu.domain.cards.share import NodeState
from vgpu.domain.grants.assignment import Assignment
from vgpu.domain.identifiers import NodeName, PodUid
from vgpu.placement.gang_attempt import Member, Steps
from vgpu.placement.policies import DefaultPolicies
from vgpu.placement.snapshot import NodeView

MORE_LOOKS: Final = 256  # at nodes that must be placed exactly, beyond four for each member

Judged = Callable[[WatchedPod, Sequence[NodeName]], IndexAnswer]


@dataclass(frozen=True, slots=True)
class CandidateNodes:
    """The nodes to plan on, as the members see them, and the states that these views were made from."""

    views: dict[NodeName, NodeView] = field(default_factory=dict)
    states: dict[NodeName, NodeState] = field(default_factory=dict)


class NodeSearch:
    """Answers from the cluster's state now, with the cluster's default policies."""

    def __init__(self, cluster: Cluster, room: ClusterRoom, defaults: DefaultPolicies) -> None:
        self._cluster = cluster
        self._room = room
        self._defaults = defaults

    def nodes(
        self, pods: Mapping[PodUid, WatchedPod], members: Sequence[Member], judged: Judged
    ) -> Steps[CandidateNodes]:
        """Return the nodes to plan these members on, in steps of less than a millisecond; `pods` are theirs by UID.

        Other work may change the cluster between two steps: each state is that of its own step.
        """
        found = CandidateNodes()
        kinds: dict[object, Member] = {}
        for member in members:
            kinds.setdefault((member.request, member.host, member.nodes, member.avoided), member)
        for member in kinds.values():
            yield from self._of(pods[member.uid], member, len(members), judged, found)
        return found

    def unchanged(self, nodes: CandidateNodes, names: Iterable[NodeName]) -> set[NodeName]:
        """Return which of these nodes are as they were when they were looked at."""
        nominated = set(self._cluster.objects.nominations.nodes())
        was_nominated = {name for name, view in nodes.views.items() if view.state is not nodes.states[name]}
        alike = (name for name in set(names) if (name in nominated) <= (name in was_nominated))
        return {name for name in alike if self._cluster.states.usable(name) is nodes.states[name]}

    def _of(self, pod: WatchedPod, member: Member, count: int, judged: Judged, found: CandidateNodes) -> Steps[None]:
        self._cluster.rows.write()
        names = [name for name in member.nodes or self._cluster.rows.index.known() if name not in member.avoided]
        answer = judged(pod, names)
        open_names, undecided = answer.open(), {names[position] for position in answer.undecided}
        question = self._cluster.demand.question(pod)
        orders = [self._cluster.ranking.ordered(open_names, policy, question) for policy in self._orders(member)]
        for ordered in orders:
            yield from self._fitting(pod, member, ordered[: 4 * count + MORE_LOOKS], undecided, count, found)

    def _orders(self, member: Member) -> Iterable[PackingPolicy]:
        """Return the orders in which nodes are taken; to keep a gang together, the emptiest nodes are taken too."""
        policy = self._defaults.node_policy_for(member.request.options)
        return (policy, PackingPolicy.SPREAD) if policy is PackingPolicy.TOPOLOGY else (policy,)

    def _fitting(
        self,
        pod: WatchedPod,
        member: Member,
        ordered: Sequence[NodeName],
        undecided: set[NodeName],
        count: int,
        found: CandidateNodes,
    ) -> Steps[None]:
        """Take the first nodes that fit. The arrays have decided on all but those that are undecided."""
        for name in ordered:
            view = self._view(pod, name, found)
            if view is not None and self._fits(member, view, is_decided=name not in undecided):
                found.views[name] = view
                count -= 1
            if not count:
                return
            yield

    def _fits(self, member: Member, view: NodeView, *, is_decided: bool) -> bool:
        if is_decided:
            return view.blocked is None
        policy = self._defaults.gpu_policy_for(member.request.options)
        return isinstance(view.place(member.request, policy), Assignment)

    def _view(self, pod: WatchedPod, name: NodeName, found: CandidateNodes) -> NodeView | None:
        state = self._cluster.states.usable(name)
        if not isinstance(state, NodeState):
            return None
        found.states[name] = state
        state = self._cluster.holds.left(self._room.with_nominated(state, pod), pod)
        view = NodeView(name, state, None, self._cluster.objects.nodes[name].allocatable)
        return view.for_pod(pod.host)
