"""Takes what the watch shows of gangs: members that are bound, members that can be placed now, gangs that are gone.

Everything follows from the pods that the watch shows, except plans, back-offs, and whether a gang has started. A
process that starts finds members that are bound: if the first of them was bound long ago, the gang has started, since
the leader before would have ended a part of a gang at its deadline.
"""

from typing import Final

from extender.gangs import waiting_text
from extender.gangs.current_plans import Plans
from extender.gangs.gang_progress import GangRecord
from extender.gangs.known_gangs import GangTimes, Records
from extender.gangs.refused_members import Retries, Waking
from extender.gangs.watched_gang import WatchedGang
from extender.state.cluster import Cluster
from extender.state.gang_members import GangKey
from vgpu.domain.cards.reasons import Reason

CHANGE_OF_LEADER_S: Final = 120.0  # within which a new leader takes over, with a margin


class GangBook:
    """What is known of each gang that has members, their plans, and the members to be tried again."""

    def __init__(self, cluster: Cluster, waker: Waking, times: GangTimes) -> None:
        self.cluster = cluster
        self.times = times
        self.records = Records(cluster, times, self.refresh)
        self.plans = Plans(self.records, waker)
        self.retries = Retries(self.records, waker)
        cluster.objects.gangs.listen(self.refresh)

    def hindrance(self, key: GangKey, found: WatchedGang) -> Reason | None:
        """Return why a gang that has not started must not be planned now."""
        if found.size is None:
            return Reason.GANG_SIZE_UNKNOWN
        if not found.is_complete:
            return Reason.GANG_INCOMPLETE
        return Reason.GANG_WAITS if self.times.clock() < self.records.get(key).retry_at else None

    def why(self, key: GangKey) -> tuple[Reason, str] | None:
        """Return why the waiting members of a gang wait; None where it has started, or has none."""
        found = self.records.group(key)
        return waiting_text.why(found, self.records.get(key), self.hindrance(key, found))

    def refresh(self, key: GangKey) -> None:
        """Take a change of a gang: of its pods, or of its PodGroup."""
        self.records.changed(key)
        if not self.records.members(key):
            self.plans.drop(key, "dropped")
            self.records.forget(key)
            return
        found, record = self.records.group(key), self.records.open(key)
        self._take_bound(key, record, found)
        plan = record.plan
        self.plans.prune(key, record, found)
        if plan is not None and record.plan is None and found.is_complete and not record.is_started:
            self.retries.wake(key, f"a pod of plan {plan.number} has gone")
        news = _news(found, record)
        record.was_complete, record.was_sized = found.is_complete, found.size is not None
        if not found.is_complete or record.state != "waiting":
            record.end_wait()
        else:
            record.wait(self.times.clock())
        if news and not record.is_started and record.plan is None:
            self.retries.wake(key, news)

    def _take_bound(self, key: GangKey, record: GangRecord, found: WatchedGang) -> None:
        if not found.bound:
            record.is_started = False
            record.end_part()
        elif record.is_started:
            return
        elif found.is_bound or (record.partial_since is None and self._is_old(key, found)):
            record.start()
            self.plans.drop(key, "started")
        elif record.partial_since is None:
            record.partial_since = self.times.clock()
            record.evict_at = record.partial_since + self.records.deadline_s(key)

    def _is_old(self, key: GangKey, found: WatchedGang) -> bool:
        first_ms = min(pod.lifecycle.scheduled_ms for pod in found.bound)
        limit_s = self.records.deadline_s(key) + CHANGE_OF_LEADER_S
        return self.times.now_ms() - first_ms > limit_s * 1000


def _news(found: WatchedGang, record: GangRecord) -> str:
    """Return why the members are worth another attempt, or another explanation; empty where nothing is new."""
    if found.is_complete and not record.was_complete:
        return f"all {found.size} pods of the gang exist"
    if found.size is not None and not record.was_sized:
        return f"the size of the gang is known: {found.size} pods"
    return ""
