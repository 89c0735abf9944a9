"""Ends what takes too long: plans whose members do not come, and parts of gangs that are bound without the rest."""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Final, Protocol

from extender.effects.event_recorder import EventRecorder
from extender.gangs import waiting_text
from extender.gangs.gang_progress import GangProgress
from extender.gangs.room_holding import RoomHolding
from extender.gangs.tracker import GangTracker
from extender.lead.leader import Leader
from extender.state.gang_members import GangKey
from extender.state.objects import WatchedPod
from vgpu.domain.errors import KubernetesError

TICK_S: Final = 0.5
AGAIN_S: Final = 5.0  # after which pods that still exist are evicted again
NOT_STARTED: Final = "GangNotStarted"
EVICTED: Final = "GangEvicted"

log = logging.getLogger(__name__)


class GangEvictor(Protocol):
    """Deletes pods, as kube-scheduler evicts them; raises KubernetesError."""

    async def delete(self, pod: WatchedPod, reason: str, message: str) -> None:
        """Delete a pod, with an Event."""


class GangDeadlines:
    """Looks at every gang twice a second, as long as this replica leads."""

    def __init__(
        self,
        tracker: GangTracker,
        leader: Leader,
        evictor: GangEvictor,
        recorder: EventRecorder,
        sleep: Callable[[float], Awaitable[None]],
        holding: RoomHolding,
    ) -> None:
        self._holding = holding
        self._tracker = tracker
        self._gangs = tracker.known
        self._leader = leader
        self._evictor = evictor
        self._recorder = recorder
        self._sleep = sleep
        self._led = False

    async def run(self) -> None:
        """Look until cancelled."""
        while True:
            await self.look()
            await self._sleep(TICK_S)

    async def look(self) -> None:
        """Look at every gang once."""
        leads = not self._leader.refusal()
        for key, progress in self._gangs.all() if leads and not self._led else self._gangs.timed():
            if not leads:
                self._tracker.plans.drop(key, "dropped")
                continue
            if not self._led:
                self._begin_to_lead(key, progress)
            await self._look(key, progress)
        self._led = leads
        if leads:
            await self._holding.look(asyncio.sleep)
        else:
            self._holding.end("dropped")

    def _begin_to_lead(self, key: GangKey, progress: GangProgress) -> None:
        """Have members tried again that were refused before, and give a part that is bound the whole time."""
        now = self._tracker.times.clock()
        if progress.partial_since is not None:
            progress.evict_at = now + self._gangs.deadline_s(key)
        self._tracker.refused.wake(key, f"this replica leads since {now:.0f}")

    async def _look(self, key: GangKey, progress: GangProgress) -> None:
        now = self._tracker.times.clock()
        if progress.partial_since is not None and now >= progress.evict_at:
            progress.evict_at = now + AGAIN_S
            await self._evict(key)
        elif progress.plan is not None and now >= progress.plan.deadline:
            self._expire(key, progress)
        if progress.failure and progress.retry_at and now >= progress.retry_at:
            progress.retry_at = 0.0
            self._tracker.refused.wake(key, f"attempt {progress.failures + 1} of the gang")
        if progress.wake_at is not None and now >= progress.wake_at:
            progress.wake_at = None
            self._tracker.refused.wake(key, f"the cards have changed since {now - progress.full_until:.0f} s")

    def _expire(self, key: GangKey, progress: GangProgress) -> None:
        """End a plan that missed its deadline, and tell the owners of its members why."""
        plan, found = progress.plan, self._gangs.watched(key)
        if plan is None:
            return
        why = f"within {self._gangs.deadline_s(key):.0f} s {waiting_text.arrivals(found, plan)}"
        self._tracker.plans.fail(key, "expired", why)
        log.info("%s/%s: the plan has ended: %s", key[0], key[2], why)
        for pod in found.waiting:
            self._recorder.record(
                pod.reference, NOT_STARTED, f"{waiting_text.title(found)}: {why}; its cards are free again"
            )

    async def _evict(self, key: GangKey) -> None:
        """Evict the bound members of a gang of which others are missing."""
        found = self._gangs.watched(key)
        why = f"{waiting_text.part(found)}; evicted after {self._gangs.deadline_s(key):.0f} s, to start with the others"
        log.info("%s/%s: %s", key[0], key[2], why)
        self._tracker.plans.fail(key, "evicted", waiting_text.part(found))
        for pod in found.bound:
            try:
                await self._evictor.delete(pod, EVICTED, why)
            except KubernetesError as error:
                log.warning("pod %s/%s could not be evicted: %s", pod.namespace, pod.name, error)
