"""The region: memory that a container's processes share, in which the limiter keeps its accounts.

    256 bytes       header: magic, version, size, the lock (the limiter's alone), counters
    32 x 256 bytes  cards: UUID, bytes used, limit, peak, refusals, a context's size, what was spilled, GPU time used
    1024 x 704      process slots: pid, start time, pid namespace, calls under way; bytes used and managed on each card

The container's processes write it, so to everybody outside it is untrusted: read it by `pread`, never map it, never
lock. Little-endian; mirrored by `limiter/src/region.h`.
"""

import struct
from dataclasses import dataclass
from typing import Any, Final

from vgpu.errors import MalformedRegion
from vgpu.limits import uuid_text

VERSION: Final = 1
MAX_CARDS: Final = 32
MAX_PROCESSES: Final = 1024

_MAGIC: Final = b"VGPUREGN"
_HEADER: Final = struct.Struct("<8sIIIIIIQQQ200x")
_CARD: Final = struct.Struct("<16sQQQQIIQ48xQQ40xQQII64x")
_SLOT: Final = struct.Struct("<IIQQQ32x")
_USED: Final = struct.Struct(f"<{MAX_CARDS}Q")
_CARDS_AT: Final = _HEADER.size
SLOTS_AT: Final = _CARDS_AT + MAX_CARDS * _CARD.size
SLOT_SIZE: Final = _SLOT.size + 2 * _USED.size + MAX_CARDS * 4
SIZE: Final = SLOTS_AT + MAX_PROCESSES * SLOT_SIZE
_UNLIMITED: Final = 2**64 - 1


@dataclass(frozen=True, slots=True)
class CardUse:
    """One card's account.

    Attributes:
        gpu: NVML's UUID.
        used_bytes: charged to the container's processes now.
        limit_bytes: the limit that the last allocation was held to; None for no limit.
        peak_bytes: the most that was ever charged.
        refusals: allocations refused.
        context_bytes: what a CUDA context took when one was last made; 0 while none was.
        spilled_bytes: what was ever served from managed memory because the card was full.
        spills: in how many allocations.
        gpu_ns: GPU time that the container used, where its share is limited.
        throttled_ns: what its launches waited, all together.
        delayed_launches: launches that waited.
        longest_wait_us: the longest of these waits.
    """

    gpu: str
    used_bytes: int
    limit_bytes: int | None
    peak_bytes: int
    refusals: int
    context_bytes: int
    spilled_bytes: int = 0
    spills: int = 0
    gpu_ns: int = 0
    throttled_ns: int = 0
    delayed_launches: int = 0
    longest_wait_us: int = 0


@dataclass(frozen=True, slots=True)
class ProcessUse:
    """One process's account; `pid` counts in the process's own pid namespace, whose inode number is `pid_namespace`.

    `start_time` is field 22 of /proc/<pid>/stat; `used_bytes` is by card UUID, zeros left out; of it `managed_bytes` is
    managed memory, which NVML does not count as the process's.
    """

    pid: int
    start_time: int
    pid_namespace: int
    used_bytes: tuple[tuple[str, int], ...]
    managed_bytes: tuple[tuple[str, int], ...] = ()


@dataclass(frozen=True, slots=True)
class Region:
    """A region as it stood while it was read; a process may have been at work, so sums may be apart for a moment.

    Attributes:
        cards: in the order of their first use.
        processes: those that have charged anything, living or not yet cleared.
        recoveries: how often a process died holding the lock.
        reaped: slots of dead processes that were cleared.
        timeouts: how often the lock could not be had in time.
    """

    cards: tuple[CardUse, ...]
    processes: tuple[ProcessUse, ...]
    recoveries: int
    reaped: int
    timeouts: int


def new() -> bytes:
    """Return the beginning of a fresh region. Write it at 0 and grow the file to `SIZE`: the rest is zeros."""
    return _HEADER.pack(_MAGIC, VERSION, SIZE, MAX_PROCESSES, MAX_CARDS, 0, 0, 0, 0, 0)


def decode(data: bytes) -> Region:
    """Read a region's bytes. Raises MalformedRegion and nothing else, whatever the bytes."""
    if len(data) < SIZE:
        raise MalformedRegion(f"{len(data)} bytes instead of {SIZE}")
    magic, version, size, slots, cards, _, _, recoveries, reaped, timeouts = _HEADER.unpack_from(data)
    if (magic, version, size, slots, cards) != (_MAGIC, VERSION, SIZE, MAX_PROCESSES, MAX_CARDS):
        raise MalformedRegion(f"magic {magic!r}, version {version}, {size} bytes, {slots} slots, {cards} cards")
    rows = [_CARD.unpack_from(data, _CARDS_AT + place * _CARD.size) for place in range(MAX_CARDS)]
    names = {place: uuid_text(row[0]) for place, row in enumerate(rows) if row[5]}
    return Region(
        cards=tuple(_card(row) for row in rows if row[5]),
        processes=tuple(_processes(data, names)),
        recoveries=recoveries,
        reaped=reaped,
        timeouts=timeouts,
    )


def _card(row: tuple[Any, ...]) -> CardUse:
    uuid, used, limit, peak, refusals, _, _, *more = row
    return CardUse(uuid_text(uuid), used, None if limit == _UNLIMITED else limit, peak, refusals, *more)


def _processes(data: bytes, names: dict[int, str]) -> list[ProcessUse]:
    found = []
    for offset in range(SLOTS_AT, SIZE, SLOT_SIZE):
        pid, _, start_time, namespace, _ = _SLOT.unpack_from(data, offset)
        if pid:
            used = _by_card(data, offset + _SLOT.size, names)
            managed = _by_card(data, offset + _SLOT.size + _USED.size, names)
            found.append(ProcessUse(pid, start_time, namespace, used, managed))
    return found


def _by_card(data: bytes, offset: int, names: dict[int, str]) -> tuple[tuple[str, int], ...]:
    amounts = _USED.unpack_from(data, offset)
    return tuple((name, amounts[place]) for place, name in names.items() if amounts[place])
