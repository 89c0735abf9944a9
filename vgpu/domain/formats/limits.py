"""The limits file: what a container may use, written on the host and read by the limiter inside.

    64 bytes    header: magic, version, size of a slot, index of the slot in force
    1600 bytes  slot 0: crc32, count of cards, sequence number, policies, priority, group in space and cap of
                multiprocessors, job; 32 entries of 48 bytes
    1600 bytes  slot 1

A rewrite fills the slot that is not in force and then flips the index, so that a writer that dies leaves the old limits
intact. Bytes that a version leaves free are zeros, and zeros say nothing: a field that takes some of them is no new
version where a library without it enforces limits as strict. Little-endian; mirrored by `limiter/src/common/limits.h`.
"""

import re
import struct
import zlib
from dataclasses import dataclass
from typing import Final

from vgpu.domain.asks import job_identity
from vgpu.domain.asks.policy import MAX_PRIORITY, ComputePolicy, MemoryPolicy
from vgpu.domain.asks.space import FINGERPRINT_SIZE
from vgpu.domain.errors import MalformedLimits
from vgpu.domain.identifiers import CardUuid
from vgpu.domain.quantity import FULL_CORES, WHOLE_PERCENT

VERSION: Final = 1
MAX_CARDS: Final = 32
NOTICED_S: Final = 0.03  # after which programs follow a rewritten file: they look every 8 to 17 ms
ANY_GPU: Final = CardUuid("*")  # every card without an entry

_MAGIC: Final = b"VGPULIMS"
_HEADER: Final = struct.Struct("<8sIII44x")
_SLOT: Final = struct.Struct("<IIQIII16sI16s")
_CARD: Final = struct.Struct("<16sQI20x")
_CRC: Final = struct.Struct("<I")
_ACTIVE: Final = struct.Struct("<I")
_ACTIVE_OFFSET: Final = 16
_SLOT_SIZE: Final = _SLOT.size + MAX_CARDS * _CARD.size
_UNLIMITED: Final = 2**64 - 1
SIZE: Final = _HEADER.size + 2 * _SLOT_SIZE

_POLICIES: Final = tuple(ComputePolicy)  # the file holds the index in this order
_MEMORY_POLICIES: Final = tuple(MemoryPolicy)
_NO_GROUP: Final = bytes(FINGERPRINT_SIZE)
_NO_JOB: Final = bytes(job_identity.FINGERPRINT_SIZE)
_UUID = re.compile(r"GPU-([0-9a-f]{8})-([0-9a-f]{4})-([0-9a-f]{4})-([0-9a-f]{4})-([0-9a-f]{12})")
_ANY_UUID: Final = bytes(16)


@dataclass(frozen=True, slots=True)
class CardLimit:
    """What a container may use of one card.

    Attributes:
        gpu: NVML's UUID, `GPU-...`, or `ANY_GPU`. A card without an entry may not be used.
        memory_bytes: the most that may be allocated; None for no limit; 0 refuses every allocation.
        cores: percent of the card's time, 0 to 100; the compute policy says how it is enforced.
    """

    gpu: CardUuid
    memory_bytes: int | None
    cores: int = FULL_CORES


@dataclass(frozen=True, slots=True)
class SpaceMembership:
    """The group in space that a container is a member of (ADR 174).

    Attributes:
        group: 16 bytes, `SpaceGroup.fingerprint`.
        sm_percentage: percent of a card's multiprocessors, 1 to 100, for the container's processes together; None: no
            cap.
    """

    group: bytes
    sm_percentage: int | None = None


@dataclass(frozen=True, slots=True)
class Limits:
    """The content of a limits file. A member of a group in space has the compute policy `burst`, and is of no job.

    `job` names the job whose containers on the node have their turns at the same moment: 16 bytes,
    `job_identity.fingerprint`; None: the container is of none.
    """

    cards: tuple[CardLimit, ...]
    compute_policy: ComputePolicy = ComputePolicy.FIXED
    priority: int = 0
    memory_policy: MemoryPolicy = MemoryPolicy.REFUSE
    space: SpaceMembership | None = None
    job: bytes | None = None


def encode(limits: Limits) -> bytes:
    """Return the bytes of a new limits file. Raises ValueError where the limits do not fit the format."""
    header = _HEADER.pack(_MAGIC, VERSION, _SLOT_SIZE, 0)
    return header + _encode_slot(limits, 1) + bytes(_SLOT_SIZE)


def decode(data: bytes) -> Limits:
    """Read the limits in force: the slot of the index, or the other slot where the first one's checksum is wrong.

    Raises MalformedLimits and no other exception.
    """
    return _read_slot(data, _good_slot(data))


def sequence(data: bytes) -> int:
    """Return the sequence number of the limits in force, which each rewrite raises by one."""
    number: int = _SLOT.unpack_from(data, _offset(_good_slot(data)))[2]
    return number


def rewrite(data: bytes, limits: Limits) -> list[tuple[int, bytes]]:
    """Return the writes, each (offset, bytes), that put new limits in force in a file whose bytes are `data`.

    Carry them out in place and in this order. Raises MalformedLimits where `data` is no limits file.
    """
    active = _good_slot(data)
    slot = _encode_slot(limits, sequence(data) + 1)
    return [(_offset(1 - active), slot), (_ACTIVE_OFFSET, _ACTIVE.pack(1 - active))]


def uuid_bytes(gpu: CardUuid) -> bytes:
    """Turn `GPU-...` into CUDA's 16 bytes, `ANY_GPU` into zeros. Raises ValueError."""
    if gpu == ANY_GPU:
        return _ANY_UUID
    match = _UUID.fullmatch(gpu)
    raw = bytes.fromhex("".join(match.groups())) if match else _ANY_UUID
    if raw == _ANY_UUID:
        raise ValueError(f"not a GPU's UUID: {gpu!r}")
    return raw


def uuid_text(raw: bytes) -> CardUuid:
    """Turn CUDA's 16 bytes into `GPU-...`, zeros into `ANY_GPU`."""
    if raw == _ANY_UUID:
        return ANY_GPU
    digits = raw.hex()
    return CardUuid("GPU-" + "-".join(digits[a:b] for a, b in ((0, 8), (8, 12), (12, 16), (16, 20), (20, 32))))


def _offset(slot: int) -> int:
    return _HEADER.size + slot * _SLOT_SIZE


def _encode_slot(limits: Limits, number: int) -> bytes:
    if len({card.gpu for card in limits.cards}) != len(limits.cards) or len(limits.cards) > MAX_CARDS:
        raise ValueError(f"at most {MAX_CARDS} cards, each once: {limits.cards}")
    if not 0 <= limits.priority <= MAX_PRIORITY:
        raise ValueError(f"priority out of range: {limits.priority}")
    policies = _POLICIES.index(limits.compute_policy), _MEMORY_POLICIES.index(limits.memory_policy)
    membership = (*_encode_space(limits), _encode_job(limits))
    head = _SLOT.pack(0, len(limits.cards), number, policies[0], limits.priority, policies[1], *membership)
    body = (head + b"".join(map(_encode_card, limits.cards))).ljust(_SLOT_SIZE, b"\0")[_CRC.size :]
    return _CRC.pack(zlib.crc32(body)) + body


def _encode_space(limits: Limits) -> tuple[bytes, int]:
    space = limits.space
    if space is None:
        return _NO_GROUP, 0
    is_group = len(space.group) == FINGERPRINT_SIZE and space.group != _NO_GROUP
    is_percentage = space.sm_percentage is None or 1 <= space.sm_percentage <= WHOLE_PERCENT
    if limits.compute_policy is not ComputePolicy.BURST or not is_group or not is_percentage:
        raise ValueError(f"no member of a group in space: {limits.compute_policy}, {space}")
    return space.group, space.sm_percentage or 0


def _encode_job(limits: Limits) -> bytes:
    job = limits.job
    if job is None:
        return _NO_JOB
    if limits.space is not None or len(job) != len(_NO_JOB) or job == _NO_JOB:
        raise ValueError(f"no job: {job!r} beside {limits.space}")
    return job


def _encode_card(card: CardLimit) -> bytes:
    memory = _UNLIMITED if card.memory_bytes is None else card.memory_bytes
    if not 0 <= card.cores <= FULL_CORES or not 0 <= memory <= _UNLIMITED:
        raise ValueError(f"out of range: {card}")
    return _CARD.pack(uuid_bytes(card.gpu), memory, card.cores)


def _good_slot(data: bytes) -> int:
    if len(data) < SIZE:
        raise MalformedLimits(f"{len(data)} bytes instead of {SIZE}")
    magic, version, slot_size, active = _HEADER.unpack_from(data)
    if (magic, version, slot_size) != (_MAGIC, VERSION, _SLOT_SIZE):
        raise MalformedLimits(f"magic {magic!r}, version {version}, slots of {slot_size} bytes")
    for slot in (active & 1, 1 - (active & 1)):
        if _is_whole(data, slot):
            return int(slot)
    raise MalformedLimits("neither slot has the right checksum")


def _is_whole(data: bytes, slot: int) -> bool:
    body = data[_offset(slot) + _CRC.size : _offset(slot) + _SLOT_SIZE]
    return _CRC.unpack_from(data, _offset(slot)) == (zlib.crc32(body),)


def _read_slot(data: bytes, slot: int) -> Limits:
    _, count, _, policy, priority, memory, group, percentage, job = _SLOT.unpack_from(data, _offset(slot))
    if count > MAX_CARDS or policy >= len(_POLICIES) or memory >= len(_MEMORY_POLICIES):
        raise MalformedLimits(f"{count} cards, policies {policy} and {memory}")
    if percentage > WHOLE_PERCENT:
        raise MalformedLimits(f"{percentage} % of the multiprocessors")
    first = _offset(slot) + _SLOT.size
    entries = (_CARD.unpack_from(data, first + index * _CARD.size) for index in range(count))
    cards = tuple(CardLimit(uuid_text(u), None if m == _UNLIMITED else m, cores) for u, m, cores in entries)
    space = None if group == _NO_GROUP else SpaceMembership(group, percentage or None)
    is_of_job = job != _NO_JOB and space is None
    return Limits(cards, _POLICIES[policy], priority, _MEMORY_POLICIES[memory], space, job if is_of_job else None)
