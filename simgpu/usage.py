"""Reads the ledger of the simulated driver: the layout is that of ``simgpu/ledger/ledger.h``."""

import errno
import fcntl
import os
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

_HEAD = struct.Struct("<8sIIQ256s")  # magic, high, cards, fault_version, fault_used
_PLACES = 32
_PROCESSES = 4096
_UUID_SIZE = 48
_PEAKS = _HEAD.size + _PLACES * _UUID_SIZE
_SLOTS = _PEAKS + _PLACES * 8
_SLOT_SIZE = _PLACES * 16
_SHARE_COUNT = struct.Struct("<QQ")  # share_high, share_ids
_SHARES = _SLOTS + _PROCESSES * _SLOT_SIZE
_SHARE = struct.Struct("<QQIIQ" + 3 * f"{_PROCESSES // 8}s")  # as `_Share` has them
SHARES_END = _SHARES + _SHARE_COUNT.size + 1024 * _SHARE.size  # where the cards' time begins
_LIVE_BASE = 1 << 32
_FLOCK = struct.Struct("hhqqi4x")  # struct flock: type, whence, start, len, pid


def _locked(file: int, byte: int) -> bool:
    query = _FLOCK.pack(fcntl.F_WRLCK, os.SEEK_SET, byte, 1, 0)
    answer: tuple[int, ...] = _FLOCK.unpack(fcntl.fcntl(file, fcntl.F_OFD_GETLK, query))
    return answer[0] != fcntl.F_UNLCK


@dataclass(frozen=True, slots=True)
class _Ledger:
    """One reading of the file."""

    places: tuple[str, ...]
    peaks: tuple[int, ...]
    held: dict[int, dict[str, int]]  # bytes by card, of each living slot
    hidden: dict[str, int]  # by card, of shares that NVML counts with no process


def _open(path: Path) -> int | None:
    try:
        return os.open(path, os.O_RDWR | os.O_CLOEXEC)
    except OSError as error:
        if error.errno == errno.ENOENT:
            return None
        raise


def _add(sums: dict[str, int], card: str, size: int) -> None:
    if size:
        sums[card] = sums.get(card, 0) + size


@dataclass(frozen=True, slots=True)
class _Share:
    number: int
    size: int
    place: int
    exporter: int
    within: int  # the share whose descriptors hold this one too
    holders: bytes  # a bit for each slot
    seen: bytes
    imported: bytes  # seen while no descriptor is open


def _living(slots: bytes, ledger: _Ledger) -> list[int]:
    bits = int.from_bytes(slots, "little")
    return [slot for slot in ledger.held if bits >> slot & 1]


def _shares(file: int) -> Iterator[_Share]:
    """Each that is not free."""
    count, _ = _SHARE_COUNT.unpack(os.pread(file, _SHARE_COUNT.size, _SHARES).ljust(_SHARE_COUNT.size, b"\0"))
    raw = os.pread(file, count * _SHARE.size, _SHARES + _SHARE_COUNT.size)
    yield from (share for share in (_Share(*fields) for fields in _SHARE.iter_unpack(raw)) if share.number)


def _count_shares(file: int, directory: Path, ledger: _Ledger) -> None:
    descriptors = _open(directory / "shares")
    for share in _shares(file):
        seen, card = _living(share.seen, ledger), ledger.places[share.place]
        is_open = descriptors is not None and any(_locked(descriptors, n) for n in (share.number, share.within) if n)
        seen = seen or ([] if is_open else _living(share.imported, ledger))
        if seen:
            _add(ledger.held[share.exporter if share.exporter in seen else min(seen)], card, share.size)
        elif is_open or _living(share.holders, ledger):
            _add(ledger.hidden, card, share.size)
    if descriptors is not None:
        os.close(descriptors)


def _slots(file: int, high: int, places: tuple[str, ...]) -> dict[int, dict[str, int]]:
    state = os.pread(file, high * _SLOT_SIZE, _SLOTS)
    found: dict[int, dict[str, int]] = {}
    for slot in range(high):
        if _locked(file, _LIVE_BASE + slot):
            held = struct.unpack_from(f"<{len(places)}Q", state, slot * _SLOT_SIZE)
            found[slot] = {place: size for place, size in zip(places, held, strict=True) if size}
    return found


def _read(file: int, directory: Path) -> _Ledger:
    state = os.pread(file, _SLOTS, 0).ljust(_SLOTS, b"\0")
    high, cards = _HEAD.unpack_from(state)[1:3]
    starts = range(_HEAD.size, _HEAD.size + cards * _UUID_SIZE, _UUID_SIZE)
    places = tuple(state[start : start + _UUID_SIZE].rstrip(b"\0").decode() for start in starts)
    peaks = struct.unpack_from(f"<{cards}Q", state, _PEAKS)
    ledger = _Ledger(places, peaks, _slots(file, high, places), {})
    _count_shares(file, directory, ledger)
    return ledger


def _ledger(directory: Path) -> _Ledger:
    file = _open(directory / "state")
    if file is None:
        return _Ledger((), (), {}, {})
    try:
        return _read(file, directory)
    finally:
        os.close(file)


def bytes_by_process(directory: Path) -> Iterator[dict[str, int]]:
    """For each living process that uses the driver, in no order: bytes held by card UUID (only what is not 0).

    Shared memory is with whom NVML shows it: the process that exported it while it holds it, else one that imported it,
    else none.
    """
    yield from _ledger(directory).held.values()


def bytes_by_card(directory: Path) -> dict[str, int]:
    """Bytes held on each card by the living, by UUID; cards nobody holds anything of are left out."""
    ledger = _ledger(directory)
    sums = dict(ledger.hidden)
    for held in ledger.held.values():
        for card, size in held.items():
            _add(sums, card, size)
    return sums


def peak_bytes_by_card(directory: Path) -> dict[str, int]:
    """The most bytes the living ever held together on each card, by UUID."""
    ledger = _ledger(directory)
    return dict(zip(ledger.places, ledger.peaks, strict=True))
