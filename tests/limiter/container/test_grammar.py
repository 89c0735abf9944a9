"""C and Python read limits alike, from files and from the environment, also damaged ones."""

import contextlib
import ctypes
import zlib

from hypothesis import example, given
from hypothesis import strategies as st

from vgpu.domain import quantity
from vgpu.domain.asks.policy import ComputePolicy, MemoryPolicy
from vgpu.domain.errors import MalformedLimits
from vgpu.domain.formats import limits
from vgpu.domain.formats.limits import ANY_GPU, CardLimit, Limits, SpaceMembership
from vgpu.domain.identifiers import CardUuid

SLOT_SIZE = 1600
GPU = CardUuid("GPU-8f3c2a10-1111-2222-3333-444455556666")
ANOTHER = CardUuid("GPU-00000000-0000-0000-0000-00000000000f")

uuids = st.sampled_from([GPU, ANOTHER, ANY_GPU])
cards = st.builds(CardLimit, uuids, st.none() | st.integers(0, 2**63), st.integers(0, 100))
card_lists = st.lists(cards, max_size=3, unique_by=lambda c: c.gpu).map(tuple)
memory_policies = st.sampled_from(MemoryPolicy)
groups = st.binary(min_size=16, max_size=16).filter(any)
spaces = st.builds(SpaceMembership, groups, st.none() | st.integers(1, 100))
wanted = st.builds(Limits, card_lists, st.sampled_from(ComputePolicy), memory_policy=memory_policies) | st.builds(
    Limits, card_lists, st.just(ComputePolicy.BURST), memory_policy=memory_policies, space=spaces
)
sizes = st.from_regex(r"\A ?\d{0,4}(\.\d{0,4})? ?([KMGTX]i?)?B? ?\Z")


class Texts(ctypes.Structure):
    _fields_ = tuple((name, ctypes.c_char_p) for name in ("memory", "cores", "compute_policy", "memory_policy"))


class CardLimitC(ctypes.Structure):
    _fields_ = (
        ("uuid", ctypes.c_uint8 * 16),
        ("memory", ctypes.c_uint64),
        ("cores", ctypes.c_uint32),
        ("reserved", ctypes.c_uint8 * 20),
    )


def as_file(slot: bytes) -> bytes:
    """A limits file around a slot that C filled, which has no checksum."""
    blank = bytearray(limits.encode(Limits(())))
    crc = zlib.crc32(slot[4:]).to_bytes(4, "little")
    blank[64 : 64 + SLOT_SIZE] = crc + slot[4:]
    return bytes(blank)


def parse(pure: ctypes.CDLL, *texts: str | None) -> Limits | None:
    """Parses memory, cores, compute policy and memory policy; None: not given."""
    slot = ctypes.create_string_buffer(SLOT_SIZE)
    encoded = Texts(*(None if text is None else text.encode() for text in texts))
    return limits.decode(as_file(slot.raw)) if pure.limits_parse(ctypes.byref(encoded), slot) else None


@given(wanted, wanted, st.integers(0, 2**31), st.integers(0, 255))
def test_c_and_python_read_any_limits_file_alike(
    pure: ctypes.CDLL, old: Limits, new: Limits, place: int, flip: int
) -> None:
    data = bytearray(limits.encode(old))
    for offset, piece in limits.rewrite(bytes(data), new):
        data[offset : offset + len(piece)] = piece
    data[place % len(data)] ^= flip
    slot = ctypes.create_string_buffer(SLOT_SIZE)
    expected = None
    with contextlib.suppress(MalformedLimits):
        expected = limits.decode(bytes(data))
    read = pure.limits_decode(bytes(data), slot)
    assert (limits.decode(as_file(slot.raw)) if read else None) == expected


@given(sizes)
def test_c_and_python_read_amounts_alike(pure: ctypes.CDLL, text: str) -> None:
    expected = quantity.size_bytes(text)
    parsed = parse(pure, text)
    assert (parsed.cards[0].memory_bytes if parsed else None) == expected


# Python takes the separators 0x1c to 0x1f for spaces; nobody types them.
typed = st.characters(codec="ascii", exclude_characters="\0\x1c\x1d\x1e\x1f")


def read_by_python(text: str) -> Limits | None:
    """Read the grammar alone: `launch.parse` also refuses amounts that are most likely mistakes, such as 8 MiB."""
    entries = [entry.strip().rpartition("=") for entry in text.split(",")]
    sizes = [quantity.size_bytes(size) for _, _, size in entries]
    if None in sizes:
        return None
    cards = tuple(
        CardLimit(CardUuid(gpu.strip()) or ANY_GPU, size, 100) for (gpu, _, _), size in zip(entries, sizes, strict=True)
    )
    with contextlib.suppress(ValueError):
        limits.encode(Limits(cards))
        return Limits(cards)
    return None


@example("0,0")
@given(st.text(typed, max_size=30) | st.from_regex(r"\A\s*\d{1,3}\s?(Gi)?\s*\Z", alphabet=typed))
def test_c_reads_any_text_like_python_or_refuses_it(pure: ctypes.CDLL, text: str) -> None:
    assert text == "" or parse(pure, text) == read_by_python(text)


def test_limits_may_name_cards_and_a_default(pure: ctypes.CDLL) -> None:
    parsed = parse(pure, f"{GPU}=8GiB, {ANOTHER}=512, 1.5Gi", "30", "best-effort", "spill")
    assert parsed == Limits(
        (CardLimit(GPU, 8 << 30, 30), CardLimit(ANOTHER, 512 << 20, 30), CardLimit(ANY_GPU, 3 << 29, 30)),
        ComputePolicy.BEST_EFFORT,
        memory_policy=MemoryPolicy.SPILL,
    )


def test_unreadable_limits_are_refused(pure: ctypes.CDLL) -> None:
    assert parse(pure, None, "30") == Limits((CardLimit(ANY_GPU, None, 30),))
    assert parse(pure, "8GiB", "101") is None
    assert parse(pure, "8GiB", "1x") is None
    assert parse(pure, "8GiB", "") is None
    assert parse(pure, "8GiB", None, "greedy") is None
    assert parse(pure, "8GiB", None, None, "swap") is None
    assert parse(pure, "GPU-1=8GiB") is None
    assert parse(pure, "") is None
    assert parse(pure, "8GiB,") is None
    assert parse(pure, "8GiB,8GiB") is None
    assert parse(pure, f"{GPU}=8GiB,{GPU}=4GiB") is None


@given(wanted, uuids.filter(lambda u: u != ANY_GPU))
def test_a_card_s_own_entry_overrides_the_default(pure: ctypes.CDLL, limit: Limits, gpu: CardUuid) -> None:
    slot = limits.encode(limit)[64 : 64 + SLOT_SIZE]
    pure.limits_for_card.restype = CardLimitC
    found = pure.limits_for_card(slot, limits.uuid_bytes(gpu))
    by_gpu = {card.gpu: card for card in limit.cards}
    expected = by_gpu.get(gpu) or by_gpu.get(ANY_GPU) or CardLimit(gpu, 0, 0)
    assert found.cores == expected.cores
    assert found.memory == (2**64 - 1 if expected.memory_bytes is None else expected.memory_bytes)
