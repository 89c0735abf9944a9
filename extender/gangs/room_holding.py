"""Keeps room free for a gang that has waited for long, so that small pods do not take each card that becomes free.

One gang holds room at a time: the gang of the highest priority, and among gangs of equal priority the gang that has
waited longest; gangs that were found not to fit the cards that exist come last. The gang holds the room that it needs
and no more, until it is planned, or for `hold_s` seconds at most. If it is not planned by then, two pauses begin, in
which small pods get cards: a back-off, doubled each time, before the gang may hold room again, and `after_s` seconds
before any gang may hold room.

The room is chosen anew, within the same time, when its basis changes: a node of it goes or closes, a card of it is ill,
or other pods make up the gang. Where the gang fits the cards no more that exist, nothing is kept free.
"""

import logging
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from extender.gangs import room_basis, room_to_hold, waiting_text
from extender.gangs.gang_progress import GangProgress
from extender.gangs.refused_members import Waking
from extender.gangs.room_basis import RoomBasis
from extender.gangs.time_slices import Pause, in_slices
from extender.gangs.tracker import GangTracker
from extender.gangs.watched_gang import WatchedGang
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

REST_FACTOR: Final = 10.0  # after a search in vain, in multiples of the time that it took
WAKE_S: Final = 5.0  # between two attempts of a gang that holds room
LONGEST_BACK_OFF_S: Final = 7200.0
IMPOSSIBLE: Final = (
    "it does not fit the cluster's cards even when all of them are free; cards that are ill or cordoned, and those of "
    "nodes that are closed or that its pods may not use, do not count"
)
OUTCOMES: Final = ("planned", "expired", "dropped", "impossible")

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class HoldTimes:
    """How long a gang waits before it holds room, 0: it never does, and for how long it holds room, in seconds."""

    after_s: float
    hold_s: float


@dataclass(frozen=True, slots=True)
class ChosenRoom:
    """What a gang takes of each card, by node, and what this choice rests on."""

    usages: Mapping[NodeName, Usages]
    basis: RoomBasis


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
        self._now_ms = tracker.times.now_ms
        self._waker = waker
        self._defaults = defaults
        self._times = times
        self._timer = timer
        self._pauses = BackOff(2 * times.hold_s, LONGEST_BACK_OFF_S)
        self._until = 0.0
        self._quiet_until = 0.0
        self._woken_at = 0.0
        self._version = -1
        self._basis = RoomBasis((), {})

    @property
    def cards(self) -> int:
        """Number of cards of which anything is kept free."""
        held = self._cluster.holds.now
        return held.cards if held else 0

    async def look(self, pause: Pause) -> None:
        """End what is over, and begin to keep room free for the next gang."""
        held = self._cluster.holds.now
        if held is not None:
            await self._go_on(held, pause)
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

    async def _go_on(self, held: HeldRoom, pause: Pause) -> None:
        progress = self._gangs.find(held.key)
        if progress is None or not self._is_short(held.key, progress):
            self.end("planned" if progress is not None and progress.phase != "waiting" else "dropped")
        elif self._clock() >= self._until:
            self.end("expired")
            progress.held = f"room was kept free for it for {self._times.hold_s:.0f} s in vain, and will be again"
            self._back_off(progress)
        elif self._basis_now(held) != self._basis:
            await self._choose_again(held, progress, pause)
        elif self._clock() >= self._woken_at + WAKE_S and self._version != self._cluster.rows.index.version:
            self._wake(held.key)

    def _basis_now(self, held: HeldRoom) -> RoomBasis:
        views = {name: view for name in held.usages if (view := self._view(name)) is not None}
        return room_basis.of(self._needed(held.key), held.usages, views)

    def _needed(self, key: GangKey) -> Sequence[WatchedPod]:
        """Return the pods of a gang that are to be placed."""
        found = self._gangs.watched(key)
        return found.waiting[: found.needs]

    async def _choose_again(self, held: HeldRoom, progress: GangProgress, pause: Pause) -> None:
        """Keep other room free for the rest of the time: that which is held is not there, or not needed, any more."""
        room = await in_slices(self._room(self._needed(held.key), (held.usages, progress.offered)), self._timer, pause)
        if not self._is_short(held.key, progress):
            self.end("dropped")
        elif room is None:
            self.end("impossible")
            self._quiet_until = self._clock() + self._times.after_s
            self._give_up(progress)
        else:
            self._keep(replace(held, usages=room.usages), room.basis, progress)
            for node in held.usages:
                self._waker.changed(node)

    def _keep(self, held: HeldRoom, basis: RoomBasis, progress: GangProgress) -> None:
        self._cluster.holds.now, self._basis = held, basis
        self._woken_at, progress.impossible_since_ms = float("-inf"), 0
        progress.held = waiting_text.kept_room(held, self._times.after_s)
        log.info("%s/%s: %s", held.key[0], held.key[2], progress.held)

    def _give_up(self, progress: GangProgress) -> None:
        """Take that a gang does not fit the cards that exist. It is looked at again: there may be others by then."""
        progress.held, progress.hold_at = IMPOSSIBLE, self._clock() + self._times.after_s
        progress.impossible_since_ms = progress.impossible_since_ms or self._now_ms()

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
            (bool(progress.impossible_since_ms), -_priority(self._gangs.watched(key)), progress.waits_since, key)
            for key, progress in self._gangs.all()
            if self._is_short(key, progress)
            and progress.waits_since is not None
            and now >= max(progress.waits_since + self._times.after_s, progress.hold_at)
        ]
        return min(due)[3] if due else None

    async def _begin(self, key: GangKey, pause: Pause) -> None:
        """Choose the room, which takes a while, and keep it free if the gang still waits."""
        pods, progress, begun = self._needed(key), self._gangs.get(key), self._timer()
        fits = await in_slices(self._fits_now(pods), self._timer, pause)
        room = None if fits else await in_slices(self._room(pods, (progress.offered,)), self._timer, pause)
        if fits or not self._is_short(key, progress):
            progress.hold_at, progress.impossible_since_ms = self._clock() + self._times.after_s, 0
        elif room is None:
            self.outcomes["impossible"] += 1
            self._give_up(progress)
            self._quiet_until = self._clock() + REST_FACTOR * (self._timer() - begun)
        else:
            now_ms, hold_s = self._now_ms(), self._times.hold_s
            self._until = self._clock() + hold_s
            until_ms = now_ms + round(hold_s * 1000)
            held = HeldRoom(key, pods[0].scheduling.priority, room.usages, now_ms, until_ms)
            self._keep(held, room.basis, progress)

    def _fits_now(self, pods: Sequence[WatchedPod]) -> Steps[bool]:
        """Return whether a gang fits the cards that are free now: it waits for something else than cards."""
        views = yield from self._views()
        members = list(_members(pods, views))
        places = yield from gang.steps(members, views, self._cluster.demand.policies(self._defaults))
        return isinstance(places, dict)

    def _room(self, pods: Sequence[WatchedPod], preferred: Sequence[Collection[NodeName]]) -> Steps[ChosenRoom | None]:
        """Return the room, on the first of these sets of nodes that has it, else on any; None where none has it."""
        views, defaults = (yield from self._views()), self._cluster.demand.policies(self._defaults)
        members = list(_members(pods, views))
        for names in (*preferred, {view.name for view in views}):
            among = [view for view in views if view.name in names]
            chosen = yield from room_to_hold.target(members, among, defaults)
            if chosen is not None:
                return ChosenRoom(chosen, room_basis.of(pods, chosen, {view.name: view for view in among}))
        return None

    def _views(self) -> Steps[list[NodeView]]:
        views: list[NodeView] = []
        for name in self._cluster.rows.index.known():
            view = self._view(name)
            views += [view] if view is not None else []
            yield
        return views

    def _view(self, name: NodeName) -> NodeView | None:
        """Return a node; None where it takes no pods now. Whether it is cordoned is left to the pods' rules."""
        state, node = self._cluster.states.usable(name), self._cluster.objects.nodes.get(name)
        if not isinstance(state, NodeState) or node is None or not node.marks.is_ready:
            return None
        return NodeView(name, state, None, node.allocatable, marks=node.marks)


def _priority(found: WatchedGang) -> int:
    return found.waiting[0].scheduling.priority


def _members(pods: Sequence[WatchedPod], views: Collection[NodeView]) -> Iterator[Member]:
    nodes = room_basis.permitted(pods, views)
    for pod in pods:
        if pod.parsed.request is not None:
            yield Member(pod.uid, pod.parsed.request, pod.host, nodes[pod.rules])
