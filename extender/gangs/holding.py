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

from extender.gangs import back_off, hold_target, words
from extender.gangs.book import GangBook
from extender.gangs.record import GangRecord
from extender.gangs.retries import Waking
from extender.gangs.slices import Pause, in_slices
from extender.state.gang_members import GangKey
from extender.state.held_room import HeldRoom, Usages
from extender.state.objects import WatchedPod
from vgpu.domain.cards.share import NodeState
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
        self, book: GangBook, waker: Waking, defaults: DefaultPolicies, times: HoldTimes, timer: Callable[[], float]
    ) -> None:
        self.outcomes = dict.fromkeys(OUTCOMES, 0)
        self._records = book.records
        self._cluster = book.cluster
        self._clock = book.times.clock
        self._waker = waker
        self._defaults = defaults
        self._times = times
        self._timer = timer
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
        self._records.get(held.key).held = ""
        for node in held.usages:
            self._waker.changed(node)

    def _go_on(self, held: HeldRoom) -> None:
        record = self._records.find(held.key)
        if record is None or not self._is_short(held.key, record):
            self.end("planned" if record is not None and record.state != "waiting" else "dropped")
        elif self._clock() >= self._until:
            self.end("expired")
            record.held = f"room was kept free for it for {self._times.hold_s:.0f} s in vain, and will be again"
            self._back_off(record)
        elif self._clock() >= self._woken_at + WAKE_S and self._version != self._cluster.rows.index.version:
            self._wake(held.key)

    def _wake(self, key: GangKey) -> None:
        """Have kube-scheduler try a member again: its call plans the whole gang."""
        self._woken_at, self._version = self._clock(), self._cluster.rows.index.version
        waiting = self._records.group(key).waiting
        self._waker.wake(waiting[0].uid, f"cards of the gang's room have changed at {self._woken_at:.0f}")

    def _back_off(self, record: GangRecord) -> None:
        record.holds += 1
        pause = back_off.pause_s(2 * self._times.hold_s, LONGEST_BACK_OFF_S, record.holds)
        record.hold_at, self._quiet_until = self._clock() + pause, self._clock() + self._times.after_s

    def _is_short(self, key: GangKey, record: GangRecord) -> bool:
        """Whether a gang is complete, and no plan could be made for it."""
        is_unplaced = record.state == "waiting" and not record.retry_at
        return is_unplaced and record.waits_since is not None and bool(self._records.group(key).waiting)

    def _next(self) -> GangKey | None:
        now = self._clock()
        due = [
            (-self._records.group(key).waiting[0].scheduling.priority, record.waits_since, key)
            for key, record in self._records.all()
            if self._is_short(key, record)
            and record.waits_since is not None
            and now >= max(record.waits_since + self._times.after_s, record.hold_at)
        ]
        return min(due)[2] if due else None

    async def _begin(self, key: GangKey, pause: Pause) -> None:
        """Choose the room, which takes a while, and keep it free if the gang still waits."""
        found = self._records.group(key)
        pods, record = found.waiting[: found.needs], self._records.get(key)
        room = await in_slices(self._choose(pods, record), self._timer, pause)
        if not self._is_short(key, record) or room == {}:
            record.hold_at = self._clock() + self._times.after_s
        elif room is None:
            self.outcomes["impossible"] += 1
            record.held = "it does not fit the cluster's cards even when all of them are free"
            self._back_off(record)
        else:
            self._cluster.holds.now = HeldRoom(key, pods[0].scheduling.priority, room)
            self._until, self._woken_at = self._clock() + self._times.hold_s, float("-inf")
            record.held = words.kept_room(self._cluster.holds.now, self._times.after_s, self._times.hold_s)
            log.info("%s/%s: %s", key[0], key[2], record.held)

    def _choose(self, pods: Sequence[WatchedPod], record: GangRecord) -> Steps[Mapping[str, Usages] | None]:
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
        offered = [view for view in views if view.name in record.offered]
        chosen = yield from hold_target.target(members, offered, defaults)
        if chosen is None:
            chosen = yield from hold_target.target(members, views, defaults)
        return chosen

    def _view(self, name: str) -> NodeView | None:
        state = self._cluster.states.usable(name)
        if not isinstance(state, NodeState):
            return None
        return NodeView(name, state, None, self._cluster.objects.nodes[name].allocatable)


def _members(pods: Sequence[WatchedPod]) -> Iterator[Member]:
    for pod in pods:
        if pod.parsed.request is not None:
            yield Member(pod.uid, pod.parsed.request, pod.host)
