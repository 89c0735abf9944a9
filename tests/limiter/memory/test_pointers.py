"""The pointer table of a process, against a dictionary as oracle."""

import ctypes

from hypothesis import given
from hypothesis import strategies as st

U64 = ctypes.c_uint64
CHUNK = 2 << 20


class Entry(ctypes.Structure):
    _fields_ = (("key", U64), ("bytes", U64), ("other", U64), ("count", ctypes.c_uint32), ("card", ctypes.c_int))


class Ledger(ctypes.Structure):
    _fields_ = (("entries", ctypes.c_void_p), ("size", ctypes.c_size_t), ("count", ctypes.c_size_t))


class Holding(ctypes.Structure):
    _fields_ = (("card", ctypes.c_int), ("bytes", U64), ("is_piece", ctypes.c_bool))


@given(st.lists(st.tuples(st.booleans(), st.integers(1, 40).map(lambda n: n << 21), st.integers(0, 9)), max_size=400))
def test_the_pointer_table_agrees_with_a_dictionary(pure: ctypes.CDLL, steps: list[tuple[bool, int, int]]) -> None:
    pure.hash_table_take.restype = Entry
    ledger, oracle = Ledger(), dict[int, int]()
    for put, key, size in steps:
        if put:
            assert pure.hash_table_put(ctypes.byref(ledger), Entry(key, size))
            oracle[key] = size
        else:
            found = pure.hash_table_take(ctypes.byref(ledger), U64(key))
            assert (found.key, found.bytes) == ((key, oracle.pop(key)) if key in oracle else (0, 0))
        assert ledger.count == len(oracle)
    pure.hash_table_clear(ctypes.byref(ledger))


@given(st.lists(st.integers(0, 39), max_size=120))
def test_a_chunk_is_charged_from_its_first_piece_to_its_last(pure: ctypes.CDLL, steps: list[int]) -> None:
    """Each number is one of 40 addresses in 4 chunks; a free address is allocated, an allocated one is freed."""
    for name in ("pointers_join_chunk", "pointers_add_piece", "pointers_take"):
        getattr(pure, name).restype = ctypes.c_bool
    charged, oracle = 0, set[int]()
    for place in [*steps, *sorted({n for n in steps if steps.count(n) % 2})]:
        pointer = U64((1 << 40) + place // 10 * CHUNK + place % 10 * 4096)
        if place in oracle:
            oracle.remove(place)
            holding = Holding()
            assert pure.pointers_take(pointer, ctypes.byref(holding))
            charged -= holding.bytes
        else:
            oracle.add(place)
            if not pure.pointers_join_chunk(pointer):
                spare = ctypes.c_bool()
                assert pure.pointers_add_piece(pointer, 0, ctypes.byref(spare))
                assert not spare.value
                charged += CHUNK
        assert charged == CHUNK * len({place // 10 for place in oracle})


def test_a_piece_whose_free_failed_stays_charged(pure: ctypes.CDLL) -> None:
    for name in ("pointers_add_piece", "pointers_take"):
        getattr(pure, name).restype = ctypes.c_bool
    pure.pointers_put_back.restype = U64
    pointer, spare, holding = U64(1 << 41), ctypes.c_bool(), Holding()
    pure.pointers_add_piece(pointer, 0, ctypes.byref(spare))
    pure.pointers_take(pointer, ctypes.byref(holding))
    assert pure.pointers_put_back(pointer, ctypes.byref(holding)) == 0
    assert pure.pointers_take(pointer, ctypes.byref(holding))
    assert holding.bytes == CHUNK
    assert not pure.pointers_take(pointer, ctypes.byref(holding))
