"""The nodes that a gang's plan looks at: for each kind of member the best ones, as many as there are members."""

from collections.abc import Callable, Iterable, Iterator, Sequence

from extender.cluster import Cluster
from extender.index.answer import Answer
from extender.objects import Pod
from extender.room import Room
from vgpu.assignment import Assignment
from vgpu.placement.gang import Member
from vgpu.placement.policies import DefaultPolicies
from vgpu.placement.snapshot import NodeView
from vgpu.policy import PackingPolicy
from vgpu.share import NodeState

MORE_LOOKS = 256  # at nodes that must be placed exactly, beyond four for each member

Judged = Callable[[Pod, Sequence[str]], Answer]


class Candidates:
    """Answers from the cluster's state now, with the cluster's default policies."""

    def __init__(self, cluster: Cluster, room: Room, defaults: DefaultPolicies) -> None:
        self._cluster = cluster
        self._room = room
        self._defaults = defaults

    def views(self, pods: Sequence[Pod], members: Sequence[Member], judged: Judged) -> list[NodeView]:
        """Return the nodes to plan these members on; `members` are the pods in their order."""
        found: dict[str, NodeView] = {}
        kinds: dict[object, tuple[Pod, Member]] = {}
        for pod, member in zip(pods, members, strict=True):
            kinds.setdefault((member.request, member.host, member.nodes, member.avoided), (pod, member))
        for pod, member in kinds.values():
            for view in self._of(pod, member, len(members), judged):
                found[view.name] = view
        return list(found.values())

    def _of(self, pod: Pod, member: Member, count: int, judged: Judged) -> Iterator[NodeView]:
        names = [name for name in member.nodes or self._cluster.rows.index.known() if name not in member.avoided]
        open_names = judged(pod, names).open()
        question = self._cluster.demand.question(pod)
        for policy in self._orders(member):
            ordered = self._cluster.ranking.ordered(open_names, policy, question)
            yield from self._fitting(pod, member, ordered, count)

    def _orders(self, member: Member) -> Iterable[PackingPolicy]:
        """Return the orders in which nodes are taken; to keep a gang together, the emptiest nodes are taken too."""
        policy = self._defaults.node_policy_for(member.request.options)
        return (policy, PackingPolicy.SPREAD) if policy is PackingPolicy.TOPOLOGY else (policy,)

    def _fitting(self, pod: Pod, member: Member, ordered: Sequence[str], count: int) -> Iterator[NodeView]:
        policy = self._defaults.gpu_policy_for(member.request.options)
        for name in ordered[: 4 * count + MORE_LOOKS]:
            view = self._view(pod, name)
            if view is not None and isinstance(view.place(member.request, policy), Assignment):
                yield view
                count -= 1
            if not count:
                return

    def _view(self, pod: Pod, name: str) -> NodeView | None:
        state = self._cluster.usable_state(name)
        if not isinstance(state, NodeState):
            return None
        state = self._room.with_nominated(state, pod)
        view = NodeView(name, state, None, self._cluster.objects.nodes[name].allocatable)
        return view.for_pod(pod.host)
