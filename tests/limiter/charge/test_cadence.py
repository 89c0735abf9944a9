"""Intervals between measurements: short after a change, longer while nothing changes, bounded in total time."""

import ctypes
import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

LEAST, MOST, TIMES = 10, 80, 20
U64 = ctypes.c_uint64


class Terms(ctypes.Structure):
    _fields_ = (("least", U64), ("most", U64), ("times", U64))


class Cadence(ctypes.Structure):
    _fields_ = (("pause", U64), ("earliest", U64), ("due", U64))


class Looks:
    """Asks at given times whether a measurement is due, and records it."""

    def __init__(self, pure: ctypes.CDLL) -> None:
        self.pure = pure
        self.state = Cadence()
        self.terms = Terms(LEAST, MOST, TIMES)

    def look(self, now: int, *, takes: int = 0, finds: bool = False) -> bool:
        due = self.pure.cadence_take(ctypes.byref(self.state), self.terms, U64(now))
        if due:
            moments = U64(now), U64(now + takes)
            self.pure.cadence_record(ctypes.byref(self.state), self.terms, *moments, ctypes.c_bool(finds))
        return bool(due)

    def hasten(self) -> None:
        self.pure.cadence_hasten(ctypes.byref(self.state))


@pytest.fixture
def looks(pure: ctypes.CDLL) -> Looks:
    return Looks(pure)


def moments(looks: Looks, until: int, *, finds: bool) -> list[int]:
    return [now for now in range(until) if looks.look(now, finds=finds)]


def test_intervals_grow_while_measurements_find_nothing(looks: Looks) -> None:
    assert moments(looks, 400, finds=False) == [0, 10, 30, 70, 150, 230, 310, 390]


def test_intervals_stay_short_while_measurements_find_changes(looks: Looks) -> None:
    assert moments(looks, 50, finds=True) == [0, 10, 20, 30, 40]


def test_a_hint_shortens_the_next_intervals(looks: Looks) -> None:
    moments(looks, 151, finds=False)
    looks.hasten()
    assert [now for now in range(151, 260) if looks.look(now)] == [160, 170, 190, 230]


def test_only_one_of_several_threads_measures(looks: Looks) -> None:
    state, terms = ctypes.byref(looks.state), looks.terms
    taken = [looks.pure.cadence_take(state, terms, U64(5)) for _ in range(9)]
    assert taken == [True] + [False] * 8


@given(
    steps=st.lists(
        st.tuples(st.integers(0, 30), st.integers(0, 9), st.booleans(), st.booleans()), min_size=1, max_size=80
    )
)
def test_the_minimum_interval_and_the_time_budget_hold_for_any_history(
    pure: ctypes.CDLL, steps: list[tuple[int, int, bool, bool]]
) -> None:
    looks, now, spans = Looks(pure), 0, []
    for pause, takes, finds, is_hastened in steps:
        now += pause
        if is_hastened:
            looks.hasten()
        if looks.look(now, takes=takes, finds=finds):
            now += takes
            spans.append((now - takes, now))
    for (begun, ended), (next_begun, _) in itertools.pairwise(spans):
        assert next_begun - ended >= max(LEAST, TIMES * (ended - begun))


@given(waited=st.integers(0, 10**6), finds=st.lists(st.booleans(), max_size=8))
def test_no_interval_exceeds_the_maximum(pure: ctypes.CDLL, waited: int, finds: list[bool]) -> None:
    looks = Looks(pure)
    now = waited
    for found in finds:
        assert looks.look(now, finds=found)
        now += MOST
    assert looks.look(now)
