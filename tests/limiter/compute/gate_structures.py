"""The enumerations and structures of compute/gate/gate_machine.h for ctypes, and how its functions are called."""

import ctypes
from enum import IntEnum, auto

from tests.limiter.compute.turn_structures import U64

NEVER = 2**64 - 1


class _Counted(IntEnum):
    @staticmethod
    def _generate_next_value_(_name: str, _start: int, count: int, _last: list[int]) -> int:
        return count


class Phase(_Counted):
    SHUT = auto()
    SHUT_ASKED = auto()
    DRAINING = auto()
    OPENING = auto()
    QUEUING = auto()
    QUEUING_WANTED = auto()
    QUEUING_ASKED = auto()
    OPEN = auto()
    OPEN_QUEUE = auto()
    CLOSING = auto()
    CLOSING_ASKED = auto()


class Event(_Counted):
    LAUNCH_HELD_BACK = auto()
    LAUNCHES_STAY = auto()
    WORK_STAYS = auto()
    TURN_TAKEN = auto()
    COLLECTS = auto()
    QUEUE_REFUSED = auto()
    QUEUE_BEGUN = auto()
    QUEUE_TURN_TAKEN = auto()
    TURN_ENDED = auto()
    THREAD_LOOKS = auto()
    TURN_ARRIVED = auto()
    PACED = auto()
    HOST_WAITS = auto()
    HOST_WAITED = auto()
    FLUSH = auto()
    STREAM_ENDS = auto()
    WORK_ASKED = auto()
    TURN_GOES_ON = auto()
    CONTEXT_ENDS = auto()
    CONTEXT_ENDED = auto()


class Action(_Counted):
    DO_NOTHING = auto()
    AWAIT_CHANGE = auto()
    AWAIT_TIME = auto()
    AWAIT_PACE = auto()
    AWAIT_ROOM = auto()
    OPEN_TURN = auto()
    CLOSE_TURN = auto()
    CLOSE_QUEUE_TURN = auto()
    SERVE_TURN = auto()
    ASK_TURN = auto()
    BEGIN_TURN = auto()
    END_TURN = auto()
    GIVE_BACK = auto()
    NOTE_AWAITED = auto()
    NOTE_BUSY = auto()
    CORRECT_DRAIN = auto()
    OPEN_SEGMENTS = auto()
    RELEASE_SEGMENTS = auto()
    RECORD_ENDS = auto()
    LOOK_AT_STREAMS = auto()
    DROP_EVENTS = auto()
    DROP_GATE = auto()
    DROP_TURN = auto()


class Verdict(_Counted):
    FITS = auto()
    TOO_DEEP = auto()
    UNMEASURED = auto()
    FULL = auto()


class Admission(_Counted):
    NONE = auto()
    OPENING = auto()
    TO_TURN = auto()
    TO_QUEUE = auto()


class View(ctypes.Structure):
    _fields_ = (
        ("phase", ctypes.c_int),
        ("now", U64),
        ("verdict", ctypes.c_int),
        ("is_any_closed", ctypes.c_bool),
        ("has_ends", ctypes.c_bool),
        ("has_unrecorded_end", ctypes.c_bool),
        ("is_idle", ctypes.c_bool),
        ("is_queue_turn", ctypes.c_bool),
        ("due_at", U64),
    )

    phase: int
    now: int
    verdict: int
    is_any_closed: bool
    has_ends: bool
    has_unrecorded_end: bool
    is_idle: bool
    is_queue_turn: bool
    due_at: int


class Step(ctypes.Structure):
    _fields_ = (("phase", ctypes.c_int), ("wakes", ctypes.c_bool), ("action", ctypes.c_int), ("wait_ns", U64))

    phase: int
    wakes: bool
    action: int
    wait_ns: int


class Machine:
    """The functions of gate_machine.c."""

    def __init__(self, library: ctypes.CDLL) -> None:
        self._step = library.gate_step
        self._step.restype = Step
        self._admission = library.gate_admission
        self._awaits_launches = library.gate_awaits_launches
        self._awaits_launches.restype = ctypes.c_bool

    def step(self, view: View, event: Event) -> Step:
        step = self._step(ctypes.byref(view), event.value)
        assert isinstance(step, Step)
        return step

    def admission(self, phase: Phase) -> Admission:
        return Admission(self._admission(phase.value))

    def awaits_launches(self, phase: Phase) -> bool:
        return bool(self._awaits_launches(phase.value))
