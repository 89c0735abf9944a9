"""The region: memory that a container's processes share, in which the limiter accounts for what they use.

    256 bytes       header: magic, version, size, the lock (used by the limiter only), counters
    32 x 256 bytes  cards: UUID, bytes used, limit, peak, refusals, a context's size, bytes orphaned, overdraft, bytes
                    spilled, GPU time used and shares
    1024 x 704      process slots: pid, start time, pid namespace, calls in flight; bytes used and managed on each card
    512 x 48        exported pointers of pools that processes share: used by the limiter only
    32 x 256        activity on each card: waits by cause, handovers, host gaps, synchronizes (since version 2)
    8 + 4096 x 48   other memory that processes share: used by the limiter only (since version 3)

The container's processes write the region, so programs outside the container do not trust it: they read it by `pread`,
and never map or lock it. Little-endian; mirrored by `limiter/src/common/region_layout.h`.
"""

import struct
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any, Final

from vgpu.domain.errors import MalformedRegion
from vgpu.domain.formats.limits import uuid_text
from vgpu.domain.identifiers import CardUuid

VERSION: Final = 3
MAX_CARDS: Final = 32
MAX_PROCESSES: Final = 1024
_MAX_POOL_EXPORTS: Final = 512
_POOL_EXPORT_SIZE: Final = 48
_MEMORY_EXPORTS_SIZE: Final = 8 + 4096 * 48

_MAGIC: Final = b"VGPUREGN"
_HEADER: Final = struct.Struct("<8sIIIIIIQQQ200x")
_CARD: Final = struct.Struct("<16sQQQQIIQQ24xqQQQ24xQ8xQQII16xQQIIQQII")
_SLOT: Final = struct.Struct("<IIQQQ32x")
_CALLS_AT: Final = 24  # in a slot
_OUTSIDE_AT: Final = 40  # likewise
_LINKED_AT: Final = 44  # likewise: the cards that the process has joined, one bit for each row
_FAULT: Final = struct.Struct("<120xQQ120x")
_USED: Final = struct.Struct(f"<{MAX_CARDS}Q")
_CARDS_AT: Final = _HEADER.size
SLOTS_AT: Final = _CARDS_AT + MAX_CARDS * _CARD.size
SLOT_SIZE: Final = _SLOT.size + 2 * _USED.size + MAX_CARDS * 4
ACTIVITY_AT: Final = SLOTS_AT + MAX_PROCESSES * SLOT_SIZE + _MAX_POOL_EXPORTS * _POOL_EXPORT_SIZE
_ACTIVITY_SIZE: Final = 256
_FIRST_WITH_ACTIVITY: Final = 2  # version
_MEMORY_EXPORTS_AT: Final = ACTIVITY_AT + MAX_CARDS * _ACTIVITY_SIZE
SIZE: Final = _MEMORY_EXPORTS_AT + _MEMORY_EXPORTS_SIZE
_SIZES: Final = {1: ACTIVITY_AT, 2: _MEMORY_EXPORTS_AT, VERSION: SIZE}
_MAX_SIZE: Final = 16 << 20
_UNLIMITED: Final = 2**64 - 1

# What `new` returned in 0.1.0, whose installed libraries do not say which region they read.
FIRST_HEADER: Final = _HEADER.pack(_MAGIC, 1, 753920, 1024, 32, 0, 0, 0, 0, 0)
_NS_PER_MS: Final = 1_000_000


@dataclass(frozen=True, slots=True)
class UsageWindow:
    """GPU time over a window, written at the first charge after the window's end.

    Attributes:
        begun_ns: when the window that is not full yet began, by CLOCK_MONOTONIC; 0 where nothing was ever charged.
        gpu_ns: the card's `gpu_ns` at that time.
        permille: share of the card's time in the last full window; 0 where there is none.
        took_ms: length of the last full window; 0 where there is none.
    """

    begun_ns: int = 0
    gpu_ns: int = 0
    permille: int = 0
    took_ms: int = 0


@dataclass(frozen=True, slots=True)
class Wait:
    """Time in ns for which launches waited for one cause, and how often they did."""

    ns: int = 0
    count: int = 0


@dataclass(frozen=True, slots=True)
class ExportedCounter:
    """A counter that metrics show: its name without a prefix, what it says, and the unit in which it is shown."""

    metric: str
    help: str
    unit: float = 1


def _exported(metric: str, text: str, unit: float = 1) -> Any:
    """Return the field of a counter that metrics show."""
    return field(default=0, metadata={"exported": ExportedCounter(metric, text, unit)})


@dataclass(frozen=True, slots=True)
class Activity:
    """What a container's launches did on one card; all zeros in a region of version 1. Counters only grow.

    The fields are in the order of `struct region_activity`: their places in the region follow from it.

    Attributes:
        turn: waits for a turn of the arbiter's, because another container has the card.
        share: waits because the container has used its own share.
        drain: waits for the container's own work, which is measured or fills the turn.
        queued: waits on the card, behind a closed wait, while the host goes on.
        turns: turns of the arbiter's that were used.
        handovers: of these, turns before which another process had the card.
        handover_ns: time of the card that these handovers took, as far as it was measured.
        last_launch_at_ns: when the gate last admitted a launch; CLOCK_MONOTONIC, 0 for never.
        last_kernel_end_at_ns: when the work of the last turn that ended drained, as expected; CLOCK_MONOTONIC.
        host_gaps: launches before which the card was idle, because the host had launched nothing.
        host_gap_ns: sum of these idle times.
        synchronizes: calls that wait for the card.
        synchronize_ns: time in these calls.
        pageable_copies: copies between the card and memory of the host that is not pinned.
        pageable_bytes: bytes of these copies.
        queued_launches: launches that were put behind a closed wait.
        long_kernels: kernels and graphs that took 50 ms or more, alone in their turns.
        long_kernel_ns: sum of their times.
    """

    turn: Wait = Wait()
    share: Wait = Wait()
    drain: Wait = Wait()
    queued: Wait = Wait()
    turns: int = _exported("turns_total", "Turns of the arbiter that were used")
    handovers: int = _exported("handovers_total", "Turns before which another process had the card")
    handover_ns: int = 0
    last_launch_at_ns: int = 0
    last_kernel_end_at_ns: int = 0
    host_gaps: int = 0
    host_gap_ns: int = _exported(
        "host_gap_seconds_total", "Time in which the card was idle because the host had launched nothing", 1e-9
    )
    synchronizes: int = 0
    synchronize_ns: int = 0
    pageable_copies: int = 0
    pageable_bytes: int = 0
    queued_launches: int = 0
    long_kernels: int = 0
    long_kernel_ns: int = 0


EXPORTED: Final[Mapping[str, ExportedCounter]] = {
    counter.name: counter.metadata["exported"] for counter in fields(Activity) if "exported" in counter.metadata
}
_CAUSES: Final = 4
_COUNTERS: Final = len(fields(Activity)) - _CAUSES
_ACTIVITY: Final = struct.Struct(f"<{2 * _CAUSES}Q64x{_COUNTERS}Q{_ACTIVITY_SIZE - 128 - 8 * _COUNTERS}x")


@dataclass(frozen=True, slots=True)
class CardUse:
    """One card's account.

    Attributes:
        gpu: NVML's UUID.
        used_bytes: charged to the container now: to its processes, plus `orphaned_bytes`.
        limit_bytes: the limit at the last allocation; None for no limit.
        peak_bytes: the most that was ever charged.
        refusals: number of refused allocations.
        context_bytes: what a CUDA context took when one was last created; 0 before the first.
        orphaned_bytes: what processes use of memory whose exporters have ended, or are in other containers; of memory
            that is no pool's, only what NVML has not counted for an importer yet.
        overdraft_used_ns: GPU time that was lent before the share pays for it, and had not come back.
        overdraft_at_ns: when `overdraft_used_ns` was written; CLOCK_MONOTONIC, 0 for never.
        spilled_bytes: total of what was served from managed memory because the card was full.
        spills: number of allocations served from managed memory.
        busy_until_ns: when the last launch is expected to be done, plus a millisecond; CLOCK_MONOTONIC.
        gpu_ns: GPU time used in turns, which the container takes where its time is limited or others want the card.
        throttled_ns: total time that launches waited.
        delayed_launches: number of launches that waited.
        longest_wait_us: the longest of these waits.
        second: share of GPU time over about 1 s; see `recent_share`.
        ten_seconds: share of GPU time over about 10 s.
        activity: what the container's launches did.
    """

    gpu: CardUuid
    used_bytes: int
    limit_bytes: int | None
    peak_bytes: int
    refusals: int
    context_bytes: int
    orphaned_bytes: int = 0
    overdraft_used_ns: int = 0
    overdraft_at_ns: int = 0
    spilled_bytes: int = 0
    spills: int = 0
    busy_until_ns: int = 0
    gpu_ns: int = 0
    throttled_ns: int = 0
    delayed_launches: int = 0
    longest_wait_us: int = 0
    second: UsageWindow = UsageWindow()
    ten_seconds: UsageWindow = UsageWindow()
    activity: Activity = Activity()


@dataclass(frozen=True, slots=True)
class ProcessUse:
    """One process's account.

    Attributes:
        pid: in the process's own pid namespace.
        start_time: field 22 of /proc/<pid>/stat.
        pid_namespace: inode number of the pid namespace.
        used_bytes: by card UUID, without zeros.
        managed_bytes: the part of `used_bytes` that is managed memory, which NVML does not count for the process.
    """

    pid: int
    start_time: int
    pid_namespace: int
    used_bytes: tuple[tuple[CardUuid, int], ...]
    managed_bytes: tuple[tuple[CardUuid, int], ...] = ()


@dataclass(frozen=True, slots=True)
class SlotOwner:
    """The process that a slot belongs to, as in `ProcessUse`."""

    pid: int
    start_time: int
    namespace: int


@dataclass(frozen=True, slots=True)
class Region:
    """A region's content. Processes may write while it is read, so sums may not agree for a moment.

    Attributes:
        cards: in the order of their first use.
        processes: processes that charged anything and are alive or not cleared yet.
        recoveries: how often a process died while it held the lock.
        reaped: number of cleared slots of dead processes.
        timeouts: how often the lock could not be taken in time.
    """

    cards: tuple[CardUse, ...]
    processes: tuple[ProcessUse, ...]
    recoveries: int
    reaped: int
    timeouts: int


def new() -> bytes:
    """Return the first bytes of a fresh region. Write them at offset 0 and grow the file to `SIZE` with zeros."""
    return _HEADER.pack(_MAGIC, VERSION, SIZE, MAX_PROCESSES, MAX_CARDS, 0, 0, 0, 0, 0)


def size_in(header: bytes) -> int:
    """Return the size of a region of any version that begins with these bytes. Raises MalformedRegion."""
    if len(header) != _HEADER.size or not header.startswith(_MAGIC):
        raise MalformedRegion(f"{len(header)} bytes are no region's header")
    size: int = _HEADER.unpack(header)[2]
    if not _HEADER.size <= size <= _MAX_SIZE:
        raise MalformedRegion(f"a region of {size} bytes")
    return size


def calls(data: bytes) -> Sequence[int]:
    """Return a number for each process slot, which differs after a call that may change a charge.

    Its low 32 bits are the number of such calls that are under way. Raises MalformedRegion.
    """
    _version(data)
    slots = memoryview(data)[SLOTS_AT : SLOTS_AT + MAX_PROCESSES * SLOT_SIZE].cast("Q")
    return slots[_CALLS_AT // 8 :: SLOT_SIZE // 8].tolist()


def cards(data: bytes, ended: Collection[int] = ()) -> tuple[CardUse, ...]:
    """Read the accounts of the cards only, of any version. Raises MalformedRegion and no other exception.

    `ended`: slots whose owners have ended, so that what they used does not count any more.
    """
    version = _version(data)
    freed = [_USED.unpack_from(data, _slot_at(slot) + _SLOT.size) for slot in ended]
    return tuple(
        _without(_card(row, _activity(data, version, index)), sum(used[index] for used in freed))
        for index, row in _rows(data)
    )


def locked_slots(data: bytes) -> list[int]:
    """Return the slots in use whose owners hold a file lock while they live. Raises MalformedRegion."""
    _version(data)
    slots = memoryview(data)[SLOTS_AT : SLOTS_AT + MAX_PROCESSES * SLOT_SIZE].cast("Q")
    words = slots[:: SLOT_SIZE // 8].tolist()  # the pid, and above it whether there is a lock
    return [slot for slot, word in enumerate(words) if word & 0xFFFFFFFF and word >> 32 == 1]


def outside_group(data: bytes, ended: Collection[int] = ()) -> int:
    """Return how many processes say that they are no clients of their group's MPS server. Raises MalformedRegion.

    `ended`: slots whose owners have ended.
    """
    _version(data)
    slots = memoryview(data)[SLOTS_AT : SLOTS_AT + MAX_PROCESSES * SLOT_SIZE].cast("I")
    pids, words = slots[:: SLOT_SIZE // 4].tolist(), slots[_OUTSIDE_AT // 4 :: SLOT_SIZE // 4].tolist()
    marked = {slot for slot, (pid, word) in enumerate(zip(pids, words, strict=True)) if pid and word}
    return len(marked.difference(ended))


def linked_cards(data: bytes, ended: Collection[int] = ()) -> list[frozenset[CardUuid]]:
    """Return the cards that each process has joined, by peer access or mapped memory (ADR 176). Raises MalformedRegion.

    `ended`: slots whose owners have ended.
    """
    _version(data)
    slots = memoryview(data)[SLOTS_AT : SLOTS_AT + MAX_PROCESSES * SLOT_SIZE].cast("I")
    pids, words = slots[:: SLOT_SIZE // 4].tolist(), slots[_LINKED_AT // 4 :: SLOT_SIZE // 4].tolist()
    joined = {word for slot, (pid, word) in enumerate(zip(pids, words, strict=True)) if pid and slot not in ended}
    names = {index: uuid_text(row[0]) for index, row in _rows(data)} if joined - {0} else {}
    return [frozenset(name for index, name in names.items() if word >> index & 1) for word in sorted(joined) if word]


def seen_fault(header: bytes) -> tuple[int, int] | None:
    """Return when a client of its group's MPS server last saw a fault of it; None where none has. Never raises.

    The two times are since when the process was a client, and when it saw the fault; CLOCK_MONOTONIC in ns.
    """
    if len(header) < _HEADER.size or not header.startswith(_MAGIC):
        return None
    since, at = _FAULT.unpack_from(header)
    return (since, at) if since and since <= at else None


def owner(data: bytes, slot: int) -> SlotOwner:
    """Return the process that a slot of a valid region belongs to."""
    pid, _, start_time, namespace, _ = _SLOT.unpack_from(data, _slot_at(slot))
    return SlotOwner(pid, start_time, namespace)


def decode(data: bytes) -> Region:
    """Read the bytes of a region of any version. Raises MalformedRegion and no other exception."""
    found = cards(data)
    *_, recoveries, reaped, timeouts = _HEADER.unpack_from(data)
    return Region(
        cards=found,
        processes=tuple(_processes(data, {index: uuid_text(row[0]) for index, row in _rows(data)})),
        recoveries=recoveries,
        reaped=reaped,
        timeouts=timeouts,
    )


def _version(data: bytes) -> int:
    """Check the header and the length, and return the version of the region."""
    if len(data) < ACTIVITY_AT:
        raise MalformedRegion(f"{len(data)} bytes instead of {SIZE}")
    magic, version, size, slots, count, *_ = _HEADER.unpack_from(data)
    if (magic, size, slots, count) != (_MAGIC, _SIZES.get(version), MAX_PROCESSES, MAX_CARDS):
        raise MalformedRegion(f"magic {magic!r}, version {version}, {size} bytes, {slots} slots, {count} cards")
    if len(data) < size:
        raise MalformedRegion(f"{len(data)} bytes instead of {size}")
    return int(version)


def _rows(data: bytes) -> Iterator[tuple[int, tuple[Any, ...]]]:
    """Yield the index and the row of every card that is in use."""
    for index in range(MAX_CARDS):
        row = _CARD.unpack_from(data, _CARDS_AT + index * _CARD.size)
        if row[5]:
            yield index, row


def recent_share(card: CardUse, window: UsageWindow, now_ns: int) -> float:
    """Return the share of the card's time, 0 to 1, that a container had over a `window` of `card` at `now_ns`.

    `now_ns` is CLOCK_MONOTONIC (`time.monotonic_ns`) on the container's machine. The last full window counts until the
    open window is as long; after that the open window counts, because no charge has closed it. Time is charged at the
    end of a turn, so the figure lags by one turn.
    """
    open_ns = max(0, now_ns - window.begun_ns) if window.begun_ns else 0
    if window.took_ms and open_ns < window.took_ms * _NS_PER_MS:
        return min(1.0, window.permille / 1000)
    used = max(0, card.gpu_ns - window.gpu_ns)
    return min(1.0, used / open_ns) if open_ns else 0.0


def _slot_at(slot: int) -> int:
    return SLOTS_AT + slot * SLOT_SIZE


def _without(card: CardUse, freed_bytes: int) -> CardUse:
    if not freed_bytes:
        return card
    return replace(card, used_bytes=max(card.used_bytes - freed_bytes, min(card.orphaned_bytes, card.used_bytes)))


def _activity(data: bytes, version: int, index: int) -> Activity:
    if version < _FIRST_WITH_ACTIVITY:
        return Activity()
    row = _ACTIVITY.unpack_from(data, ACTIVITY_AT + index * _ACTIVITY.size)
    turn, share, drain, queued = (Wait(*row[first : first + 2]) for first in range(0, 8, 2))
    return Activity(turn, share, drain, queued, *row[8:])


def _card(row: tuple[Any, ...], activity: Activity) -> CardUse:
    uuid, used, limit, peak, refusals, _, _, *counters = row
    second, ten_seconds = UsageWindow(*counters[-8:-4]), UsageWindow(*counters[-4:])
    limit_bytes = None if limit == _UNLIMITED else limit
    return CardUse(uuid_text(uuid), used, limit_bytes, peak, refusals, *[*counters[:-8], second, ten_seconds, activity])


def _processes(data: bytes, names: dict[int, CardUuid]) -> list[ProcessUse]:
    found = []
    for offset in range(SLOTS_AT, SLOTS_AT + MAX_PROCESSES * SLOT_SIZE, SLOT_SIZE):
        pid, _, start_time, namespace, _ = _SLOT.unpack_from(data, offset)
        if pid:
            used = _by_card(data, offset + _SLOT.size, names)
            managed = _by_card(data, offset + _SLOT.size + _USED.size, names)
            found.append(ProcessUse(pid, start_time, namespace, used, managed))
    return found


def _by_card(data: bytes, offset: int, names: dict[int, CardUuid]) -> tuple[tuple[CardUuid, int], ...]:
    amounts = _USED.unpack_from(data, offset)
    return tuple((name, amounts[index]) for index, name in names.items() if amounts[index])
