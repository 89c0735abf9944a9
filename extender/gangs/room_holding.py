"""Keeps room free for a gang that has waited for long, so that small pods do not take each card that becomes free.

One gang holds room at a time: the gang of the highest priority, and among gangs of equal priority the gang that has
waited longest. The gang holds the room that it needs and no more, until it is planned, or for `hold_s` seconds at most.
If it is not planned by then, two pauses begin, in which small pods get cards: a back-off, doubled each time, before the
gang may hold room again, and `after_s` seconds before any gang may hold room.
"""

import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from extender.gangs import room_to_hold, waiting_text
from extender.gangs.gang_progress import GangProgress
from extender.gangs.refused_members import Waking
from extender.gangs.time_slices import Pause, in_slices
from extender.gangs.tracker import GangTracker
from extender.state.gang_members import GangKey
from extender.state.held_room import HeldRoom, Usages
from extender.state.objects import WatchedPod
from vgpu.domain.cards.share import NodeState
from vgpu.domain.identifiers import NodeName
from vgpu.pacing.back_off import BackOff
from vgpu.placement import gang
from vgpu.placement.gang_attempt import Member, Steps
from vgpu.placement.policies import DefaultPolicies
from vgpu.placement.snapshot import NodeView

WAKE_S: Final = 5.0  # between two attempts of a gang that holds room
LONGEST_BACK_OFF_S: Final = 7200.0
OUTCOMES: Final = ("planned", "expired", "dropped", "impossible")

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class HoldTimes:
    """How long a gang waits before it holds room, 0: it never does, and for how long it holds room, in seconds."""

    after_s: float
    hold_s: float


class RoomHolding:
    """The gang that holds room. `outcomes` counts how holding room ended."""

    def __init__(
        self,
        tracker: GangTracker,
        waker: Waking,
        defaults: DefaultPolicies,
        times: HoldTimes,
        timer: Callable[[], float],
    ) -> None:
        self.outcomes = dict.fromkeys(OUTCOMES, 0)
        self._gangs = tracker.known
        self._cluster = tracker.cluster
        self._clock = tracker.times.clock
        self._waker = waker
        self._defaults = defaults
        self._times = times
        self._timer = timer
        self._pauses = BackOff(2 * times.hold_s, LONGEST_BACK_OFF_S)
        self._until = 0.0
        self._quiet_until = 0.0
        self._woken_at = 0.0
        self._version = -1

    @property
    def cards(self) -> int:
        """Number of cards of which anything is kept free."""
        held = self._cluster.holds.now
        return held.cards if held else 0

    async def look(self, pause: Pause) -> None:
        """End what is over, and begin to keep room free for the next gang."""
        held = self._cluster.holds.now
        if held is not None:
            self._go_on(held)
        elif self._times.after_s and self._clock() >= self._quiet_until and (key := self._next()):
            await self._begin(key, pause)

    def end(self, outcome: str) -> None:
        """Keep no room free; other pods may take it."""
        held, self._cluster.holds.now = self._cluster.holds.now, None
        if held is None:
            return
        self.outcomes[outcome] += 1
        self._gangs.get(held.key).held = ""
        for node in held.usages:
            self._waker.changed(node)

    def _go_on(self, held: HeldRoom) -> None:
        progress = self._gangs.find(held.key)
        if progress is None or not self._is_short(held.key, progress):
            self.end("planned" if progress is not None and progress.phase != "waiting" else "dropped")
        elif self._clock() >= self._until:
            self.end("expired")
            progress.held = f"room was kept free for it for {self._times.hold_s:.0f} s in vain, and will be again"
            self._back_off(progress)
        elif self._clock() >= self._woken_at + WAKE_S and self._version != self._cluster.rows.index.version:
            self._wake(held.key)

    def _wake(self, key: GangKey) -> None:
        """Have kube-scheduler try a member again: its call plans the whole gang."""
        self._woken_at, self._version = self._clock(), self._cluster.rows.index.version
        waiting = self._gangs.watched(key).waiting
        self._waker.wake(waiting[0].uid, f"cards of the gang's room have changed at {self._woken_at:.0f}")

    def _back_off(self, progress: GangProgress) -> None:
        progress.holds += 1
        pause = self._pauses.delay_s(progress.holds)
        progress.hold_at, self._quiet_until = self._clock() + pause, self._clock() + self._times.after_s

    def _is_short(self, key: GangKey, progress: GangProgress) -> bool:
        """Whether a gang is complete, and no plan could be made for it."""
        is_unplaced = progress.phase == "waiting" and not progress.retry_at
        return is_unplaced and progress.waits_since is not None and bool(self._gangs.watched(key).waiting)

    def _next(self) -> GangKey | None:
        now = self._clock()
        due = [
            (-self._gangs.watched(key).waiting[0].scheduling.priority, progress.waits_since, key)
            for key, progress in self._gangs.all()
            if self._is_short(key, progress)
            and progress.waits_since is not None
            and now >= max(progress.waits_since + self._times.after_s, progress.hold_at)
        ]
        return min(due)[2] if due else None

    async def _begin(self, key: GangKey, pause: Pause) -> None:
        """Choose the room, which takes a while, and keep it free if the gang still waits."""
        found = self._gangs.watched(key)
        pods, progress = found.waiting[: found.needs], self._gangs.get(key)
        room = await in_slices(self._choose(pods, progress), self._timer, pause)
        if not self._is_short(key, progress) or room == {}:
            progress.hold_at = self._clock() + self._times.after_s
        elif room is None:
            self.outcomes["impossible"] += 1
            progress.held = "it does not fit the cluster's cards even when all of them are free"
            self._back_off(progress)
        else:
            self._cluster.holds.now = HeldRoom(key, pods[0].scheduling.priority, room)
            self._until, self._woken_at = self._clock() + self._times.hold_s, float("-inf")
            progress.held = waiting_text.kept_room(self._cluster.holds.now, self._times.after_s, self._times.hold_s)
            log.info("%s/%s: %s", key[0], key[2], progress.held)

    def _choose(self, pods: Sequence[WatchedPod], progress: GangProgress) -> Steps[Mapping[NodeName, Usages] | None]:
        """Return the room; empty where the gang has room now, and None where it never has."""
        defaults = self._cluster.demand.policies(self._defaults)
        views: list[NodeView] = []
        for name in self._cluster.rows.index.known():
            view = self._view(name)
            views += [view] if view is not None else []
            yield
        members = list(_members(pods))
        now = yield from gang.steps(members, views, defaults)
        if isinstance(now, dict):
            return {}
        offered = [view for view in views if view.name in progress.offered]
        chosen = yield from room_to_hold.target(members, offered, defaults)
        if chosen is None:
            chosen = yield from room_to_hold.target(members, views, defaults)
        return chosen

    def _view(self, name: NodeName) -> NodeView | None:
        state = self._cluster.states.usable(name)
        if not isinstance(state, NodeState):
            return None
        return NodeView(name, state, None, self._cluster.objects.nodes[name].allocatable)


def _members(pods: Sequence[WatchedPod]) -> Iterator[Member]:
    for pod in pods:
        if pod.parsed.request is not None:
            yield Member(pod.uid, pod.parsed.request, pod.host)
