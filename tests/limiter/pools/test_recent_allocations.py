"""The cache of recent pool allocations never returns more bytes than were allocated, and returns each entry once."""

import ctypes

import pytest
from hypothesis import given
from hypothesis import strategies as st

GRAIN = 32 << 10
POINTERS = st.integers(0, 40).map(lambda unit: (0x302 << 32) + (unit << 9)) | st.just((1 << 49) - 512)
SIZES = st.integers(0, 4 * GRAIN) | st.sampled_from([20 << 20, (2 << 30) - 1, 2 << 30, 1 << 48])


class Recent(ctypes.Structure):
    _fields_ = (("pool", ctypes.c_int), ("bytes", ctypes.c_uint64))


@pytest.fixture(scope="module")
def recents(pure: ctypes.CDLL) -> ctypes.CDLL:
    pure.recent_allocations_take.restype = Recent
    pure.recent_allocations_add.argtypes = (ctypes.c_uint64, ctypes.c_int, ctypes.c_uint64)
    pure.recent_allocations_take.argtypes = (ctypes.c_uint64,)
    return pure


@given(steps=st.lists(st.tuples(POINTERS, st.none() | st.tuples(st.integers(0, 255), SIZES)), max_size=60))
def test_a_pointer_has_its_last_size_or_none(
    recents: ctypes.CDLL, steps: list[tuple[int, tuple[int, int] | None]]
) -> None:
    recents.fork_forget_all()
    held: dict[int, tuple[int, int]] = {}
    for pointer, added in steps:
        if added:
            recents.recent_allocations_add(pointer, *added)
            held[pointer] = added
            continue
        pool, size = held.pop(pointer, (0, 0))
        taken = recents.recent_allocations_take(pointer)
        assert taken.bytes in {0, size // GRAIN * GRAIN}
        assert taken.bytes == 0 or taken.pool == pool


def test_a_single_allocation_is_always_remembered(recents: ctypes.CDLL) -> None:
    recents.fork_forget_all()
    recents.recent_allocations_add((1 << 49) - 512, 255, (20 << 20) + 5)
    assert [recents.recent_allocations_take((1 << 49) - 512).bytes for _ in range(2)] == [20 << 20, 0]
