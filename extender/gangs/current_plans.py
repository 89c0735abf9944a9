"""Opens, checks and ends the plans of gangs, with the reservations that a plan consists of."""

from collections.abc import Iterable
from typing import Final

from extender.gangs.gang_progress import GangProgress
from extender.gangs.known_gangs import KnownGangs
from extender.gangs.plan import GangPlan
from extender.gangs.refused_members import Waking
from extender.gangs.watched_gang import WatchedGang
from extender.state.gang_members import GangKey
from extender.state.objects import WatchedPod
from vgpu.domain.cards.share import NodeState
from vgpu.domain.identifiers import PodUid
from vgpu.pacing.back_off import BackOff

RETRIES: Final = BackOff(first_s=10.0, longest_s=300.0)
OUTCOMES: Final = ("started", "dropped", "expired", "evicted")


class CurrentPlans:
    """The plan that each gang has now. `outcomes` counts the plans that ended."""

    def __init__(self, gangs: KnownGangs, waker: Waking) -> None:
        self.outcomes = dict.fromkeys(OUTCOMES, 0)
        self._gangs = gangs
        self._cluster = gangs.cluster
        self._times = gangs.times
        self._waker = waker
        self._number = 0

    def open(self, key: GangKey) -> GangPlan:
        """Return a gang's plan; a new one where it has none."""
        progress = self._gangs.open(key)
        if progress.plan is None:
            self._number += 1
            progress.plan = GangPlan(self._number, self._times.clock() + self._gangs.deadline_s(key))
        return progress.plan

    def is_reserved(self, pod: WatchedPod) -> bool:
        """Whether a member's place is still reserved, and its cards can be used."""
        plan = self._gangs.plan_of(pod)
        place = plan.places.get(pod.uid) if plan else None
        if place is None or self._cluster.reservations.get(pod.uid, place.node) is None:
            return False
        state, cards = self._cluster.states.usable(place.node), place.assignment.gpus()
        if not isinstance(state, NodeState):
            return False
        known = {card.card.uuid: card.card for card in state.cards}
        return all(uuid in known and known[uuid].healthy and not known[uuid].cordoned for uuid in cards)

    def open_gate(self, key: GangKey) -> None:
        """Open the gate of a plan whose members have all arrived."""
        progress, found = self._gangs.get(key), self._gangs.watched(key)
        plan = progress.plan
        if plan is None or plan.gate.is_set() or found.size is None:
            return
        arrived = sum(pod.uid in plan.arrived for pod in found.waiting)
        if arrived >= found.needs:
            plan.gate.set()
            plan.deadline = self._times.clock() + self._gangs.deadline_s(key)

    def drop(self, key: GangKey, outcome: str) -> None:
        """End a gang's plan, and free the cards that are reserved for members without a Binding in flight."""
        progress = self._gangs.find(key)
        plan = progress.plan if progress else None
        if progress is None or plan is None:
            return
        progress.plan = None
        self.outcomes[outcome] += 1
        self.release(plan, (uid for uid in plan.places if uid not in plan.posted))

    def release(self, plan: GangPlan, uids: Iterable[PodUid]) -> None:
        """End the reservations of some members of a plan."""
        for uid in list(uids):
            node = plan.places[uid].node
            if self._cluster.reservations.get(uid, node) is not None:
                self._cluster.reservations.remove(uid, node)
                self._waker.changed(node)
            plan.forget(uid)

    def fail(self, key: GangKey, outcome: str, why: str) -> None:
        """End an attempt that missed its deadline; the next one is made after a back-off."""
        self.drop(key, outcome)
        progress = self._gangs.find(key)
        if progress is not None:
            progress.failures += 1
            pause = RETRIES.delay_s(progress.failures)
            progress.failure, progress.retry_at = why, self._times.clock() + pause

    def prune(self, key: GangKey, progress: GangProgress, found: WatchedGang) -> None:
        """Remove members that are bound or gone from the plan; a plan that lacks a member then ends."""
        plan = progress.plan
        if plan is None:
            return
        waiting = {pod.uid for pod in found.waiting}
        for uid in plan.places.keys() - waiting:
            if uid in self._gangs.members(key) and uid not in plan.posted:
                self.release(plan, [uid])
            else:
                plan.forget(uid)  # bound or deleted: its reservation ends with that
        if not found.is_complete or (plan.is_made and len(plan.places) < found.needs):
            self.drop(key, "dropped")
        else:
            self.open_gate(key)
