"""Takes what the watch shows of gangs: members that are bound, members that can be placed now, gangs that are gone.

Everything follows from the pods that the watch shows, except plans, back-offs, and whether a gang has started. A
process that starts finds members that are bound: if the first of them was bound long ago, the gang has started, since
the leader before would have ended a part of a gang at its deadline.
"""

from typing import Final

from extender.gangs import waiting_text
from extender.gangs.current_plans import CurrentPlans
from extender.gangs.gang_progress import GangProgress
from extender.gangs.known_gangs import GangTimes, KnownGangs
from extender.gangs.refused_members import RefusedMembers, Waking
from extender.gangs.watched_gang import WatchedGang
from extender.state.cluster import Cluster
from extender.state.gang_members import GangKey
from vgpu.domain.cards.reasons import Reason

CHANGE_OF_LEADER_S: Final = 120.0  # within which a new leader takes over, with a margin


class GangTracker:
    """What is known of each gang that has members, their plans, and the members to be tried again."""

    def __init__(self, cluster: Cluster, waker: Waking, times: GangTimes) -> None:
        self.cluster = cluster
        self.times = times
        self.known = KnownGangs(cluster, times, self.refresh)
        self.plans = CurrentPlans(self.known, waker)
        self.refused = RefusedMembers(self.known, waker)
        cluster.objects.gangs.listen(self.refresh)

    def hindrance(self, key: GangKey, found: WatchedGang) -> Reason | None:
        """Return why a gang that has not started must not be planned now."""
        if found.size is None:
            return Reason.GANG_SIZE_UNKNOWN
        if not found.is_complete:
            return Reason.GANG_INCOMPLETE
        return Reason.GANG_WAITS if self.times.clock() < self.known.get(key).retry_at else None

    def why(self, key: GangKey) -> tuple[Reason, str] | None:
        """Return why the waiting members of a gang wait; None where it has started, or has none."""
        found = self.known.watched(key)
        return waiting_text.why(found, self.known.get(key), self.hindrance(key, found))

    def refresh(self, key: GangKey) -> None:
        """Take a change of a gang: of its pods, or of its PodGroup."""
        self.known.changed(key)
        if not self.known.members(key):
            self.plans.drop(key, "dropped")
            self.known.forget(key)
            return
        found, progress = self.known.watched(key), self.known.open(key)
        self._take_bound(key, progress, found)
        plan = progress.plan
        self.plans.prune(key, progress, found)
        if plan is not None and progress.plan is None and found.is_complete and not progress.is_started:
            self.refused.wake(key, f"a pod of plan {plan.number} has gone")
        news = _news(found, progress)
        progress.was_complete, progress.was_sized = found.is_complete, found.size is not None
        if not found.is_complete or progress.phase != "waiting":
            progress.end_wait()
        else:
            progress.wait(self.times.clock())
        if news and not progress.is_started and progress.plan is None:
            self.refused.wake(key, news)

    def _take_bound(self, key: GangKey, progress: GangProgress, found: WatchedGang) -> None:
        if not found.bound:
            progress.is_started = False
            progress.end_part()
        elif progress.is_started:
            return
        elif found.is_bound or (progress.partial_since is None and self._is_old(key, found)):
            progress.start()
            self.plans.drop(key, "started")
        elif progress.partial_since is None:
            progress.partial_since = self.times.clock()
            progress.evict_at = progress.partial_since + self.known.deadline_s(key)

    def _is_old(self, key: GangKey, found: WatchedGang) -> bool:
        first_ms = min(pod.lifecycle.scheduled_ms for pod in found.bound)
        limit_s = self.known.deadline_s(key) + CHANGE_OF_LEADER_S
        return self.times.now_ms() - first_ms > limit_s * 1000


def _news(found: WatchedGang, progress: GangProgress) -> str:
    """Return why the members are worth another attempt, or another explanation; empty where nothing is new."""
    if found.is_complete and not progress.was_complete:
        return f"all {found.size} pods of the gang exist"
    if found.size is not None and not progress.was_sized:
        return f"the size of the gang is known: {found.size} pods"
    return ""
