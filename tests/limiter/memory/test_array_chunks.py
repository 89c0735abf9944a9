"""Charges of small arrays, compared with a driver that places each array in the first chunk with room."""

import ctypes

import pytest
from hypothesis import given
from hypothesis import strategies as st

U64, U32 = ctypes.c_uint64, ctypes.c_uint32
CHUNK, MIB = 2 << 20, 1 << 20
SIZES = st.integers(1, MIB >> 9).map(lambda units: units << 9)


class End(ctypes.Structure):
    _fields_ = (("bytes", U64), ("is_due", ctypes.c_bool))


class ArrayChunks:
    """The chunks of device 0, empty at first."""

    def __init__(self, pure: ctypes.CDLL) -> None:
        pure.fork_forget_all()
        pure.array_chunks_remove.restype = End
        self.pure, self.charged = pure, 0

    def make(self, size: int, measured: int = 0) -> None:
        if not self.joins(size, measured):
            self.charged += CHUNK
            self.pure.array_chunks_add(0, U64(size), U32(measured))

    def joins(self, size: int, measured: int = 0) -> bool:
        return bool(self.pure.array_chunks_join(0, U64(size), U32(measured)))

    def end(self, size: int, measured: int = 0, *, is_measurable: bool = False) -> bool:
        """Ends an array; returns whether a measurement is due."""
        end = self.pure.array_chunks_remove(0, U64(size), U32(measured), is_measurable)
        self.charged -= end.bytes
        return bool(end.is_due)


@pytest.fixture
def chunks(pure: ctypes.CDLL) -> ArrayChunks:
    return ArrayChunks(pure)


def chunks_of(sizes: list[int]) -> int:
    """The number of chunks that the driver uses."""
    rooms: list[int] = []
    for size in sizes:
        place = next((place for place, room in enumerate(rooms) if room >= size), len(rooms))
        rooms[place:] = [(rooms[place] if place < len(rooms) else CHUNK) - size, *rooms[place + 1 :]]
    return len(rooms)


@given(st.lists(SIZES, max_size=80))
def test_chunks_are_charged_and_released_as_the_driver_does(pure: ctypes.CDLL, sizes: list[int]) -> None:
    chunks = ArrayChunks(pure)
    for size in sizes:
        chunks.make(size)
    assert chunks_of(sizes) * CHUNK <= chunks.charged <= len(sizes) * CHUNK
    for size in sizes:
        chunks.end(size)
    assert chunks.charged == 0


def test_arrays_that_fill_chunks_cost_no_more_than_those(chunks: ArrayChunks) -> None:
    for _ in range(40):
        chunks.make(16 << 10)
    assert chunks.charged == CHUNK


def test_room_of_a_chunk_that_is_being_charged_is_not_given_away(chunks: ArrayChunks) -> None:
    assert not chunks.joins(512)
    assert not chunks.joins(512)


def test_a_hole_left_by_a_free_is_not_used_without_a_charge(chunks: ArrayChunks) -> None:
    for _ in range(2):
        chunks.make(700 << 10)
    chunks.end(700 << 10)
    assert not chunks.joins(700 << 10)


def test_a_measurement_forgets_the_room_in_chunks(chunks: ArrayChunks) -> None:
    chunks.make(512, measured=1)
    assert chunks.joins(512, measured=1)
    assert not chunks.joins(512, measured=2)


def test_freed_pieces_stay_charged_until_a_measurement_is_due(chunks: ArrayChunks) -> None:
    for _ in range(18):
        chunks.make(MIB)
    due = [chunks.end(MIB, is_measurable=True) for _ in range(17)]
    assert (due, chunks.charged) == ([False] * 15 + [True] * 2, 9 * CHUNK)


def test_after_a_measurement_no_further_one_is_due(chunks: ArrayChunks) -> None:
    for _ in range(18):
        chunks.make(MIB)
    assert [chunks.end(MIB, is_measurable=True) for _ in range(2)] == [False] * 2
    assert [chunks.end(MIB, measured=1, is_measurable=True) for _ in range(15)] == [False] * 15


def test_after_a_correction_the_end_of_the_last_array_is_measured(chunks: ArrayChunks) -> None:
    chunks.make(MIB, measured=1)
    assert not chunks.end(MIB, measured=1, is_measurable=True)
    assert chunks.charged == 0
    chunks.make(MIB, measured=1)
    assert chunks.end(MIB, measured=2, is_measurable=True)
    assert chunks.charged == CHUNK
