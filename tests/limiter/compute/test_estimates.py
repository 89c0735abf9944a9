"""Estimates of GPU time by kernel: how they follow measurements, and how the table drops entries."""

import ctypes
from random import Random

from hypothesis import given
from hypothesis import strategies as st

from tests.limiter.compute.turn_structures import U64


class Estimates:
    """A table of estimates.

    Args:
        compute: the library's pure functions.
    """

    def __init__(self, compute: ctypes.CDLL) -> None:
        self._compute = compute
        self._room = ctypes.create_string_buffer(2048 * 24 + 24)

    def learn(self, key: int, *samples: int) -> None:
        for ns in samples:
            self._compute.estimates_learn(self._room, U64(key), U64(ns))

    def learn_beside(self, key: int, *samples: int) -> None:
        for ns in samples:
            self._compute.estimates_learn_beside(self._room, U64(key), U64(ns))

    def learn_linked(self, key: int, *samples: int) -> None:
        for ns in samples:
            self._compute.estimates_learn_linked(self._room, U64(key), U64(ns))

    def fit(self, expected: int, measured: int, *, is_dense: bool) -> None:
        self._compute.estimates_fit(self._room, U64(expected), U64(measured), ctypes.c_bool(is_dense))

    def is_doubtful(self, key: int) -> bool:
        return bool(self._compute.estimates_is_doubtful(self._room, U64(key)))

    def expected(self, key: int) -> int | None:
        found = U64()
        return found.value if self._compute.estimates_of(self._room, U64(key), ctypes.byref(found)) else None


KEY, OTHER = 5 << 32, 6 << 32


def test_estimates_follow_measurements_of_single_and_overlapping_kernels(compute: ctypes.CDLL) -> None:
    estimates = Estimates(compute)
    assert estimates.expected(KEY) is None
    estimates.learn(KEY, 1500)
    assert estimates.expected(KEY) == 1500
    for _ in range(40):
        estimates.fit(estimates.expected(KEY) or 0, 150, is_dense=False)
    assert 140 <= (estimates.expected(KEY) or 0) <= 160
    for is_dense, most in ((True, 1875), (False, 1500)):
        for _ in range(40):
            estimates.fit(estimates.expected(KEY) or 0, 9000, is_dense=is_dense)
        assert most - 20 <= (estimates.expected(KEY) or 0) <= most
    estimates.learn(OTHER, 2**64 - 1)
    assert estimates.expected(OTHER) is not None


def test_a_sample_that_was_interrupted_hardly_changes_an_estimate(compute: ctypes.CDLL) -> None:
    """The first samples of a kernel are taken while the former tenant's work still runs, with slices of 2 ms."""
    estimates = Estimates(compute)
    estimates.learn(KEY, 2_000_000, 70_000, 4_000_000, 71_000)
    assert estimates.expected(KEY) == 70_000
    estimates.learn(KEY, *[70_000] * 12, 4_000_000)
    assert 70_000 < (estimates.expected(KEY) or 0) < 90_000


def test_a_long_estimate_is_doubtful_until_the_second_sample(compute: ctypes.CDLL) -> None:
    """The driver loads a kernel when it is first launched: 1.6 ms were measured of a kernel of 0.05 ms (H100)."""
    estimates = Estimates(compute)
    assert not estimates.is_doubtful(KEY)
    estimates.learn(KEY, 1_600_000)
    estimates.learn(OTHER, 50_000)
    assert (estimates.is_doubtful(KEY), estimates.is_doubtful(OTHER)) == (True, False)
    estimates.learn(KEY, 50_000)
    assert (estimates.is_doubtful(KEY), estimates.expected(KEY)) == (False, 50_000)


def test_a_kernel_that_takes_much_longer_from_now_on_is_believed_at_the_second_sample(compute: ctypes.CDLL) -> None:
    estimates = Estimates(compute)
    estimates.learn(KEY, *[1000] * 20, 50_000)
    assert (estimates.expected(KEY) or 0) < 2000
    estimates.learn(KEY, 50_000)
    assert estimates.expected(KEY) == 50_000


@given(st.integers(1_000, 100_000), st.integers(1, 50), st.integers(0, 2**32))
def test_the_estimate_of_a_kernel_of_two_lengths_is_near_their_average(
    compute: ctypes.CDLL, short: int, times_as_long: int, seed: int
) -> None:
    estimates, random, seen = Estimates(compute), Random(seed), []
    for _ in range(1000):
        estimates.learn(KEY, random.choice((short, short * times_as_long)))
        seen.append(estimates.expected(KEY) or 0)
    average = sum(seen[100:]) / len(seen[100:])
    assert 0.75 <= average / (short * (1 + times_as_long) / 2) <= 1.25


@given(st.lists(st.integers(1, 2**64 - 1), min_size=1, max_size=3000, unique=True))
def test_a_full_table_of_estimates_drops_the_oldest(compute: ctypes.CDLL, keys: list[int]) -> None:
    room, found = ctypes.create_string_buffer(2048 * 24 + 24), U64()
    for key in keys:
        compute.estimates_learn(room, U64(key), U64(7))
        assert compute.estimates_of(room, U64(key), ctypes.byref(found))


def test_kernels_are_distinguished_by_function_and_shape(compute: ctypes.CDLL) -> None:
    def key(what: int, *shape: int) -> int:
        return int(compute.estimates_key(ctypes.c_void_p(what), (ctypes.c_uint * 6)(*shape)))

    keys = [
        key(64, 1, 1, 1, 32, 1, 1),
        key(64, 2, 1, 1, 32, 1, 1),
        key(128, 1, 1, 1, 32, 1, 1),
        key(64, 1, 1, 1, 1, 32),
    ]
    assert len(set(keys)) == len(keys)
    assert key(0) != 0


def test_an_estimate_that_is_learned_beside_others_is_an_average_without_their_slices(compute: ctypes.CDLL) -> None:
    """Nine launches in ten take 8 to 12 us, and one takes a slice of 2 ms more."""
    random, estimates = Random(1), Estimates(compute)
    estimates.learn(KEY, 1_400_000)  # with the loading of the kernel
    for number in range(15):
        estimates.learn_beside(KEY, random.randint(8_000, 12_000) + (2_000_000 if number % 10 == 9 else 0))
    assert 9_000 <= (estimates.expected(KEY) or 0) <= 11_000


def test_an_estimate_of_many_samples_learns_nothing_beside_others(compute: ctypes.CDLL) -> None:
    estimates = Estimates(compute)
    estimates.learn(KEY, *[10_000] * 16)
    estimates.learn_beside(KEY, 3_000, 14_000)
    assert estimates.expected(KEY) == 10_000


def test_an_estimate_that_is_far_too_long_is_learned_anew_beside_others(compute: ctypes.CDLL) -> None:
    """The host was interrupted during two samples, so a kernel of 90 us counted as one of 2 ms when turns became joint.

    Its average of 16 samples was 0.5 ms, and stayed: six times its GPU time was charged.
    """
    estimates = Estimates(compute)
    estimates.learn(KEY, *[90_000] * 5, 2_000_000, 2_000_000)
    assert estimates.expected(KEY) == 2_000_000
    for number in range(40):
        estimates.learn_beside(KEY, 90_000 + (4_000_000 if number % 3 == 2 else 0))
    assert 85_000 <= (estimates.expected(KEY) or 0) <= 95_000


def test_an_estimate_of_many_samples_is_corrected_beside_others_by_several_in_a_row(compute: ctypes.CDLL) -> None:
    estimates = Estimates(compute)
    estimates.learn(KEY, *[500_000] * 16)
    estimates.learn_beside(KEY, 90_000, 90_000, 500_000, 90_000, 90_000, 3_000_000, 90_000)
    assert estimates.expected(KEY) == 500_000
    estimates.learn_beside(KEY, 90_000)
    assert estimates.expected(KEY) == 90_000


def test_an_estimate_of_a_collective_follows_its_shortest_samples(compute: ctypes.CDLL) -> None:
    """Nine kernels in ten spin for up to 30 ms before they work for 1 ms."""
    random, estimates = Random(1), Estimates(compute)
    for number in range(200):
        estimates.learn_linked(KEY, 1_000_000 + (random.randint(0, 30_000_000) if number % 10 else 0))
        if number > 10:
            assert 900_000 <= (estimates.expected(KEY) or 0) <= 5_000_000


def test_an_estimate_on_a_linked_card_follows_a_kernel_that_has_become_longer(compute: ctypes.CDLL) -> None:
    estimates = Estimates(compute)
    estimates.learn_linked(KEY, *[1_000_000] * 20)
    estimates.learn_linked(KEY, *[3_000_000] * 300)
    assert (estimates.expected(KEY) or 0) >= 2_000_000
