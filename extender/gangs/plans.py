"""Opens, checks and ends the plans of gangs, with the reservations that a plan consists of."""

from collections.abc import Iterable
from typing import Final

from extender.gangs import back_off
from extender.gangs.group import WatchedGang
from extender.gangs.plan import GangPlan
from extender.gangs.record import GangRecord
from extender.gangs.records import Records
from extender.gangs.retries import Waking
from extender.state.gang_members import GangKey
from extender.state.objects import WatchedPod
from vgpu.domain.cards.share import NodeState

FIRST_BACK_OFF_S: Final = 10.0
LONGEST_BACK_OFF_S: Final = 300.0
OUTCOMES: Final = ("started", "dropped", "expired", "evicted")


class Plans:
    """The plans of all gangs. `outcomes` counts the plans that ended."""

    def __init__(self, records: Records, waker: Waking) -> None:
        self.outcomes = dict.fromkeys(OUTCOMES, 0)
        self._records = records
        self._cluster = records.cluster
        self._times = records.times
        self._waker = waker
        self._number = 0

    def open(self, key: GangKey) -> GangPlan:
        """Return a gang's plan; a new one where it has none."""
        record = self._records.open(key)
        if record.plan is None:
            self._number += 1
            record.plan = GangPlan(self._number, self._times.clock() + self._records.deadline_s(key))
        return record.plan

    def holds(self, pod: WatchedPod) -> bool:
        """Whether a member's place is still reserved, and its cards can be used."""
        plan = self._records.plan_of(pod)
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
        record, found = self._records.get(key), self._records.group(key)
        plan = record.plan
        if plan is None or plan.gate.is_set() or found.size is None:
            return
        arrived = sum(pod.uid in plan.arrived for pod in found.waiting)
        if arrived >= found.needs:
            plan.gate.set()
            plan.deadline = self._times.clock() + self._records.deadline_s(key)

    def drop(self, key: GangKey, outcome: str) -> None:
        """End a gang's plan, and free the cards that are reserved for members without a Binding in flight."""
        record = self._records.find(key)
        plan = record.plan if record else None
        if record is None or plan is None:
            return
        record.plan = None
        self.outcomes[outcome] += 1
        self.release(plan, (uid for uid in plan.places if uid not in plan.posted))

    def release(self, plan: GangPlan, uids: Iterable[str]) -> None:
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
        record = self._records.find(key)
        if record is not None:
            record.failures += 1
            pause = back_off.pause_s(FIRST_BACK_OFF_S, LONGEST_BACK_OFF_S, record.failures)
            record.failure, record.retry_at = why, self._times.clock() + pause

    def prune(self, key: GangKey, record: GangRecord, found: WatchedGang) -> None:
        """Remove members that are bound or gone from the plan; a plan that lacks a member then ends."""
        plan = record.plan
        if plan is None:
            return
        waiting = {pod.uid for pod in found.waiting}
        for uid in plan.places.keys() - waiting:
            if uid in self._records.members(key) and uid not in plan.posted:
                self.release(plan, [uid])
            else:
                plan.forget(uid)  # bound or deleted: its reservation ends with that
        if not found.is_complete or (plan.is_made and len(plan.places) < found.needs):
            self.drop(key, "dropped")
        else:
            self.open_gate(key)
