"""`vgpu.placement.simulation.simulate` on the index: a pod among 5,000 nodes takes milliseconds."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Final

from extender.admin.worker.fleet import Fleet
from extender.index import ask
from extender.index.choice import JudgedNodes, NodeChoice
from vgpu.domain.asks.policy import PackingPolicy
from vgpu.domain.cards.reasons import Reason
from vgpu.domain.grants.assignment import Assignment
from vgpu.domain.identifiers import NodeName
from vgpu.placement import explain
from vgpu.placement.choose import NodeRefusal
from vgpu.placement.explain import NearestFit
from vgpu.placement.gang import Shortfall
from vgpu.placement.gang_attempt import MemberPlace
from vgpu.placement.policies import DefaultPolicies
from vgpu.placement.question import Question
from vgpu.placement.simulation import gangs, neighbours, simulate
from vgpu.placement.simulation.gangs import Together
from vgpu.placement.simulation.neighbours import Neighbourhood, Tenants
from vgpu.placement.simulation.simulate import Landing, Wanted

KEPT: Final = (Reason.CARD_RESERVED, Reason.CARD_KEPT_FOR_GANG)


class FleetSimulation:
    """Places pods on a fleet, which changes."""

    def __init__(self, fleet: Fleet, defaults: DefaultPolicies) -> None:
        self._fleet = fleet
        self._defaults = defaults
        self._refused: dict[Wanted, Landing] = {}  # as long as nothing changes

    def land(
        self, pods: Sequence[Wanted], pause: Callable[[], None], tenants: Tenants = simulate.NO_TENANTS
    ) -> list[Landing]:
        """Return where each pod is placed beside those before it; `pause` is called before each, and may raise.

        `tenants` are the pods on cards, which affinity looks at.
        """
        return simulate.land(pods, _PacedTrial(self, pause), Neighbourhood(tenants, self._rack_of))

    def _rack_of(self, name: NodeName) -> str:
        return self._fleet.views[name].rack

    def put(self, pod: Wanted, landing: Landing) -> None:
        """Place a pod."""
        if landing.assignment is not None:
            view = self._fleet.views[landing.node]
            self._fleet.put(view.with_pod(pod.request, landing.assignment, pod.host))
            self._refused.clear()

    def plan(self, group: Together, pods: Sequence[Wanted], pause: Callable[[], None]) -> list[MemberPlace] | Shortfall:
        """Return where the pods of a gang would be placed together."""
        kinds = dict.fromkeys(pods[position] for position in group.first)
        best = dict.fromkeys(name for pod in kinds for name in self._best(pod, group.size))
        views = [self._fleet.left(pods[group.first[0]], name) for name in best]
        members = [simulate.member_of(position, pods[position], views) for position in group.first]
        return gangs.plan(group, members, views, self._defaults, pause)

    def _best(self, pod: Wanted, count: int) -> list[NodeName]:
        """Return the nodes that are best for a pod, as many as can be best for one of its equals; see `gang`."""
        choice, policy = self._fleet.choice(self._defaults.models), self._defaults.node_policy_for(pod.request.options)
        judged, question = self._judged(pod, choice), self._question(pod)
        found = choice.ordered(judged, policy, question)[:count]
        if policy is PackingPolicy.TOPOLOGY:
            found += choice.ordered(judged, PackingPolicy.SPREAD, question)[:count]
        return found

    def judge(self, pod: Wanted) -> Landing:
        """Return where a pod would be placed now."""
        if pod not in self._refused:
            landing = self._judge(pod)
            if landing.assignment is not None:
                return landing
            self._refused[pod] = landing
        return self._refused[pod]

    def _judge(self, pod: Wanted) -> Landing:
        choice = self._fleet.choice(self._defaults.models)
        judged = self._judged(pod, choice)
        if not len(judged.fitting):
            return Landing(counts=judged.counts, nearest=self._nearest(pod, choice))
        policy = self._defaults.node_policy_for(pod.request.options)
        taken, best = self._preferred(pod, judged, choice)
        node = choice.best(best, policy, self._question(taken))
        placed = self._place(taken, node)
        assert isinstance(placed, Assignment)  # noqa: S101 - the index gives the answers of the exact rule
        return Landing(node, placed, judged.counts, fitting=len(judged.fitting))

    def _preferred(self, pod: Wanted, judged: JudgedNodes, choice: NodeChoice) -> tuple[Wanted, JudgedNodes]:
        """Return the nodes that the pod prefers by racks and by pods on cards, with what it asks for there."""
        policy = pod.request.options.rack_policy
        if policy is not None and pod.used_racks:
            named = neighbours.best_racks(policy, pod.used_racks, choice.fitting(judged), self._rack_of)
            judged = choice.only(judged, set(named))
        if pod.preferred is not None:
            liking = replace(pod, request=pod.preferred)
            liked = choice.only(self._judged(liking, choice), set(choice.fitting(judged)))
            if len(liked.fitting):
                return liking, liked
        return pod, judged

    def _judged(self, pod: Wanted, choice: NodeChoice) -> JudgedNodes:
        uuids = pod.request.options.selector.named_uuids
        asks = [ask.of(pod.request, chooser, self._fleet.slice_mib) for chooser in pod.request.choosers]
        exact, reserved = self._fleet.nodes_with(uuids), self._fleet.kept_from(pod)
        barred = self._fleet.refused_by(pod.rules)
        return choice.judge(asks, pod.host, exact, barred, lambda name: self._reason(pod, name), reserved)

    def _question(self, pod: Wanted) -> Question:
        return self._defaults.question(pod.request, self._fleet.slice_mib, pod.host)

    def _nearest(self, pod: Wanted, choice: NodeChoice) -> NearestFit | None:
        """Compare the few best nodes exactly; all of them where the pod names UUIDs, which the index does not know."""
        views, largest = self._fleet.views, explain.largest(pod.request)
        named: Iterable[NodeName] = views
        selector = pod.request.options.selector
        if not selector.named_uuids and selector.beside is None:
            asked = ask.of(pod.request, largest, self._fleet.slice_mib)
            own = replace(asked, cores=pod.request.counted_cores(largest), card_mib=largest.memory_mib)
            barred = {**self._fleet.refused_by(pod.rules), **self._kept(pod)}
            named = [*choice.nearest(own, pod.host, barred), *choice.wide()]
        return explain.nearest(pod.request, (views[name].for_pod(pod.host, pod.rules) for name in named))

    def _kept(self, pod: Wanted) -> dict[NodeName, Reason]:
        """Return the nodes that lack nothing for a pod, but room on them is kept free for others."""
        judged = ((name, self._reason(pod, name)) for name in self._fleet.kept_from(pod))
        return {name: reason for name, reason in judged if reason in KEPT}

    def _reason(self, pod: Wanted, node: NodeName) -> Reason | None:
        placed = self._place(pod, node)
        return None if isinstance(placed, Assignment) else placed.reason

    def _place(self, pod: Wanted, node: NodeName) -> Assignment | NodeRefusal:
        return self._fleet.place(pod, node, self._defaults.gpu_policy_for(pod.request.options))


class _PacedTrial:
    """A simulation with a pause before each pod."""

    def __init__(self, simulation: FleetSimulation, pause: Callable[[], None]) -> None:
        self._simulation = simulation
        self._pause = pause

    def judge(self, pod: Wanted) -> Landing:
        self._pause()
        return self._simulation.judge(pod)

    def put(self, pod: Wanted, landing: Landing) -> None:
        self._simulation.put(pod, landing)

    def plan(self, group: Together, pods: Sequence[Wanted]) -> list[MemberPlace] | Shortfall:
        return self._simulation.plan(group, pods, self._pause)
