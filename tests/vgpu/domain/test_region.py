"""The region as read from outside: untrusted bytes, which a container can overwrite."""

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vgpu.domain.errors import MalformedRegion
from vgpu.domain.formats import region
from vgpu.domain.formats.limits import uuid_bytes
from vgpu.domain.formats.region import Activity, CardUse, ProcessUse, UsageWindow, Wait
from vgpu.domain.identifiers import CardUuid

GPU = CardUuid("GPU-8f3c2a10-1111-2222-3333-444455556666")
MS = 1_000_000


def fresh() -> bytearray:
    return bytearray(region.new().ljust(region.SIZE, b"\0"))


def test_a_fresh_region_is_empty() -> None:
    read = region.decode(bytes(fresh()))
    assert (read.cards, read.processes, read.recoveries) == ((), (), 0)


def test_cards_and_processes_are_read() -> None:
    data = fresh()
    struct.pack_into("<16sQQQQIIQQ", data, 256 + 256, uuid_bytes(GPU), 100, 200, 150, 3, 1, 0, 518, 64)
    struct.pack_into("<qQ", data, 256 + 256 + 96, -11, 12)
    struct.pack_into("<Q", data, 256 + 256 + 152, 77)
    struct.pack_into("<QQII", data, 256 + 256 + 168, 9000, 70000, 12, 40)
    struct.pack_into("<QQIIQQII", data, 256 + 256 + 208, 5, 100, 300, 1000, 6, 101, 301, 10_000)
    struct.pack_into("<IIQQ", data, 8448 + 5 * 704, 42, 0, 7, 4026531836)
    struct.pack_into("<QQ", data, 8448 + 5 * 704 + 64, 999, 100)
    struct.pack_into("<QQ", data, 8448 + 5 * 704 + 320, 0, 30)
    read = region.decode(bytes(data))
    windows = UsageWindow(5, 100, 300, 1000), UsageWindow(6, 101, 301, 10_000)
    assert read.cards == (CardUse(GPU, 100, 200, 150, 3, 518, 64, -11, 12, 0, 0, 77, 9000, 70000, 12, 40, *windows),)
    assert read.processes == (ProcessUse(42, 7, 4026531836, ((GPU, 100),), ((GPU, 30),)),)


def test_the_activity_of_each_card_is_read() -> None:
    data = fresh()
    struct.pack_into("<16sQQQQI", data, 256 + 256, uuid_bytes(GPU), 0, 0, 0, 0, 1)
    struct.pack_into("<8Q", data, 753920 + 256, *range(1, 9))
    struct.pack_into("<12Q", data, 753920 + 256 + 128, *range(9, 21))
    waits = Wait(1, 2), Wait(3, 4), Wait(5, 6), Wait(7, 8)
    assert region.decode(bytes(data)).cards[0].activity == Activity(*waits, *range(9, 21))


def test_a_region_of_version_1_is_read_without_activity() -> None:
    data = bytearray(region.FIRST_HEADER.ljust(753920, b"\0"))
    struct.pack_into("<16sQQQQI", data, 256, uuid_bytes(GPU), 7, 0, 0, 0, 1)
    assert region.decode(bytes(data)).cards == (CardUse(GPU, 7, 0, 0, 0, 0),)
    assert region.decode(bytes(data.ljust(region.SIZE, b"\1"))).cards[0].activity == Activity()
    with pytest.raises(MalformedRegion):
        region.decode(bytes(data[:-1]))


def test_a_region_of_version_2_is_read_without_rows_of_exports() -> None:
    data = bytearray(struct.pack("<8sIIII", b"VGPUREGN", 2, 762112, 1024, 32).ljust(762112, b"\0"))
    struct.pack_into("<16sQQQQI", data, 256, uuid_bytes(GPU), 7, 0, 0, 0, 1)
    struct.pack_into("<2Q", data, 753920, 5, 6)
    assert region.decode(bytes(data)).cards == (CardUse(GPU, 7, 0, 0, 0, 0, activity=Activity(turn=Wait(5, 6))),)
    with pytest.raises(MalformedRegion):
        region.decode(bytes(data[:-1]))


def test_a_region_is_not_read_without_its_end() -> None:
    with pytest.raises(MalformedRegion):
        region.decode(bytes(fresh()[:-1]))


def test_the_calls_of_each_slot_and_the_cards_alone_are_read() -> None:
    data = fresh()
    struct.pack_into("<16sQQQQI", data, 256, uuid_bytes(GPU), 100, 200, 150, 3, 1)
    struct.pack_into("<Q", data, 8448 + 5 * 704 + 24, 7 << 32 | 1)
    assert region.calls(bytes(data)) == [7 << 32 | 1 if slot == 5 else 0 for slot in range(region.MAX_PROCESSES)]
    assert region.cards(bytes(data)) == region.decode(bytes(data)).cards
    for read in (region.calls, region.cards):
        with pytest.raises(MalformedRegion):
            read(bytes(data[:-1]))


def test_no_limit_reads_as_none() -> None:
    data = fresh()
    struct.pack_into("<16sQQQQI", data, 256, uuid_bytes(GPU), 0, 2**64 - 1, 0, 0, 1)
    assert region.decode(bytes(data)).cards[0].limit_bytes is None


@given(st.lists(st.tuples(st.integers(0, region.SIZE - 8), st.binary(min_size=8, max_size=8)), max_size=40))
def test_a_damaged_region_is_read_or_malformed(edits: list[tuple[int, bytes]]) -> None:
    data = fresh()
    for offset, piece in edits:
        data[offset : offset + 8] = piece
    try:
        read = region.decode(bytes(data))
    except MalformedRegion:
        return
    assert len(read.cards) <= region.MAX_CARDS
    assert len(read.processes) <= region.MAX_PROCESSES


@given(st.binary(max_size=4096))
def test_other_bytes_are_malformed(data: bytes) -> None:
    with pytest.raises(MalformedRegion):
        region.decode(data)
    with pytest.raises(MalformedRegion):
        region.decode(data.ljust(region.SIZE, b"\0"))


@pytest.mark.parametrize(
    ("window", "gpu_ns", "after_ms", "share"),
    [
        (UsageWindow(), 0, 0, 0.0),
        (UsageWindow(1, 0, 300, 1000), 100 * MS, 500, 0.3),  # the last full window
        (UsageWindow(1, 0, 300, 1000), 100 * MS, 2000, 0.05),  # the last full window is over; nothing was charged since
        (UsageWindow(1, 0, 300, 4000), 300 * MS, 3000, 0.3),
        (UsageWindow(1, 0), 250 * MS, 500, 0.5),  # no window was full yet
        (UsageWindow(1, 2**64 - 1, 2**32 - 1, 2**32 - 1), 0, 1, 1.0),  # damaged figures
        (UsageWindow(2**64 - 1, 0, 300, 1000), 0, 1, 0.3),
    ],
)
def test_the_recent_share_is_that_of_the_last_full_window_while_it_is_fresh(
    window: UsageWindow, gpu_ns: int, after_ms: int, share: float
) -> None:
    card = CardUse(GPU, 0, None, 0, 0, 0, gpu_ns=gpu_ns)
    assert region.recent_share(card, window, 1 + after_ms * MS) == pytest.approx(share)


def test_the_cards_that_living_processes_have_joined_are_read() -> None:
    other = CardUuid("GPU-9f3c2a10-1111-2222-3333-444455556666")
    data = fresh()
    for index, gpu in enumerate((GPU, other)):
        struct.pack_into("<16sQQQQI", data, 256 + 256 * index, uuid_bytes(gpu), 0, 0, 0, 0, 1)
    for slot, (pid, word) in enumerate([(42, 3), (43, 0), (0, 1), (44, 0x80000002)]):
        struct.pack_into("<I40xI", data, 8448 + slot * 704, pid, word)
    assert region.linked_cards(bytes(data)) == [frozenset({GPU, other}), frozenset({other})]
    assert region.linked_cards(bytes(data), ended=[0]) == [frozenset({other})]
    assert region.linked_cards(bytes(fresh())) == []
    with pytest.raises(MalformedRegion):
        region.linked_cards(b"")
