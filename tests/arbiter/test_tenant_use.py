"""tenant_use.h: what a region says of a tenant's use of the card, and how it was served jointly compared with apart."""

import ctypes

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.arbiter.simulation import MS, SECOND, START, U64

PASSED = 400 * MS
BURST, BEST_EFFORT = 40, 0


class Counter(ctypes.Structure):
    _fields_ = (("value", U64), ("possible_ns", U64))


class Recent(ctypes.Structure):
    _fields_ = (("ns", U64), ("at", U64))


class Use(ctypes.Structure):
    _fields_ = (
        ("read_at", U64),
        ("gpu", Counter),
        ("waited", Counter),
        ("used_ns", U64),
        ("waiting_ns", U64),
        ("apart_permille", ctypes.c_uint32),
        ("apart_served", ctypes.c_uint32),
        ("apart_waiting", ctypes.c_uint32),
        ("recent", Recent),
        ("is_new", ctypes.c_bool),
    )


class Measured:
    """A tenant whose use was measured apart, and then jointly, as parts of the time."""

    def __init__(self, library: ctypes.CDLL, apart: tuple[float, float], joint: tuple[float, float]) -> None:
        for function in (
            library.tenant_use_is_ahead,
            library.tenant_use_is_behind,
            library.tenant_use_is_slower,
            library.tenant_use_is_unseen,
            library.tenant_use_asks_within,
        ):
            function.restype = ctypes.c_bool
        self._library, self._use = library, Use()
        self._measure(apart)
        library.tenant_use_note_apart(ctypes.byref(self._use), U64(PASSED))
        self._measure(joint)

    def _measure(self, parts: tuple[float, float]) -> None:
        self._use.used_ns, self._use.waiting_ns = (int(part * PASSED) for part in parts)

    def is_behind(self, guarantee: int = BURST) -> bool:
        return bool(self._library.tenant_use_is_behind(ctypes.byref(self._use), guarantee, U64(PASSED)))

    def is_slower(self, guarantee: int = BURST, window: int = PASSED) -> bool:
        use = ctypes.byref(self._use)
        return bool(self._library.tenant_use_is_slower(use, guarantee, U64(PASSED), U64(window)))

    def is_ahead(self, guarantee: int = BURST, window: int = PASSED) -> bool:
        return bool(self._library.tenant_use_is_ahead(ctypes.byref(self._use), guarantee, U64(window)))

    def asks_within(self, guarantee: int = BURST) -> bool:
        return bool(self._library.tenant_use_asks_within(ctypes.byref(self._use), guarantee, U64(PASSED)))

    def is_unseen(self, guarantee: int = BURST) -> bool:
        return bool(self._library.tenant_use_is_unseen(ctypes.byref(self._use), guarantee, U64(PASSED)))


@pytest.mark.parametrize(
    ("apart", "joint", "guarantee", "is_behind"),
    [
        ((0.4, 0.9), (0.2, 0.95), BURST, True),  # it has half of its guarantee
        ((0.4, 0.9), (0.0, 0.01), BURST, False),  # it rests
        ((0.8, 0.9), (0.45, 0.95), BURST, False),  # what it had beyond its guarantee is not protected
        ((0.1, 0.1), (0.1, 0.4), BURST, True),  # its requests take four times as long
        ((0.002, 0.002), (0.002, 0.01), BURST, False),  # it hardly waits
        ((0.8, 0.9), (0.45, 0.9), BEST_EFFORT, False),
        ((0.8, 0.9), (0.3, 0.9), BEST_EFFORT, True),
    ],
)
def test_behind(
    pure: ctypes.CDLL, apart: tuple[float, float], joint: tuple[float, float], guarantee: int, *, is_behind: bool
) -> None:
    assert Measured(pure, apart, joint).is_behind(guarantee) == is_behind


@pytest.mark.parametrize(
    ("apart", "joint", "guarantee", "is_slower"),
    [
        ((0.07, 0.09), (0.07, 0.16), BURST, True),  # prompts beside a decoder
        ((0.07, 0.09), (0.07, 0.16), BEST_EFFORT, False),
        ((0.008, 0.012), (0.009, 0.025), BURST, False),  # 20 short requests a second
        ((0.9, 0.98), (0.88, 0.98), BURST, False),
        ((0.45, 0.06), (0.33, 0.33), BURST, True),  # it launches while its kernels run, and waits for the last ones
        ((0.2, 0.2), (0.35, 0.3), BURST, False),  # it does more
        ((0.6, 0.3), (0.45, 0.5), BURST, False),  # it has more than its guarantee
        ((0.0, 0.0), (0.1, 0.3), BURST, False),  # nothing is known of it apart
    ],
)
def test_slower(
    pure: ctypes.CDLL, apart: tuple[float, float], joint: tuple[float, float], guarantee: int, *, is_slower: bool
) -> None:
    assert Measured(pure, apart, joint).is_slower(guarantee) == is_slower


@pytest.mark.parametrize(("waiting", "is_slower"), [(0.16, False), (0.3, True)])
def test_slower_in_a_longer_window_even_if_it_waits_as_apart_from_now_on(
    pure: ctypes.CDLL, waiting: float, *, is_slower: bool
) -> None:
    """Two percent of the window are 32 ms, and more than apart it has waited for 28 or 84 ms."""
    measured = Measured(pure, (0.07, 0.09), (0.07, waiting))
    assert measured.is_slower()
    assert measured.is_slower(window=4 * PASSED) == is_slower


@pytest.mark.parametrize(
    ("joint", "guarantee", "is_ahead"),
    [
        (0.4, BURST, False),
        (0.45, BURST, False),
        (0.5, BURST, True),
        (0.01, BEST_EFFORT, False),
        (0.1, BEST_EFFORT, True),
    ],
)
def test_ahead(pure: ctypes.CDLL, joint: float, guarantee: int, *, is_ahead: bool) -> None:
    assert Measured(pure, (0.3, 0.3), (joint, 0.3)).is_ahead(guarantee) == is_ahead


def test_ahead_in_a_longer_window_even_if_it_uses_nothing_from_now_on(pure: ctypes.CDLL) -> None:
    measured = Measured(pure, (0.3, 0.3), (0.6, 0.3))
    assert measured.is_ahead()
    assert not measured.is_ahead(window=2 * PASSED)


@pytest.mark.parametrize(
    ("joint", "guarantee", "asks"),
    [
        ((0.1, 0.1), BURST, True),
        ((0.001, 0.002), BURST, True),  # one request
        ((0.0, 0.0), BURST, False),
        ((0.5, 0.4), BURST, False),  # it has more than its guarantee
        ((0.1, 0.1), BEST_EFFORT, False),
    ],
)
def test_asks_within(pure: ctypes.CDLL, joint: tuple[float, float], guarantee: int, *, asks: bool) -> None:
    assert Measured(pure, (0.3, 0.3), joint).asks_within(guarantee) == asks


@pytest.mark.parametrize(
    ("apart", "joint", "guarantee", "is_unseen"),
    [
        ((0.07, 0.09), (0.0, 0.0), BURST, True),  # no prompt has come
        ((0.07, 0.09), (0.0, 0.0), BEST_EFFORT, False),
        ((0.07, 0.09), (0.02, 0.03), BURST, False),
        ((0.01, 0.01), (0.0, 0.0), BURST, False),  # it hardly waited apart either
        ((0.0, 0.0), (0.0, 0.0), BURST, False),
    ],
)
def test_unseen(
    pure: ctypes.CDLL, apart: tuple[float, float], joint: tuple[float, float], guarantee: int, *, is_unseen: bool
) -> None:
    assert Measured(pure, apart, joint).is_unseen(guarantee) == is_unseen


def read(library: ctypes.CDLL, use: Use, gpu_ns: int, waited_ns: int, now: int) -> int:
    library.tenant_use_read.restype = U64
    return int(library.tenant_use_read(ctypes.byref(use), U64(gpu_ns), U64(waited_ns), U64(now)))


@given(st.lists(st.tuples(st.integers(0, 100 * MS), st.integers(0, 2**64 - 1), st.integers(0, 2**64 - 1)), max_size=50))
def test_no_more_is_counted_than_the_time_that_has_passed_whatever_the_region_says(
    pure: ctypes.CDLL, readings: list[tuple[int, int, int]]
) -> None:
    use, now, counted = Use(), START, 0
    for step, gpu_ns, waited_ns in readings:
        now += step
        counted += read(pure, use, gpu_ns, waited_ns, now)
    assert counted == use.used_ns <= now - START
    assert use.waiting_ns <= now - START
    assert use.recent.ns <= SECOND


@given(st.integers(1, 40))
def test_what_is_charged_in_steps_is_counted_in_full(pure: ctypes.CDLL, steps: int) -> None:
    """A container charges a turn that is not asked back every 50 ms, and a kernel of 0.8 s when it has ended."""
    use, gpu_ns, period = Use(), 0, 20 * MS
    for number in range(1000):
        if number % steps == 0:
            gpu_ns += int(0.95 * steps * period)
        read(pure, use, gpu_ns, 0, START + number * period)
    assert use.used_ns == pytest.approx(0.95 * 1000 * period, rel=0.05)
