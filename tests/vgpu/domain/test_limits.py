"""The limits file: encoding, rewriting in place, and damaged files, which are refused."""

import contextlib
import zlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vgpu.domain.asks.policy import ComputePolicy, MemoryPolicy
from vgpu.domain.errors import MalformedLimits
from vgpu.domain.formats import limits
from vgpu.domain.formats.limits import CardLimit, Limits, SpaceMembership
from vgpu.domain.identifiers import CardUuid

GPU = CardUuid("GPU-8f3c2a10-1111-2222-3333-444455556666")
OTHER = CardUuid("GPU-00000000-0000-0000-0000-000000000001")

uuids = st.binary(min_size=16, max_size=16).map(limits.uuid_text)
cards = st.builds(CardLimit, uuids, st.none() | st.integers(0, 2**64 - 2), st.integers(0, 100))
card_lists = st.lists(cards, max_size=limits.MAX_CARDS, unique_by=lambda c: c.gpu).map(tuple)
priorities, memory_policies = st.integers(0, 100), st.sampled_from(MemoryPolicy)
groups = st.binary(min_size=16, max_size=16).filter(any)
spaces = st.builds(SpaceMembership, groups, st.none() | st.integers(1, 100))
alone = st.builds(
    Limits, card_lists, st.sampled_from(ComputePolicy), priorities, memory_policies, job=st.none() | groups
)
anything = alone | st.builds(Limits, card_lists, st.just(ComputePolicy.BURST), priorities, memory_policies, spaces)


def apply(data: bytes, writes: list[tuple[int, bytes]]) -> bytes:
    out = bytearray(data)
    for offset, piece in writes:
        out[offset : offset + len(piece)] = piece
    return bytes(out)


@given(anything)
def test_what_is_encoded_is_decoded(wanted: Limits) -> None:
    data = limits.encode(wanted)
    assert len(data) == limits.SIZE
    assert limits.decode(data) == wanted


@pytest.mark.heavy
@given(anything, anything, anything)
def test_each_rewrite_replaces_the_one_before(first: Limits, second: Limits, third: Limits) -> None:
    data = limits.encode(first)
    for number, wanted in enumerate((second, third), start=2):
        data = apply(data, limits.rewrite(data, wanted))
        assert limits.decode(data) == wanted
        assert limits.sequence(data) == number


@pytest.mark.heavy
@given(anything, anything, st.data())
def test_an_interrupted_rewrite_leaves_the_old_limits_or_the_new(old: Limits, new: Limits, data: st.DataObject) -> None:
    whole = limits.encode(old)
    stream = [(offset + i, bytes([b])) for offset, piece in limits.rewrite(whole, new) for i, b in enumerate(piece)]
    done = data.draw(st.integers(0, len(stream)))
    read = limits.decode(apply(whole, stream[:done]))
    assert read == old or (read == new and done >= len(stream) - 4)


@given(anything, st.integers(0, limits.SIZE - 1), st.integers(1, 255))
def test_a_flipped_byte_is_detected(wanted: Limits, place: int, flip: int) -> None:
    data = bytearray(limits.encode(wanted))
    data[place] ^= flip
    with contextlib.suppress(MalformedLimits):
        assert limits.decode(bytes(data)) == wanted


@given(st.binary(max_size=2 * limits.SIZE))
def test_any_bytes_are_decoded_or_malformed(data: bytes) -> None:
    with pytest.raises(MalformedLimits):
        limits.decode(data)


@pytest.mark.parametrize(
    "wrong",
    [
        Limits((CardLimit(CardUuid("GPU-x"), 1),)),
        Limits((CardLimit(CardUuid("GPU-00000000-0000-0000-0000-000000000000"), 1),)),
        Limits((CardLimit(GPU, 1), CardLimit(GPU, 2))),
        Limits((CardLimit(GPU, -1),)),
        Limits((CardLimit(GPU, 1, 101),)),
        Limits((CardLimit(GPU, 1),), priority=101),
        Limits(tuple(CardLimit(limits.uuid_text(n.to_bytes(16, "big")), 1) for n in range(1, 34))),
    ],
)
def test_limits_that_do_not_fit_the_format_are_refused(wrong: Limits) -> None:
    with pytest.raises(ValueError, match=r"UUID|cards|range"):
        limits.encode(wrong)


def test_version_1_stays_readable() -> None:
    """These bytes were written by version 1; a later version must go on reading them."""
    wanted = Limits((CardLimit(GPU, 8 << 30, 30), CardLimit(OTHER, None)), ComputePolicy.BURST, 7)
    data = bytes.fromhex(
        "564750554c494d530100000040060000"
        + "00" * 48
        + "8be74165"
        + "02000000"
        + "0100000000000000"
        + "01000000"
        + "07000000"
        + "00" * 40
        + "8f3c2a10111122223333444455556666"
        + "0000000002000000"
        + "1e000000"
        + "00" * 20
        + "00" * 15
        + "01"
        + "ff" * 8
        + "64000000"
    ).ljust(limits.SIZE, b"\0")
    assert limits.decode(data) == wanted
    assert limits.encode(wanted) == data


@pytest.mark.parametrize(
    ("policy", "space"),
    [
        (ComputePolicy.FIXED, SpaceMembership(b"g" * 16)),  # a library without groups would hold it to its share
        (ComputePolicy.BURST, SpaceMembership(bytes(16))),
        (ComputePolicy.BURST, SpaceMembership(b"short")),
        (ComputePolicy.BURST, SpaceMembership(b"g" * 16, 0)),
        (ComputePolicy.BURST, SpaceMembership(b"g" * 16, 101)),
    ],
)
def test_what_is_no_membership_is_not_encoded(policy: ComputePolicy, space: SpaceMembership) -> None:
    with pytest.raises(ValueError, match="no member of a group"):
        limits.encode(Limits((), policy, space=space))


def test_a_percentage_above_100_is_malformed() -> None:
    data = bytearray(limits.encode(Limits((), ComputePolicy.BURST, space=SpaceMembership(b"g" * 16, 100))))
    slot = data[64 : 64 + 1600]
    slot[44:48] = (101).to_bytes(4, "little")
    data[64 : 64 + 1600] = zlib.crc32(slot[4:]).to_bytes(4, "little") + slot[4:]
    with pytest.raises(MalformedLimits, match="101 % of the multiprocessors"):
        limits.decode(bytes(data))


def test_a_file_of_a_version_without_groups_says_nothing_of_one() -> None:
    """Its slots had zeros where the group and the percentage are now."""
    data = limits.encode(Limits((CardLimit(GPU, 1 << 30, 30),), ComputePolicy.BURST))
    assert data[64 + 28 : 64 + 64] == bytes(36)
    assert limits.decode(data).space is None


@pytest.mark.parametrize(
    ("job", "space"), [(b"short", None), (bytes(16), None), (b"j" * 16, SpaceMembership(b"g" * 16))]
)
def test_what_is_no_job_is_not_encoded(job: bytes, space: SpaceMembership | None) -> None:
    with pytest.raises(ValueError, match="no job"):
        limits.encode(Limits((), ComputePolicy.BURST, space=space, job=job))


def test_a_job_is_where_a_version_without_jobs_had_zeros() -> None:
    """So a library of that version reads the limits as before, and a file of that version names no job."""
    without = Limits((CardLimit(GPU, 1 << 30, 30),), ComputePolicy.BURST)
    before, after = limits.encode(without), limits.encode(Limits(without.cards, without.compute_policy, job=b"j" * 16))
    differing = {index for index in range(limits.SIZE) if before[index] != after[index]}
    assert differing <= {*range(64, 68), *range(64 + 48, 64 + 64)}  # the checksum, and the job
    assert limits.decode(before).job is None
    assert limits.decode(after).job == b"j" * 16
