"""Where pods would be placed, one after the other, changing nothing: the decisions of filter, prioritize and bind."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from vgpu.assignment import Assignment
from vgpu.placement import explain, rank
from vgpu.placement.explain import NearestFit
from vgpu.placement.policies import DefaultPolicies
from vgpu.placement.snapshot import NodeView
from vgpu.reasons import Reason
from vgpu.request import PodRequest


@dataclass(frozen=True, slots=True)
class Landing:
    """Where one pod would be placed, or how many nodes refuse it by which reason, with the nearest fit."""

    node: str = ""
    assignment: Assignment | None = None
    counts: Mapping[Reason, int] = field(default_factory=dict)
    nearest: NearestFit | None = None


def simulate(
    requests: Sequence[PodRequest],
    views: Iterable[NodeView],
    defaults: DefaultPolicies,
    pause: Callable[[], None] = lambda: None,
) -> list[Landing]:
    """Place pods in their order, each beside those before it; `pause` is called between nodes, and may raise.

    Equal requests cost one look at each node, and one more at the node that the last of them took.
    """
    fleet = {view.name: view for view in views}
    known: dict[PodRequest, _Judged] = {}
    landings = []
    for request in requests:
        judged = known.setdefault(request, _Judged(request, defaults))
        landing = judged.land(fleet, pause)
        landings.append(landing)
        if landing.assignment is not None:
            fleet[landing.node] = fleet[landing.node].with_pod(request, landing.assignment)
    return landings


class _Judged:
    """One request's placements, each valid for the very view that it was computed from."""

    def __init__(self, request: PodRequest, defaults: DefaultPolicies) -> None:
        self._request = request
        self._defaults = defaults
        self._gpu_policy = defaults.gpu_policy_for(request.options)
        self._node_policy = defaults.node_policy_for(request.options)
        self._seen: dict[str, tuple[NodeView, Assignment | Reason]] = {}

    def land(self, fleet: Mapping[str, NodeView], pause: Callable[[], None]) -> Landing:
        fitting: dict[str, Assignment] = {}
        counts: dict[Reason, int] = {}
        for view in fleet.values():
            outcome = self._on(view, pause)
            if isinstance(outcome, Assignment):
                fitting[view.name] = outcome
            else:
                counts[outcome] = counts.get(outcome, 0) + 1
        if not fitting:
            return Landing(counts=counts, nearest=explain.nearest(self._request, fleet.values()))
        states = [fleet[name].state for name in fitting]
        question = self._defaults.question(self._request, states[0].slice_mib)
        best = rank.rank(states, self._node_policy, question)[0]
        return Landing(best, fitting[best])

    def _on(self, view: NodeView, pause: Callable[[], None]) -> Assignment | Reason:
        known = self._seen.get(view.name)
        if known is None or known[0] is not view:
            placed = view.place(self._request, self._gpu_policy)
            known = view, placed if isinstance(placed, Assignment) else placed.reason
            self._seen[view.name] = known
            pause()
        return known[1]
