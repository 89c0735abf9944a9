"""Keeps what is known of each gang, and makes known what changes: which members are worth another attempt.

Everything follows from the pods that the watch shows, except plans, back-offs, and whether a gang has started. A
process that starts finds members that are bound: if the first of them was bound long ago, the gang has started, since
the leader before would have ended a part of a gang at its deadline.
"""

from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final, Protocol

from extender.cluster import Cluster
from extender.gang_members import GangKey, key_of
from extender.gangs import group, words
from extender.gangs.group import Group
from extender.gangs.plan import Plan
from extender.gangs.record import Record
from extender.objects import Pod
from extender.pod_groups import PodGroup, PodGroups
from vgpu.gang import GangSource
from vgpu.reasons import Reason
from vgpu.share import NodeState

CHANGE_OF_LEADER_S: Final = 120.0  # within which a new leader takes over, with a margin
FIRST_BACK_OFF_S: Final = 10.0
LONGEST_BACK_OFF_S: Final = 300.0
MAX_TURNED_AWAY: Final = 10_000
STATES: Final = ("waiting", "planned", "partial", "started")
OUTCOMES: Final = ("started", "dropped", "expired", "evicted")


class Waking(Protocol):
    """Has kube-scheduler try pods again."""

    def wake(self, uid: str, why: str) -> None:
        """Take a pod that is worth another attempt."""

    def changed(self, node: str) -> None:
        """Take a node that can take more than before."""


@dataclass(frozen=True, slots=True)
class Times:
    """The clocks, and how long a gang may be planned or bound in part.

    Attributes:
        clock: monotonic, in seconds.
        now_ms: the wall clock in Unix milliseconds.
        deadline_s: of a plan, and of a part that is bound.
    """

    clock: Callable[[], float]
    now_ms: Callable[[], int]
    deadline_s: float


class GangBook:
    """What is known of each gang that has members."""

    def __init__(self, cluster: Cluster, waker: Waking, times: Times) -> None:
        self.cluster = cluster
        self.times = times
        self.outcomes = dict.fromkeys(OUTCOMES, 0)
        self._waker = waker
        self._records: dict[GangKey, Record] = {}
        self.pod_groups: Mapping[GangSource, PodGroups] = {
            source: PodGroups(source, self.refresh) for source in (GangSource.COSCHEDULING, GangSource.KUBERNETES)
        }
        self._plans = 0
        self._turned_away: OrderedDict[str, None] = OrderedDict()
        cluster.objects.gangs.listen(self.refresh)

    def group(self, key: GangKey) -> Group:
        """Return what the watch shows of a gang now."""
        return group.of(key, self.cluster.objects.gangs.of(key), self._pod_group(key), self.cluster.slice_mib)

    def record(self, key: GangKey) -> Record:
        """Return what is remembered of a gang."""
        return self._records.get(key) or Record()

    def records(self, *, all_of_them: bool = False) -> Iterator[tuple[GangKey, Record]]:
        """Iterate over the gangs, as they are now, for which time matters, or over all of them."""
        return iter([(key, record) for key, record in self._records.items() if all_of_them or record.is_timed])

    def states(self) -> dict[str, int]:
        """Return how many gangs are in each state."""
        found = dict.fromkeys(STATES, 0)
        for record in self._records.values():
            found[record.state] += 1
        return found

    def hindrance(self, key: GangKey, found: Group) -> Reason | None:
        """Return why a gang that has not started must not be planned now."""
        if found.size is None:
            return Reason.GANG_SIZE_UNKNOWN
        if not found.is_complete:
            return Reason.GANG_INCOMPLETE
        return Reason.GANG_WAITS if self.times.clock() < self.record(key).retry_at else None

    def why(self, key: GangKey) -> tuple[Reason, str] | None:
        """Return why the waiting members of a gang wait; None where it has started, or has none."""
        found = self.group(key)
        return words.why(found, self.record(key), self.hindrance(key, found))

    def open_plan(self, key: GangKey) -> Plan:
        """Return a gang's plan; a new one where it has none."""
        record = self._records[key]
        if record.plan is None:
            self._plans += 1
            record.plan = Plan(self._plans, self.times.clock() + self.times.deadline_s)
        return record.plan

    def refresh(self, key: GangKey) -> None:
        """Take a change of a gang: of its pods, or of its PodGroup."""
        found = self.group(key)
        if not self.cluster.objects.gangs.of(key):
            self._forget(key)
            return
        record = self._records.setdefault(key, Record())
        self._take_bound(key, record, found)
        self._prune(key, record, found)
        is_new = found.is_complete and not record.was_complete
        record.was_complete = found.is_complete
        if is_new and not record.is_started and record.plan is None:
            self.wake(key, f"all {found.size} pods of the gang exist")

    def holds(self, pod: Pod) -> bool:
        """Whether a member's place is still reserved, and its cards can be used."""
        plan = self.plan_of(pod)
        place = plan.places.get(pod.uid) if plan else None
        if place is None or self.cluster.reservation(pod.uid, place.node) is None:
            return False
        state, cards = self.cluster.usable_state(place.node), place.assignment.gpus()
        if not isinstance(state, NodeState):
            return False
        known = {each.card.uuid: each.card for each in state.cards}
        return all(uuid in known and known[uuid].healthy and not known[uuid].cordoned for uuid in cards)

    def plan_of(self, pod: Pod) -> Plan | None:
        """Return the plan of a pod's gang."""
        key = key_of(pod)
        return self.record(key).plan if key is not None else None

    def open_gate(self, key: GangKey) -> None:
        """Open the gate of a plan whose members have all arrived."""
        record, found = self.record(key), self.group(key)
        plan = record.plan
        if plan is None or plan.gate.is_set() or found.size is None:
            return
        arrived = sum(pod.uid in plan.arrived for pod in found.waiting)
        if arrived >= found.needs:
            plan.gate.set()
            plan.deadline = self.times.clock() + self.times.deadline_s

    def drop(self, key: GangKey, outcome: str) -> None:
        """End a gang's plan, and free the cards that are reserved for members without a Binding in flight."""
        record = self._records.get(key)
        plan = record.plan if record else None
        if record is None or plan is None:
            return
        record.plan = None
        self.outcomes[outcome] += 1
        self.release(plan, (uid for uid in plan.places if uid not in plan.posted))

    def release(self, plan: Plan, uids: Iterable[str]) -> None:
        """End the reservations of some members of a plan."""
        for uid in list(uids):
            node = plan.places[uid].node
            if self.cluster.reservation(uid, node) is not None:
                self.cluster.release(uid, node)
                self._waker.changed(node)
            plan.forget(uid)

    def fail(self, key: GangKey, outcome: str, why: str) -> None:
        """End an attempt that missed its deadline; the next one is made after a back-off."""
        self.drop(key, outcome)
        record = self._records.get(key)
        if record is not None:
            record.failures += 1
            pause = min(LONGEST_BACK_OFF_S, FIRST_BACK_OFF_S * 2 ** min(10, record.failures - 1))
            record.failure, record.retry_at = why, self.times.clock() + pause

    def wake(self, key: GangKey, why: str) -> None:
        """Have kube-scheduler try the members again that were refused."""
        record = self._records.get(key)
        if record is None:
            return
        for pod in self.group(key).waiting:
            is_answered = record.plan is not None and pod.uid in record.plan.answered
            if (pod.uid in self._turned_away or pod.is_unschedulable) and not is_answered:
                self._waker.wake(pod.uid, why)
            self._turned_away.pop(pod.uid, None)

    def turn_away(self, uid: str) -> None:
        """Take a member that filter refused; the watch may not have shown it yet."""
        self._turned_away[uid] = None
        if len(self._turned_away) > MAX_TURNED_AWAY:
            self._turned_away.popitem(last=False)

    def _pod_group(self, key: GangKey) -> PodGroup | None:
        groups = self.pod_groups.get(key[1])
        return groups.get(key) if groups is not None else None

    def _forget(self, key: GangKey) -> None:
        self.drop(key, "dropped")
        self._records.pop(key, None)

    def _take_bound(self, key: GangKey, record: Record, found: Group) -> None:
        if not found.bound:
            record.is_started = False
            record.end_part()
        elif record.is_started:
            return
        elif found.is_bound or (record.partial_since is None and self._is_old(found)):
            record.start()
            self.drop(key, "started")
        elif record.partial_since is None:
            record.partial_since = self.times.clock()
            record.evict_at = record.partial_since + self.times.deadline_s

    def _is_old(self, found: Group) -> bool:
        first_ms = min(pod.lifecycle.scheduled_ms for pod in found.bound)
        limit_s = self.times.deadline_s + CHANGE_OF_LEADER_S
        return self.times.now_ms() - first_ms > limit_s * 1000

    def _prune(self, key: GangKey, record: Record, found: Group) -> None:
        """Remove members that are bound or gone from the plan; a gang that is no longer complete has no plan."""
        plan = record.plan
        if plan is None:
            return
        waiting = {pod.uid for pod in found.waiting}
        for uid in plan.places.keys() - waiting:
            if not self.cluster.objects.gangs.of(key).get(uid):
                plan.forget(uid)  # deleted: its reservation ends with it
            elif uid not in plan.posted:
                self.release(plan, [uid])
            else:
                plan.forget(uid)
        if not found.is_complete:
            self.drop(key, "dropped")
        else:
            self.open_gate(key)
