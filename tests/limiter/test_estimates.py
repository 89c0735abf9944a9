"""Estimates of GPU time by kernel: how they follow measurements, and how the table drops entries."""

import ctypes

from hypothesis import given
from hypothesis import strategies as st

from tests.limiter.turn_structures import U64


def test_estimates_follow_measurements_of_single_and_overlapping_kernels(compute: ctypes.CDLL) -> None:
    room = ctypes.create_string_buffer(2048 * 24 + 24)

    def expected(key: int) -> int | None:
        found = U64()
        return found.value if compute.estimates_of(room, U64(key), ctypes.byref(found)) else None

    assert expected(5 << 32) is None
    compute.estimates_learn(room, U64(5 << 32), U64(1000))
    assert expected(5 << 32) == 1000
    compute.estimates_learn(room, U64(5 << 32), U64(2000))
    assert expected(5 << 32) == 1500
    for _ in range(40):
        compute.estimates_fit(room, U64(expected(5 << 32) or 0), U64(150), ctypes.c_bool(False))
    assert 140 <= (expected(5 << 32) or 0) <= 160
    for is_dense, most in ((True, 1875), (False, 1500)):
        for _ in range(40):
            compute.estimates_fit(room, U64(expected(5 << 32) or 0), U64(9000), ctypes.c_bool(is_dense))
        assert most - 20 <= (expected(5 << 32) or 0) <= most
    compute.estimates_learn(room, U64(6 << 32), U64(2**64 - 1))
    assert expected(6 << 32) is not None


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
