"""The segments of launches that are queued ahead of their turn, compared with a list of what each of them contains."""

import ctypes
from dataclasses import dataclass, field

from hypothesis import given
from hypothesis import strategies as st

from tests.limiter.compute.turn_structures import MS, U64

US = 1000
SEGMENTS = 64
SIZE = 500 * US
MOST_CLOSED_NS = 20 * MS
MOST_CLOSED_OPERATIONS = 448 + 3  # the last launch that is admitted may begin a segment


class Segment(ctypes.Structure):
    _fields_ = (("expected", U64), ("launches", ctypes.c_uint))


class Segments(ctypes.Structure):
    _fields_ = (
        ("ring", Segment * SEGMENTS),
        ("newest", U64),
        ("opened", U64),
        ("begun", U64),
        ("is_sealed", ctypes.c_bool),
        ("closed_ns", U64),
        ("closed_launches", ctypes.c_uint),
    )


class Place(ctypes.Structure):
    _fields_ = (("number", U64), ("is_new", ctypes.c_bool))


@dataclass
class Queue:
    """Segments, and a list of the GPU times of the launches in each of them."""

    pure: ctypes.CDLL
    segments: Segments = field(default_factory=Segments)
    launches: list[list[int]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.pure.segments_add.restype = Place
        for name in ("segments_has_room", "segments_any_closed"):
            getattr(self.pure, name).restype = ctypes.c_bool
        for name in ("segments_open_next", "segments_not_begun_ns", "segments_begun_ns"):
            getattr(self.pure, name).restype = U64

    def ask(self, name: str, *arguments: object) -> int:
        function = getattr(self.pure, name)  # as declared above, unlike pure[name]
        return int(function(ctypes.byref(self.segments), *arguments))

    def add(self, ns: int, *, is_open: bool = False) -> None:
        if not self.pure.segments_has_room(ctypes.byref(self.segments), U64(ns)):
            return
        is_open &= not self.closed()
        place = self.pure.segments_add(ctypes.byref(self.segments), U64(ns), U64(SIZE), is_open)
        if place.is_new:
            self.launches.append([])
        assert place.number == len(self.launches)
        assert place.number > self.segments.opened or is_open
        self.launches[-1].append(ns)
        assert sum(self.launches[-1]) <= SIZE or len(self.launches[-1]) == 1

    def closed(self) -> list[list[int]]:
        return self.launches[self.segments.opened :]

    def open_next(self) -> None:
        if self.closed():
            before = self.segments.opened
            assert self.ask("segments_open_next") == before + 1

    def begin(self, number: int) -> None:
        self.pure.segments_note_begun(ctypes.byref(self.segments), number & 0xFFFFFFFF)

    def check(self) -> None:
        """The sums are those of the list, and what is closed is bounded."""
        segments = self.segments
        assert segments.closed_ns == sum(map(sum, self.closed()))
        assert segments.closed_launches == sum(3 + len(segment) for segment in self.closed())
        assert self.ask("segments_any_closed") == bool(self.closed())
        assert self.ask("segments_not_begun_ns") == sum(map(sum, self.launches[segments.begun : segments.opened]))
        assert segments.closed_launches <= MOST_CLOSED_OPERATIONS
        assert len(self.closed()) <= 1 or segments.closed_ns <= MOST_CLOSED_NS
        assert segments.begun <= segments.opened <= segments.newest < segments.begun + SEGMENTS


steps = st.lists(
    st.one_of(
        st.tuples(st.sampled_from(["add", "run"]), st.integers(1, 3 * SIZE)),
        st.tuples(st.just("many"), st.integers(1, 20 * US)),
        st.tuples(st.just("open"), st.just(0)),
        st.tuples(st.just("begin"), st.integers(-2, 70)),
    ),
    max_size=60,
)


@given(steps=steps)
def test_segments_are_what_a_list_of_launches_says(pure: ctypes.CDLL, steps: list[tuple[str, int]]) -> None:
    queue = Queue(pure)
    for what, number in steps:
        if what == "add":
            queue.add(number)
        elif what == "run":
            queue.add(number, is_open=True)
        elif what == "many":
            for _ in range(200):
                queue.add(number)
        elif what == "open":
            queue.open_next()
        else:
            queue.begin(queue.segments.begun + number)
        queue.check()


def test_the_card_s_word_wraps_around(pure: ctypes.CDLL) -> None:
    queue = Queue(pure)
    queue.segments.newest = queue.segments.opened = queue.segments.begun = 2**32 - 2
    queue.launches = [[] for _ in range(2**3)]
    for _ in range(4):
        pure.segments_add(ctypes.byref(queue.segments), U64(SIZE), U64(SIZE), False)
        queue.ask("segments_open_next")
    queue.begin(1)
    assert queue.segments.begun == 2**32 + 1
    assert queue.ask("segments_not_begun_ns") == SIZE
    queue.begin(2**32 - 1)  # late
    assert queue.segments.begun == 2**32 + 1
