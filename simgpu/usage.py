"""Reads from a state directory how many bytes of each card are in use; `ledger/state.h` defines the layout."""

import errno
import fcntl
import os
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

_HEAD = struct.Struct("<8sIIQ256s")  # magic, slots_used, cards, fault_version, fault_used
_CARDS = 32
_SLOT_COUNT = 4096
_UUID_SIZE = 48
_PEAKS = _HEAD.size + _CARDS * _UUID_SIZE
_SLOTS = _PEAKS + _CARDS * 8
_SLOT_SIZE = _CARDS * 20 + 4 * 8  # bytes, busy_until and contexts of each card; server, faults, bytes, percentage
_SHARED_HEAD = struct.Struct("<QQ")  # shared_used, shared_ids
_SHARED = _SLOTS + _SLOT_COUNT * _SLOT_SIZE
_SHARED_ENTRY = struct.Struct("<QQIIQ" + 3 * f"{_SLOT_COUNT // 8}s")  # the fields of `_SharedMemory`
CARD_TIMES = _SHARED + _SHARED_HEAD.size + 1024 * _SHARED_ENTRY.size  # offset of the cards' time lines
_LIVE_BASE = 1 << 32
_FLOCK = struct.Struct("hhqqi4x")  # struct flock: type, whence, start, len, pid


@dataclass(frozen=True, slots=True)
class _Ledger:
    """One reading of the file."""

    uuids: tuple[str, ...]  # by index of the card
    peaks: tuple[int, ...]
    held: dict[int, dict[str, int]]  # bytes by card, of each slot whose process lives
    unattributed: dict[str, int]  # bytes by card, of shared memory that NVML counts with no process


@dataclass(frozen=True, slots=True)
class _SharedMemory:
    id: int
    size: int
    card: int
    exporter: int
    parent_id: int  # shared memory whose open descriptors hold this memory too
    holders: bytes  # one bit for each slot
    attributed: bytes
    attributed_when_closed: bytes


def bytes_by_card(directory: Path) -> dict[str, int]:
    """Return the bytes in use on each card, by UUID. A card of which nothing is in use is left out."""
    ledger = _ledger(directory)
    sums = dict(ledger.unattributed)
    for held in ledger.held.values():
        for card, size in held.items():
            _add(sums, card, size)
    return sums


def peak_bytes_by_card(directory: Path) -> dict[str, int]:
    """Return the most bytes that living processes ever held together on each card, by UUID."""
    ledger = _ledger(directory)
    return dict(zip(ledger.uuids, ledger.peaks, strict=True))


def bytes_by_process(directory: Path) -> Iterator[dict[str, int]]:
    """Yield, for each living process that uses the simulated GPU, the bytes it holds by card; 0 is left out.

    Shared memory is counted with the process that NVML counts it with: its exporter while the exporter holds it, else
    one that imported it, else none.
    """
    yield from _ledger(directory).held.values()


def _ledger(directory: Path) -> _Ledger:
    file = _open(directory / "state")
    if file is None:
        return _Ledger((), (), {}, {})
    try:
        return _read(file, directory)
    finally:
        os.close(file)


def _open(path: Path) -> int | None:
    try:
        return os.open(path, os.O_RDWR | os.O_CLOEXEC)
    except OSError as error:
        if error.errno == errno.ENOENT:
            return None
        raise


def _read(file: int, directory: Path) -> _Ledger:
    state = os.pread(file, _SLOTS, 0).ljust(_SLOTS, b"\0")
    slots_used, cards = _HEAD.unpack_from(state)[1:3]
    starts = range(_HEAD.size, _HEAD.size + cards * _UUID_SIZE, _UUID_SIZE)
    uuids = tuple(state[start : start + _UUID_SIZE].rstrip(b"\0").decode() for start in starts)
    peaks = struct.unpack_from(f"<{cards}Q", state, _PEAKS)
    ledger = _Ledger(uuids, peaks, _slots(file, slots_used, uuids), {})
    _add_shared_memory(file, directory, ledger)
    return ledger


def _slots(file: int, slots_used: int, uuids: tuple[str, ...]) -> dict[int, dict[str, int]]:
    state = os.pread(file, slots_used * _SLOT_SIZE, _SLOTS)
    found: dict[int, dict[str, int]] = {}
    for slot in range(slots_used):
        if _is_locked(file, _LIVE_BASE + slot):
            held = struct.unpack_from(f"<{len(uuids)}Q", state, slot * _SLOT_SIZE)
            found[slot] = {card: size for card, size in zip(uuids, held, strict=True) if size}
    return found


def _is_locked(file: int, byte: int) -> bool:
    query = _FLOCK.pack(fcntl.F_WRLCK, os.SEEK_SET, byte, 1, 0)
    answer: tuple[int, ...] = _FLOCK.unpack(fcntl.fcntl(file, fcntl.F_OFD_GETLK, query))
    return answer[0] != fcntl.F_UNLCK


def _add_shared_memory(file: int, directory: Path, ledger: _Ledger) -> None:
    descriptors = _open(directory / "shares")
    for memory in _shared_memory(file):
        attributed, card = _living(memory.attributed, ledger), ledger.uuids[memory.card]
        ids = [number for number in (memory.id, memory.parent_id) if number]
        is_open = descriptors is not None and any(_is_locked(descriptors, number) for number in ids)
        attributed = attributed or ([] if is_open else _living(memory.attributed_when_closed, ledger))
        if attributed:
            slot = memory.exporter if memory.exporter in attributed else min(attributed)
            _add(ledger.held[slot], card, memory.size)
        elif is_open or _living(memory.holders, ledger):
            _add(ledger.unattributed, card, memory.size)
    if descriptors is not None:
        os.close(descriptors)


def _shared_memory(file: int) -> Iterator[_SharedMemory]:
    count, _ = _SHARED_HEAD.unpack(os.pread(file, _SHARED_HEAD.size, _SHARED).ljust(_SHARED_HEAD.size, b"\0"))
    raw = os.pread(file, count * _SHARED_ENTRY.size, _SHARED + _SHARED_HEAD.size)
    entries = (_SharedMemory(*fields) for fields in _SHARED_ENTRY.iter_unpack(raw))
    yield from (entry for entry in entries if entry.id)


def _living(slots: bytes, ledger: _Ledger) -> list[int]:
    bits = int.from_bytes(slots, "little")
    return [slot for slot in ledger.held if bits >> slot & 1]


def _add(sums: dict[str, int], card: str, size: int) -> None:
    if size:
        sums[card] = sums.get(card, 0) + size
