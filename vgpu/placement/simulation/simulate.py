"""Where pods would be placed, one after the other, changing nothing: the decisions of filter, prioritize and bind.

The pods of a gang are placed together, or none of them is (`gangs`).

CPU and memory of the nodes, taints, node selectors and node affinity count as kube-scheduler counts them; its other
rules (volumes, ports, affinity to pods, spreading) are not looked at.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final, Protocol

from vgpu.domain.asks import node_rules
from vgpu.domain.asks.host_request import NOTHING, HostRequest
from vgpu.domain.asks.node_rules import NodeRules
from vgpu.domain.asks.request import PodRequest
from vgpu.domain.cards.reasons import Reason
from vgpu.domain.grants.assignment import Assignment
from vgpu.domain.identifiers import NO_NODE, NodeName
from vgpu.placement import explain, rank, room
from vgpu.placement.explain import NearestFit
from vgpu.placement.gang import Shortfall
from vgpu.placement.gang_attempt import Member, MemberPlace
from vgpu.placement.policies import POLICIES, DefaultPolicies
from vgpu.placement.question import Question
from vgpu.placement.simulation import gangs, neighbours
from vgpu.placement.simulation.gangs import Ganged, GangLanding, Together
from vgpu.placement.simulation.neighbours import Neighbourhood, SimulatedIdentity, Tenants
from vgpu.placement.snapshot import NodeView

MAX_IN_REQUEST: Final = 1_000  # pods in one request to the admin REST
NO_TENANTS: Final[Tenants] = {}


@dataclass(frozen=True, slots=True)
class Wanted:
    """A pod to place.

    Attributes:
        request: what it asks of cards; where it was looked at beside other pods, with the cards that affinity allows.
        host: what it requests of its node's CPU and memory.
        gang: with which it starts.
        rules: which nodes it may be on.
        identity: by which other pods see it; None for a pod that sees no other and is seen by none.
        preferred: as `request`, with the cards that it prefers; None where it prefers none.
        used_racks: where the other pods of its job are.
        is_kept_out: whether room that is kept free for a gang is not for this pod.
        reserved: nodes that have room, but for other pods only, with the reason.
    """

    request: PodRequest
    host: HostRequest = NOTHING
    gang: Ganged | None = None
    rules: NodeRules = node_rules.ANY_NODE
    identity: SimulatedIdentity | None = None
    preferred: PodRequest | None = None
    used_racks: tuple[str, ...] = ()
    is_kept_out: bool = False
    reserved: tuple[tuple[NodeName, Reason], ...] = ()


@dataclass(frozen=True, slots=True)
class Landing:
    """Where one pod would be placed, or how many nodes refuse it by which reason, with the nearest fit.

    `fitting` counts the nodes that can take a pod that is judged by itself. `judged` is what a pod that is placed
    nowhere asked for, with the cards that affinity to the other pods allows; None where its gang decides.
    """

    node: NodeName = NO_NODE
    assignment: Assignment | None = None
    counts: Mapping[Reason, int] = field(default_factory=dict)
    nearest: NearestFit | None = None
    gang: GangLanding | None = None
    fitting: int = 0
    judged: PodRequest | None = None


@dataclass(frozen=True, slots=True)
class SimulationOutcome:
    """Where each pod would be placed, in their order, and the nodes with these pods."""

    landings: Sequence[Landing]
    views: Mapping[NodeName, NodeView]


def simulate(
    pods: Iterable[Wanted],
    views: Iterable[NodeView],
    defaults: DefaultPolicies,
    pause: Callable[[], None] = lambda: None,
    tenants: Tenants = NO_TENANTS,
) -> SimulationOutcome:
    """Place pods in their order, each beside those before it; `pause` is called between nodes, and may raise.

    Equal pods cost one look at each node, and one more at the node that the last of them took. `tenants` are the pods
    on cards, which affinity looks at.
    """
    trial = _PlainTrial({view.name: view for view in views}, defaults, pause)
    return SimulationOutcome(land(list(pods), trial, Neighbourhood(tenants, trial.rack_of)), trial.fleet)


class SimulationTrial(Protocol):
    """A cluster on which pods are tried."""

    def judge(self, pod: Wanted) -> Landing:
        """Return where a pod would be placed now."""

    def put(self, pod: Wanted, landing: Landing) -> None:
        """Place a pod there."""

    def plan(self, group: Together, pods: Sequence[Wanted]) -> list[MemberPlace] | Shortfall:
        """Return where the pods of a gang would be placed together; `pods` are all pods of the simulation."""


def land(pods: Sequence[Wanted], trial: SimulationTrial, around: Neighbourhood) -> list[Landing]:
    """Return where each pod is placed beside those before it."""
    found: dict[int, Landing] = {}
    for group in gangs.together([pod.gang for pod in pods]):
        found.update(_landed(group, pods, trial, around))
    return [found[position] for position in range(len(pods))]


def _landed(
    group: Together, pods: Sequence[Wanted], trial: SimulationTrial, around: Neighbourhood
) -> Iterator[tuple[int, Landing]]:
    places = trial.plan(group, _beside(group, pods, around)) if group.gang else None
    if isinstance(places, Shortfall):
        missed = _missed(group, places.placed, trial.judge(_seen(pods[group.first[0]], around)))
        yield from ((position, missed) for position in (*group.first, *group.more))
        return
    alone = group.more if places is not None else group.first
    for position, place in zip(group.first, places or (), strict=False):
        landing = Landing(place.node, place.assignment, gang=group.landing(group.size))
        _put(pods[position], landing, trial, around)
        yield position, landing
    for position in alone:
        seen = _seen(pods[position], around)
        landing = trial.judge(seen)
        _put(pods[position], landing, trial, around)
        yield position, landing if landing.assignment is not None else replace(landing, judged=seen.request)


def _beside(group: Together, pods: Sequence[Wanted], around: Neighbourhood) -> list[Wanted]:
    """Return the pods of the simulation; those that start together as they are beside the pods that are there."""
    first = set(group.first)
    return [_seen(pod, around) if position in first else pod for position, pod in enumerate(pods)]


def _seen(pod: Wanted, around: Neighbourhood) -> Wanted:
    if pod.identity is None:
        return pod
    seen = around.seen(pod.request, pod.identity)
    return replace(pod, request=seen.request, preferred=seen.preferred, used_racks=seen.used_racks)


def _put(pod: Wanted, landing: Landing, trial: SimulationTrial, around: Neighbourhood) -> None:
    if landing.assignment is not None:
        trial.put(pod, landing)
        around.put(pod.request, pod.identity, landing.node, landing.assignment)


def _missed(group: Together, fit: int, alone: Landing) -> Landing:
    """Return why a gang is not placed; `alone` is where a pod of it would be placed without the others."""
    if group.is_complete and alone.assignment is None:
        return replace(alone, gang=group.landing(fit))
    reason = Reason.GANG_INSUFFICIENT_CARDS if group.is_complete else Reason.GANG_INCOMPLETE
    return Landing(counts={reason: 1}, gang=group.landing(fit))


class _PlainTrial:
    """Nodes that are judged one by one."""

    def __init__(self, fleet: dict[NodeName, NodeView], defaults: DefaultPolicies, pause: Callable[[], None]) -> None:
        self.fleet = fleet
        self._defaults = defaults
        self._pause = pause
        self._known: dict[Wanted, _JudgedKind] = {}

    def rack_of(self, name: NodeName) -> str:
        return self.fleet[name].rack

    def judge(self, pod: Wanted) -> Landing:
        judged = self._judged(pod)
        if not judged.fitting:
            usable = (view.for_pod(pod.host, pod.rules) for view in self.fleet.values())
            return Landing(counts=judged.counts, nearest=explain.nearest(pod.request, usable))
        options = pod.request.options
        best = set(neighbours.best_racks(options.rack_policy, pod.used_racks, judged.fitting, self.rack_of))
        fits = {name: fit for name, fit in judged.fitting.items() if name in best}
        if pod.preferred is not None:
            liked = self._judged(replace(pod, request=pod.preferred)).fitting
            fits = {name: liked[name] for name in fits if name in liked} or fits
        tolerance = POLICIES[self._defaults.node_policy_for(options)].tolerance(self._defaults.demand.weights)
        node = rank.first({name: fit.cost for name, fit in fits.items()}, tolerance)
        return Landing(node, fits[node].assignment, judged.counts, fitting=len(judged.fitting))

    def _judged(self, pod: Wanted) -> "_JudgedFleet":
        return self._known.setdefault(pod, _JudgedKind(pod, self._defaults)).judge(self.fleet, self._pause)

    def put(self, pod: Wanted, landing: Landing) -> None:
        if landing.assignment is not None:
            self.fleet[landing.node] = self.fleet[landing.node].with_pod(pod.request, landing.assignment, pod.host)

    def plan(self, group: Together, pods: Sequence[Wanted]) -> list[MemberPlace] | Shortfall:
        members = [member_of(position, pods[position], self.fleet.values()) for position in group.first]
        return gangs.plan(group, members, self.fleet.values(), self._defaults, self._pause)


def member_of(position: int, pod: Wanted, views: Iterable[NodeView]) -> Member:
    """Return a pod of a gang as the plan takes it."""
    return gangs.member(position, pod.request, pod.host, pod.rules, views)


@dataclass(frozen=True, slots=True)
class _NodeFit:
    """Where a pod is placed on a node, and what that costs by the policy of nodes."""

    assignment: Assignment
    cost: int


@dataclass(frozen=True, slots=True)
class _JudgedFleet:
    fitting: Mapping[NodeName, _NodeFit]
    counts: Mapping[Reason, int]


class _JudgedKind:
    """One kind of pod on each node, each judgement valid for the very view that it was computed from."""

    def __init__(self, pod: Wanted, defaults: DefaultPolicies) -> None:
        self._pod = pod
        self._defaults = defaults
        self._gpu_policy = defaults.gpu_policy_for(pod.request.options)
        self._policy = POLICIES[defaults.node_policy_for(pod.request.options)]
        self._seen: dict[NodeName, tuple[NodeView, _NodeFit | Reason]] = {}

    def judge(self, fleet: Mapping[NodeName, NodeView], pause: Callable[[], None]) -> _JudgedFleet:
        fitting: dict[NodeName, _NodeFit] = {}
        counts: dict[Reason, int] = {}
        for view in fleet.values():
            outcome = self._on(view, pause)
            if isinstance(outcome, _NodeFit):
                fitting[view.name] = outcome
            else:
                counts[outcome] = counts.get(outcome, 0) + 1
        return _JudgedFleet(fitting, counts)

    def _on(self, view: NodeView, pause: Callable[[], None]) -> _NodeFit | Reason:
        known = self._seen.get(view.name)
        if known is None or known[0] is not view:
            known = self._seen[view.name] = view, self._judge(view)
            pause()
        return known[1]

    def _judge(self, view: NodeView) -> _NodeFit | Reason:
        refused = self._pod.rules.refusal(view.name, view.marks)
        if refused is not None:
            return refused.reason
        placed = view.place(self._pod.request, self._gpu_policy, self._pod.host)
        if not isinstance(placed, Assignment):
            return placed.reason
        question = self._question(view)
        return _NodeFit(placed, self._policy.cost(view.state, room.room_of(view.state, question.models), question))

    def _question(self, view: NodeView) -> Question:
        return self._defaults.question(self._pod.request, view.state.slice_mib, self._pod.host)
