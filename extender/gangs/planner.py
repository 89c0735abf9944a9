"""Answers filter for the members of gangs: the one node that is planned for each.

This is the one exception to a filter that reserves nothing (ADR 75). A plan is made only by the leader, only for a gang
whose members the watch has shown, and once: further calls are answered from it.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Final

from extender.gang_members import GangKey, key_of
from extender.gangs.book import GangBook
from extender.gangs.candidates import Candidates, Judged
from extender.gangs.group import Group
from extender.gangs.plan import Plan
from extender.index.answer import Answer
from extender.index.judge import Judge
from extender.leader import Leader
from extender.objects import Pod
from extender.reservations import Reservation
from vgpu.placement import gang
from vgpu.placement.gang import Member, Place, Shortfall
from vgpu.placement.policies import DefaultPolicies
from vgpu.reasons import Reason
from vgpu.request import PodRequest

MAX_BARRED: Final = 64  # nodes of a plan that kube-scheduler did not offer, after which the plan ends
REST_FACTOR: Final = 10.0  # after a gang found no room, in multiples of the time that it took to find out
WAKE_S: Final = 5.0


class GangPlanner:
    """Plans gangs, with the cluster's default policies. `timer` measures work, in seconds."""

    def __init__(
        self,
        book: GangBook,
        candidates: Candidates,
        defaults: DefaultPolicies,
        leader: Leader,
        timer: Callable[[], float],
    ) -> None:
        self._book = book
        self._cluster = book.cluster
        self._candidates = candidates
        self._defaults = defaults
        self._leader = leader
        self._timer = timer
        self._judge = Judge(book.cluster.rows.index)

    def answer(self, pod: Pod, names: Sequence[str], judged: Judged) -> Answer | None:
        """Return the answer for a member of a gang; None for other pods. The index must be up to date.

        `judged` judges a pod by itself on the nodes named.
        """
        key = key_of(pod)
        if key is None:
            return None
        known = self._cluster.objects.gangs.of(key).get(pod.uid)
        if known is None or self._leader.refusal():
            self._book.turn_away(pod.uid)
            return self._judge.alike(names, Reason.GANG_WAITS)
        record, found = self._book.record(key), self._book.group(key)
        if record.is_started or known.node:
            return None
        place = self._book.hindrance(key, found) or self._place(key, found, known, names, judged)
        if not isinstance(place, Place):
            self._book.turn_away(pod.uid)
            return self._judge.alike(names, place)
        answer = self._judge.alike(names, Reason.GANG_PLANNED_ELSEWHERE)
        answer.decide(list(names).index(place.node), None)
        return answer

    def _place(self, key: GangKey, found: Group, pod: Pod, names: Sequence[str], judged: Judged) -> Place | Reason:
        """Return a member's place, from the gang's plan where that is still good."""
        plan = self._book.record(key).plan
        place = plan.places.get(pod.uid) if plan else None
        if plan is not None and place is not None:
            if place.node not in names:
                plan.bar(pod.uid, place.node)
            elif self._book.holds(pod) and len(plan.places) >= found.needs:  # fewer where a planned member was deleted
                plan.answered.add(pod.uid)
                return place
            if pod.uid in plan.posted and self._cluster.reservation(pod.uid, place.node):
                return Reason.GANG_WAITS  # the outcome of its Binding is not known
        return self._planned(key, found, pod, names, judged)

    def _planned(self, key: GangKey, found: Group, pod: Pod, names: Sequence[str], judged: Judged) -> Place | Reason:
        """Make or change a gang's plan, so that it has a place for this member, and for all others."""
        record = self._book.record(key)
        if record.plan is None and self._book.times.clock() < record.full_until:
            self._wake_later(key)
            return Reason.GANG_INSUFFICIENT_CARDS
        begun, short = self._timer(), 0
        plan = self._book.open_plan(key)
        self._adopt(plan, found)
        for kept in self._kept(plan, found, pod):
            needed = _needed(found, pod, kept, plan)
            places = self._try(plan, needed, names, judged, kept) if needed else {}
            if not isinstance(places, Shortfall):
                self._wake(key, plan)
                return self._own(plan, pod, names)
            short = places.placed + len(kept)
        self._book.drop(key, "dropped")
        record.placed, record.version = short, self._cluster.rows.index.version
        record.full_until = self._book.times.clock() + REST_FACTOR * (self._timer() - begun)
        return Reason.GANG_INSUFFICIENT_CARDS

    def _try(
        self, plan: Plan, pods: Sequence[Pod], names: Sequence[str], judged: Judged, kept: set[str]
    ) -> dict[str, Place] | Shortfall:
        """Plan these members beside those that are kept, and reserve their cards; frees the places of all others."""
        if sum(map(len, plan.barred.values())) > MAX_BARRED:
            return Shortfall(0)
        self._book.release(plan, [uid for uid in plan.places if uid not in kept])
        self._cluster.rows.write()
        requests = {pod.uid: self._cluster.request(pod) for pod in pods}
        members = list(_members(pods, requests, frozenset(names), plan))
        views = self._candidates.views(pods, members, judged)
        places = gang.plan(members, views, self._cluster.demand.policies(self._defaults))
        if isinstance(places, Shortfall):
            return places
        for pod in pods:
            self._reserve(plan, pod, places[pod.uid])
        return places

    def _own(self, plan: Plan, pod: Pod, names: Sequence[str]) -> Place | Reason:
        """Return a member's place; it has none where enough other members are planned."""
        place = plan.places.get(pod.uid)
        if place is None or place.node not in names:
            return Reason.GANG_WAITS
        plan.answered.add(pod.uid)
        return place

    def _adopt(self, plan: Plan, found: Group) -> None:
        """Take over the places of members whose Bindings, posted under an earlier plan, may still be carried out."""
        for pod in found.waiting:
            for node in self._cluster.reserved_on(pod.uid) if pod.uid not in plan.places else ():
                reservation = self._cluster.reservation(pod.uid, node)
                if reservation is not None:
                    plan.places[pod.uid] = Place(node, reservation.assignment)
                    plan.posted.add(pod.uid)

    def _kept(self, plan: Plan, found: Group, pod: Pod) -> Iterator[set[str]]:
        """Yield the members that keep their places: those whose node kube-scheduler knows; then as few as possible.

        A member whose Binding was posted keeps its place until the outcome is known.
        """
        waiting = {each.uid for each in found.waiting}
        reserved = {
            uid for uid, place in plan.places.items() if self._cluster.reservation(uid, place.node) is not None
        } & waiting
        posted = reserved & plan.posted
        known = reserved & (plan.answered | plan.arrived) - {pod.uid} | posted
        yield known
        if known != posted:
            yield posted

    def _reserve(self, plan: Plan, pod: Pod, place: Place) -> None:
        request = pod.parsed.request
        if request is not None:
            plan.places[pod.uid] = place
            plan.posted.discard(pod.uid)
            self._cluster.reserve(Reservation(pod.uid, place.node, request, place.assignment, pod.version))

    def _wake(self, key: GangKey, plan: Plan) -> None:
        record = self._book.record(key)
        record.placed = None
        self._book.wake(key, f"plan {plan.number} has a node for each pod of the gang")

    def _wake_later(self, key: GangKey) -> None:
        """Have the gang woken where the cards have changed since they did not suffice."""
        record = self._book.record(key)
        if record.wake_at is None and record.version != self._cluster.rows.index.version:
            record.wake_at = self._book.times.clock() + WAKE_S


def _needed(found: Group, pod: Pod, kept: set[str], plan: Plan) -> list[Pod]:
    """Return the members to be planned, this one first; empty where those kept are enough."""
    others = [each for each in found.waiting if each.uid not in kept and each.uid != pod.uid]
    others.sort(key=lambda each: (each.uid not in plan.places, each.lifecycle.created_ms, each.uid))
    own = [] if pod.uid in kept else [pod]
    return [*own, *others][: max(0, found.needs - len(kept))]


def _members(
    pods: Sequence[Pod], requests: Mapping[str, PodRequest | None], names: frozenset[str], plan: Plan
) -> Iterator[Member]:
    """Yield the members. What kube-scheduler offers for one of them it is taken to offer for its equals.

    `requests` has what the members ask for, without the cards that other pods keep them off, by UID.
    """
    asker = pods[0]
    for pod in pods:
        request, barred = requests[pod.uid], plan.barred.get(pod.uid)
        if request is not None:
            is_equal = (request, pod.host) == (requests[asker.uid], asker.host)
            allowed = names if is_equal or pod is asker else None
            yield Member(pod.uid, request, pod.host, allowed, frozenset(barred or ()))
