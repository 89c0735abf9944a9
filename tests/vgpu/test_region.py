"""The region as the node agent reads it: bytes that a container may have filled with anything."""

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vgpu import region
from vgpu.errors import MalformedRegion
from vgpu.limits import uuid_bytes
from vgpu.region import CardUse, ProcessUse

GPU = "GPU-8f3c2a10-1111-2222-3333-444455556666"


def fresh() -> bytearray:
    return bytearray(region.new().ljust(region.SIZE, b"\0"))


def test_a_fresh_region_is_empty() -> None:
    seen = region.decode(bytes(fresh()))
    assert (seen.cards, seen.processes, seen.recoveries) == ((), (), 0)


def test_cards_and_processes_are_read() -> None:
    data = fresh()
    struct.pack_into("<16sQQQQIIQ", data, 256 + 256, uuid_bytes(GPU), 100, 200, 150, 3, 1, 0, 518)
    struct.pack_into("<QQII", data, 256 + 256 + 168, 9000, 70000, 12, 40)
    struct.pack_into("<IIQQ", data, 8448 + 5 * 704, 42, 0, 7, 4026531836)
    struct.pack_into("<QQ", data, 8448 + 5 * 704 + 64, 999, 100)
    struct.pack_into("<QQ", data, 8448 + 5 * 704 + 320, 0, 30)
    seen = region.decode(bytes(data))
    assert seen.cards == (CardUse(GPU, 100, 200, 150, 3, 518, 0, 0, 9000, 70000, 12, 40),)
    assert seen.processes == (ProcessUse(42, 7, 4026531836, ((GPU, 100),), ((GPU, 30),)),)


def test_no_limit_reads_as_none() -> None:
    data = fresh()
    struct.pack_into("<16sQQQQI", data, 256, uuid_bytes(GPU), 0, 2**64 - 1, 0, 0, 1)
    assert region.decode(bytes(data)).cards[0].limit_bytes is None


@given(st.lists(st.tuples(st.integers(0, region.SIZE - 8), st.binary(min_size=8, max_size=8)), max_size=40))
def test_a_hostile_region_is_read_or_refused_by_our_own_error(edits: list[tuple[int, bytes]]) -> None:
    data = fresh()
    for offset, piece in edits:
        data[offset : offset + 8] = piece
    try:
        seen = region.decode(bytes(data))
    except MalformedRegion:
        return
    assert len(seen.cards) <= region.MAX_CARDS
    assert len(seen.processes) <= region.MAX_PROCESSES


@given(st.binary(max_size=4096))
def test_foreign_bytes_are_refused(data: bytes) -> None:
    with pytest.raises(MalformedRegion):
        region.decode(data)
    with pytest.raises(MalformedRegion):
        region.decode(data.ljust(region.SIZE, b"\0"))
