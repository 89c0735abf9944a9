"""Where pods would be placed, one after the other, changing nothing: the decisions of filter, prioritize and bind.

CPU and memory of the nodes count as kube-scheduler counts them; its other rules (taints, node selectors, affinity of
nodes) are not looked at.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from vgpu.assignment import Assignment
from vgpu.host_request import NOTHING, HostRequest
from vgpu.placement import explain, rank, room
from vgpu.placement.explain import NearestFit
from vgpu.placement.policies import POLICIES, DefaultPolicies
from vgpu.placement.question import Question
from vgpu.placement.snapshot import NodeView
from vgpu.reasons import Reason
from vgpu.request import PodRequest


@dataclass(frozen=True, slots=True)
class Wanted:
    """What a pod asks for: of cards, and of its node's CPU and memory."""

    request: PodRequest
    host: HostRequest = NOTHING


@dataclass(frozen=True, slots=True)
class Landing:
    """Where one pod would be placed, or how many nodes refuse it by which reason, with the nearest fit."""

    node: str = ""
    assignment: Assignment | None = None
    counts: Mapping[Reason, int] = field(default_factory=dict)
    nearest: NearestFit | None = None


@dataclass(frozen=True, slots=True)
class Outcome:
    """Where each pod would be placed, in their order, and the nodes with these pods."""

    landings: Sequence[Landing]
    views: Mapping[str, NodeView]


def simulate(
    pods: Iterable[Wanted],
    views: Iterable[NodeView],
    defaults: DefaultPolicies,
    pause: Callable[[], None] = lambda: None,
) -> Outcome:
    """Place pods in their order, each beside those before it; `pause` is called between nodes, and may raise.

    Equal pods cost one look at each node, and one more at the node that the last of them took.
    """
    fleet = {view.name: view for view in views}
    known: dict[Wanted, _Judged] = {}
    landings = []
    for pod in pods:
        judged = known.setdefault(pod, _Judged(pod, defaults))
        landing = judged.land(fleet, pause)
        landings.append(landing)
        if landing.assignment is not None:
            fleet[landing.node] = fleet[landing.node].with_pod(pod.request, landing.assignment, pod.host)
    return Outcome(landings, fleet)


@dataclass(frozen=True, slots=True)
class _Fit:
    """Where a pod is placed on a node, and what that costs by the policy of nodes."""

    assignment: Assignment
    cost: int


class _Judged:
    """One kind of pod on each node, each judgement valid for the very view that it was computed from."""

    def __init__(self, pod: Wanted, defaults: DefaultPolicies) -> None:
        self._pod = pod
        self._defaults = defaults
        self._gpu_policy = defaults.gpu_policy_for(pod.request.options)
        self._policy = POLICIES[defaults.node_policy_for(pod.request.options)]
        self._tolerance = self._policy.tolerance(defaults.demand.weights)
        self._seen: dict[str, tuple[NodeView, _Fit | Reason]] = {}

    def land(self, fleet: Mapping[str, NodeView], pause: Callable[[], None]) -> Landing:
        fitting: dict[str, _Fit] = {}
        counts: dict[Reason, int] = {}
        for view in fleet.values():
            outcome = self._on(view, pause)
            if isinstance(outcome, _Fit):
                fitting[view.name] = outcome
            else:
                counts[outcome] = counts.get(outcome, 0) + 1
        if not fitting:
            usable = (view.for_pod(self._pod.host) for view in fleet.values())
            return Landing(counts=counts, nearest=explain.nearest(self._pod.request, usable))
        best = rank.first({name: each.cost for name, each in fitting.items()}, self._tolerance)
        return Landing(best, fitting[best].assignment)

    def _on(self, view: NodeView, pause: Callable[[], None]) -> _Fit | Reason:
        known = self._seen.get(view.name)
        if known is None or known[0] is not view:
            known = self._seen[view.name] = view, self._judge(view)
            pause()
        return known[1]

    def _judge(self, view: NodeView) -> _Fit | Reason:
        placed = view.place(self._pod.request, self._gpu_policy, self._pod.host)
        if not isinstance(placed, Assignment):
            return placed.reason
        question = self._question(view)
        return _Fit(placed, self._policy.cost(view.state, room.room_of(view.state, question.models), question))

    def _question(self, view: NodeView) -> Question:
        return self._defaults.question(self._pod.request, view.state.slice_mib, self._pod.host)
