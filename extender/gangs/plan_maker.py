"""Makes and changes the plan of a gang, in slices of time.

Nodes may change in the pauses. So places are reserved only on nodes that are as they were when they were looked at, and
the members of the other nodes are planned again beside them. The last round has no pauses.
"""

from collections.abc import Callable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import Final

from extender.gangs import members_to_plan
from extender.gangs.candidate_nodes import CandidateNodes, Judged, NodeSearch
from extender.gangs.plan import GangPlan
from extender.gangs.time_slices import Pause, in_slices
from extender.gangs.tracker import GangTracker
from extender.gangs.watched_gang import WatchedGang
from extender.lead.leader import Leader
from extender.state.gang_members import GangKey
from extender.state.objects import WatchedPod
from extender.state.reservations import Reservation
from vgpu.domain.asks.request import PodRequest
from vgpu.domain.cards.reasons import Reason
from vgpu.domain.identifiers import NodeName, PodUid
from vgpu.placement import gang
from vgpu.placement.gang import Shortfall
from vgpu.placement.gang_attempt import MemberPlace, Steps
from vgpu.placement.policies import DefaultPolicies

MAX_BARRED: Final = 64  # nodes of a plan that kube-scheduler did not offer, after which the plan ends
REST_FACTOR: Final = 10.0  # after a gang found no room, in multiples of the time that it took to find out
WAKE_S: Final = 5.0
ROUNDS: Final = 8


@dataclass(frozen=True, slots=True)
class MemberCall:
    """A call of filter for a member of a gang: the nodes that kube-scheduler offers, and how to judge a pod on them."""

    key: GangKey
    uid: PodUid
    names: Sequence[NodeName]
    judged: Judged
    pause: Pause


class PlanMaker:
    """Plans one gang at a time, with the cluster's default policies. `timer` measures work, in seconds."""

    def __init__(
        self,
        tracker: GangTracker,
        candidates: NodeSearch,
        defaults: DefaultPolicies,
        leader: Leader,
        timer: Callable[[], float],
    ) -> None:
        self._tracker = tracker
        self._gangs = tracker.known
        self._plans = tracker.plans
        self._cluster = tracker.cluster
        self._candidates = candidates
        self._defaults = defaults
        self._leader = leader
        self._timer = timer

    async def plan(self, asked: MemberCall) -> MemberPlace | Reason:
        """Make or change a gang's plan, so that it has a place for this member, and for all others."""
        progress = self._gangs.get(asked.key)
        if progress.plan is None and self._tracker.times.clock() < progress.full_until:
            self._wake_later(asked.key)
            return Reason.GANG_INSUFFICIENT_CARDS
        begun, most = self._timer(), 0
        plan = self._plans.open(asked.key)
        self._adopt(plan, self._gangs.watched(asked.key))
        for kept in members_to_plan.kept(asked.uid, plan, lambda: self._reserved(asked.key, plan)):
            short = await self._try(asked, plan, kept)
            if not self._goes_on(asked, plan):
                return self._ended(asked.key, plan)
            if short is None:
                return self._own(asked, plan)
            most = short.placed
        self._plans.drop(asked.key, "dropped")
        progress.wait(self._tracker.times.clock())
        progress.offered |= frozenset(asked.names)
        progress.placed, progress.version = most, self._cluster.rows.index.version
        progress.full_until = self._tracker.times.clock() + REST_FACTOR * (self._timer() - begun)
        return Reason.GANG_INSUFFICIENT_CARDS

    async def _try(self, asked: MemberCall, plan: GangPlan, kept: AbstractSet[PodUid]) -> Shortfall | None:
        """Plan the members that are not kept, and reserve their cards. Return a Shortfall where there is no room."""
        if sum(map(len, plan.barred.values())) > MAX_BARRED:
            return Shortfall(0)
        before, plan.is_made = plan.places.keys() - kept, False
        self._plans.release(plan, before)
        for number in range(ROUNDS):
            await self._cluster.index(asked.pause)
            if not self._goes_on(asked, plan):
                return None
            pods = members_to_plan.unplaced(self._gangs.watched(asked.key), plan, asked.uid, before)
            if not pods:
                return None
            clock = self._timer if number < ROUNDS - 1 else float
            nodes, places = await in_slices(self._steps(asked, plan, pods), clock, asked.pause)
            if isinstance(places, Shortfall):
                return Shortfall(places.placed + len(plan.places))
            if self._goes_on(asked, plan):
                self._reserve(asked.key, plan, places, nodes)
        return None

    def _steps(
        self, asked: MemberCall, plan: GangPlan, pods: Sequence[WatchedPod]
    ) -> Steps[tuple[CandidateNodes, Mapping[PodUid, MemberPlace] | Shortfall]]:
        """Plan these members on the nodes as they are."""
        asker = self._gangs.members(asked.key)[asked.uid]
        requests = yield from self._requests([asker, *pods])
        members = list(members_to_plan.members(asker, pods, requests, frozenset(asked.names), plan))
        nodes = yield from self._candidates.nodes({pod.uid: pod for pod in pods}, members, asked.judged)
        places = yield from gang.steps(members, nodes.views.values(), self._cluster.demand.policies(self._defaults))
        return nodes, places

    def _requests(self, pods: Sequence[WatchedPod]) -> Steps[dict[PodUid, PodRequest | None]]:
        found = {}
        for pod in pods:
            found[pod.uid] = self._cluster.neighbours.request(pod)
            yield
        return found

    def _reserve(
        self, key: GangKey, plan: GangPlan, places: Mapping[PodUid, MemberPlace], nodes: CandidateNodes
    ) -> None:
        """Reserve the places on nodes that have not changed since they were looked at."""
        waiting = {pod.uid: pod for pod in self._gangs.watched(key).waiting}
        unchanged = self._candidates.unchanged(nodes, (place.node for place in places.values()))
        for uid, place in places.items():
            pod = waiting.get(uid)
            request = pod.parsed.request if pod else None
            if pod is not None and request is not None and place.node in unchanged:
                plan.places[uid] = place
                plan.posted.discard(uid)
                self._cluster.reservations.put(Reservation(uid, place.node, request, place.assignment, pod.version))

    def _goes_on(self, asked: MemberCall, plan: GangPlan) -> bool:
        """Whether a plan has not ended in a pause, and the member that was asked about still waits."""
        is_planned = self._gangs.get(asked.key).plan is plan and not self._leader.refusal()
        return is_planned and any(pod.uid == asked.uid for pod in self._gangs.watched(asked.key).waiting)

    def _ended(self, key: GangKey, plan: GangPlan) -> Reason:
        """Free what was reserved for a plan that was not completed."""
        plan.is_made = len(plan.places) >= self._gangs.watched(key).needs
        if self._gangs.get(key).plan is plan and not plan.is_made:
            self._plans.drop(key, "dropped")
            self._tracker.refused.wake(key, f"plan {plan.number} was not completed")
        return Reason.GANG_WAITS

    def _own(self, asked: MemberCall, plan: GangPlan) -> MemberPlace | Reason:
        """Return a member's place; it has none where enough other members are planned."""
        progress = self._gangs.get(asked.key)
        progress.placed, plan.is_made = None, True
        progress.end_wait()
        self._tracker.refused.wake(asked.key, f"plan {plan.number} has a node for each pod of the gang")
        place = plan.places.get(asked.uid)
        if place is None or place.node not in asked.names:
            return Reason.GANG_WAITS
        plan.answered.add(asked.uid)
        return place

    def _adopt(self, plan: GangPlan, found: WatchedGang) -> None:
        """Take over the places of members whose Bindings, posted under an earlier plan, may still be carried out."""
        for pod in found.waiting:
            for node in self._cluster.reservations.nodes_of(pod.uid) if pod.uid not in plan.places else ():
                reservation = self._cluster.reservations.get(pod.uid, node)
                if reservation is not None:
                    plan.places[pod.uid] = MemberPlace(node, reservation.assignment)
                    plan.posted.add(pod.uid)

    def _reserved(self, key: GangKey, plan: GangPlan) -> set[PodUid]:
        waiting = {pod.uid for pod in self._gangs.watched(key).waiting}
        return {
            uid for uid in plan.places.keys() & waiting if self._cluster.reservations.get(uid, plan.places[uid].node)
        }

    def _wake_later(self, key: GangKey) -> None:
        """Have the gang woken where the cards have changed since they did not suffice."""
        progress = self._gangs.get(key)
        if progress.wake_at is None and progress.version != self._cluster.rows.index.version:
            progress.wake_at = self._tracker.times.clock() + WAKE_S
