"""The launch gate as it was before it was a state machine: five phases and four booleans, changed by each function.

The naive twin of gate_machine.c. Where the machine has one phase, the twin has a combination of phase and booleans.
"""

from dataclasses import dataclass
from enum import Enum, auto

from tests.limiter.compute.gate_structures import Action, Event, Phase, Verdict, View


class _Old(Enum):
    SHUT = auto()
    OPENING = auto()
    OPEN = auto()
    CLOSING = auto()
    QUEUING = auto()


@dataclass
class Twin:
    """What the old gate knew.

    Attributes:
        is_queue_turn: the launches of the turn belong to segments.
        is_turn_wanted: the turn is to be asked for at once.
        is_turn_awaited: the gate's thread waits for the turn.
        has_ends: the ends of the last queued turn were recorded as the turn was given back.
        wakes: whether the last event woke the threads that wait for a change.
    """

    old: _Old = _Old.SHUT
    is_queue_turn: bool = False
    is_turn_wanted: bool = False
    is_turn_awaited: bool = False
    has_ends: bool = False
    wakes: bool = False

    @property
    def phase(self) -> Phase:
        """The machine's phase."""
        names = {_Old.OPENING: Phase.OPENING, _Old.OPEN: Phase.OPEN_QUEUE if self.is_queue_turn else Phase.OPEN}
        if self.is_turn_awaited:
            names |= {_Old.SHUT: Phase.SHUT_ASKED, _Old.QUEUING: Phase.QUEUING_ASKED, _Old.CLOSING: Phase.CLOSING_ASKED}
        else:
            names |= {
                _Old.SHUT: Phase.DRAINING if self.has_ends else Phase.SHUT,
                _Old.QUEUING: Phase.QUEUING_WANTED if self.is_turn_wanted else Phase.QUEUING,
                _Old.CLOSING: Phase.CLOSING,
            }
        return names[self.old]

    def take(self, event: Event, view: View) -> Action:
        """Change as the old gate did, and return what the thread did next."""
        self.wakes = False
        rules = {
            Event.LAUNCH_HELD_BACK: self._launch_held_back,
            Event.LAUNCHES_STAY: self._launches_stay,
            Event.WORK_STAYS: self._launches_stay,
            Event.TURN_TAKEN: self._turn_taken,
            Event.COLLECTS: self._collects,
            Event.QUEUE_REFUSED: self._queue_refused,
            Event.QUEUE_BEGUN: self._queue_begun,
            Event.QUEUE_TURN_TAKEN: self._queue_turn_taken,
            Event.TURN_ENDED: self._turn_ended,
            Event.THREAD_LOOKS: self._thread_looks,
            Event.TURN_ARRIVED: self._turn_arrived,
            Event.PACED: self._paced,
            Event.HOST_WAITS: self._host_waits,
            Event.HOST_WAITED: self._host_waited,
            Event.FLUSH: self._flush,
            Event.STREAM_ENDS: self._stream_ends,
            Event.WORK_ASKED: self._work_asked,
            Event.TURN_GOES_ON: self._turn_goes_on,
            Event.CONTEXT_ENDS: self._context_ends,
            Event.CONTEXT_ENDED: self._context_ended,
        }
        return rules[event](view)

    def _set(self, old: _Old) -> None:
        self.old = old
        self.wakes = True

    def _launch_held_back(self, view: View) -> Action:
        if self.old in {_Old.OPENING, _Old.CLOSING} or (self.old is _Old.SHUT and self.is_turn_awaited):
            return Action.AWAIT_CHANGE
        if self.old is _Old.QUEUING:
            self._want_turn()
            return Action.AWAIT_CHANGE
        if self.old is _Old.OPEN and self.is_queue_turn and view.verdict != Verdict.UNMEASURED:
            return Action.AWAIT_TIME
        if self.old is _Old.OPEN and view.verdict == Verdict.TOO_DEEP:
            return Action.AWAIT_ROOM
        if self.old is _Old.OPEN:
            self.old = _Old.CLOSING
            return Action.CLOSE_QUEUE_TURN if self.is_queue_turn else Action.CLOSE_TURN
        self.old = _Old.OPENING
        self.has_ends = False
        return Action.OPEN_TURN

    def _want_turn(self) -> None:
        if self.is_turn_wanted or self.is_turn_awaited:
            return
        self.is_turn_wanted = self.wakes = True

    def _launches_stay(self, _view: View) -> Action:
        self.is_queue_turn = False
        self._set(_Old.OPEN)
        return Action.DO_NOTHING

    def _turn_taken(self, _view: View) -> Action:
        self.is_queue_turn = False
        self._set(_Old.OPEN)
        return Action.DO_NOTHING

    def _collects(self, _view: View) -> Action:
        self.old = _Old.CLOSING
        return Action.DO_NOTHING

    def _queue_refused(self, _view: View) -> Action:
        self._set(_Old.SHUT)
        return Action.DO_NOTHING

    def _queue_begun(self, _view: View) -> Action:
        self.is_turn_wanted = False
        self._set(_Old.QUEUING)
        return Action.DO_NOTHING

    def _queue_turn_taken(self, _view: View) -> Action:
        self.is_turn_wanted = False
        self.is_queue_turn = True
        self._set(_Old.OPEN)
        return Action.DO_NOTHING

    def _turn_ended(self, view: View) -> Action:
        self.has_ends = view.has_ends
        self.is_turn_wanted = view.is_any_closed
        self._set(_Old.QUEUING if view.is_any_closed else _Old.SHUT)
        return Action.DO_NOTHING

    def _thread_looks(self, view: View) -> Action:
        if self.old is _Old.OPEN and self.is_queue_turn:
            return Action.SERVE_TURN
        if self.old is not _Old.QUEUING:
            return Action.AWAIT_CHANGE
        if self.is_turn_wanted or view.now >= view.due_at:
            self.is_turn_awaited = True
            return Action.ASK_TURN
        return Action.AWAIT_TIME

    def _turn_arrived(self, _view: View) -> Action:
        self.is_turn_awaited = False
        if self.old is not _Old.QUEUING:
            self.wakes = self.old is _Old.SHUT  # this was forgotten: launches waited for up to 10 ms
            return Action.DO_NOTHING
        self.is_turn_wanted = False
        self.is_queue_turn = True
        self._set(_Old.OPEN)
        return Action.BEGIN_TURN

    def _paced(self, view: View) -> Action:
        if view.verdict == Verdict.FULL:
            self.old = _Old.CLOSING
            return Action.END_TURN
        if view.is_idle and view.now >= view.due_at:
            self.old = _Old.CLOSING
            return Action.GIVE_BACK
        if view.due_at == 2**64 - 1:
            return Action.AWAIT_CHANGE
        return Action.AWAIT_PACE if view.verdict == Verdict.TOO_DEEP else Action.AWAIT_TIME

    def _host_waits(self, view: View) -> Action:
        if self.old is _Old.QUEUING:
            self.wakes = True
        if self.old is _Old.OPEN and self.is_queue_turn and view.is_idle:
            self.old = _Old.CLOSING
            return Action.GIVE_BACK
        return Action.NOTE_AWAITED if self.old is _Old.OPEN else Action.DO_NOTHING

    def _host_waited(self, _view: View) -> Action:
        if self.old is _Old.SHUT and self.has_ends:
            self.old = _Old.CLOSING
            return Action.CORRECT_DRAIN
        return Action.NOTE_BUSY if self.old is _Old.OPEN else Action.DO_NOTHING

    def _flush(self, view: View) -> Action:
        if view.is_any_closed and view.now < view.due_at:
            if self.old is _Old.QUEUING:
                self._want_turn()
            return Action.AWAIT_CHANGE
        may_charge = self.old is _Old.OPEN or (self.old is _Old.QUEUING and not self.is_turn_awaited)
        if self.old is _Old.QUEUING:
            self._set(_Old.SHUT)
        return Action.OPEN_SEGMENTS if may_charge else Action.RELEASE_SEGMENTS

    def _stream_ends(self, view: View) -> Action:
        if self.old is not _Old.OPEN or not view.has_unrecorded_end:
            return Action.DO_NOTHING
        self.old = _Old.CLOSING
        return Action.RECORD_ENDS

    def _work_asked(self, _view: View) -> Action:
        if self.old is not _Old.OPEN or self.is_queue_turn:
            return Action.DO_NOTHING
        self.old = _Old.CLOSING
        return Action.LOOK_AT_STREAMS

    def _turn_goes_on(self, _view: View) -> Action:
        self._set(_Old.OPEN)
        return Action.DO_NOTHING

    def _context_ends(self, _view: View) -> Action:
        if self.old is _Old.CLOSING:
            return Action.DO_NOTHING
        if self.old is _Old.OPENING:
            return Action.DROP_EVENTS
        before, self.old = self.old, _Old.CLOSING
        return Action.DROP_TURN if before is _Old.OPEN else Action.DROP_GATE

    def _context_ended(self, _view: View) -> Action:
        self.has_ends = False
        self._set(_Old.SHUT)
        return Action.DO_NOTHING
