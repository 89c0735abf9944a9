"""What a shared library's own headers say: for which processor it is, and its SONAME, by which the loader asks for it.

Format: the System V ABI, https://refspecs.linuxfoundation.org/elf/gabi4+/contents.html. Only 64-bit little-endian files
are read. Every offset and count of the file is untrusted.
"""

import struct
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Final

_HEADER: Final = struct.Struct("<4sBB10xHHIQQQIHHH")  # up to the count of program headers
_PROGRAM: Final = struct.Struct("<IIQQQQQQ")
_DYNAMIC: Final = struct.Struct("<qQ")
_LOADED, _DYNAMIC_PART = 1, 2  # types of program headers
_END, _STRINGS, _SONAME = 0, 5, 14  # tags of the dynamic part
_64_BIT, _LITTLE_ENDIAN = 2, 1
_MAX_PARTS: Final = 128
_MAX_DYNAMIC: Final = 64 * 1024  # bytes
_MAX_NAME: Final = 255

Read = Callable[[int, int], bytes]  # size and offset; fewer bytes where the file ends


@dataclass(frozen=True, slots=True)
class ElfNames:
    """One shared library.

    Attributes:
        machine: number of the processor's kind: 62 is x86-64, 183 is AArch64.
        soname: the name by which the loader asks for the library; empty where the file has none.
    """

    machine: int
    soname: str


@dataclass(frozen=True, slots=True)
class _Part:
    kind: int
    offset: int
    address: int
    size: int


def read(read_at: Read) -> ElfNames | None:
    """Return what the headers say; None where this is no shared library of 64 bits, or is damaged."""
    try:
        return _names(read_at)
    except (struct.error, OSError, OverflowError, UnicodeDecodeError):
        return None


def _names(read_at: Read) -> ElfNames | None:
    magic, bits, order, _, machine, _, _, start, _, _, _, size, count = _HEADER.unpack(read_at(_HEADER.size, 0))
    if (magic, bits, order, size) != (b"\x7fELF", _64_BIT, _LITTLE_ENDIAN, _PROGRAM.size):
        return None
    parts = list(_parts(read_at, start, min(count, _MAX_PARTS)))
    dynamic = {}
    for part in parts:
        if part.kind == _DYNAMIC_PART:
            dynamic = dict(_entries(read_at(min(part.size, _MAX_DYNAMIC), part.offset)))
    if _SONAME not in dynamic or _STRINGS not in dynamic:
        return ElfNames(machine, "")
    for part in parts:
        strings = dynamic[_STRINGS] - part.address
        if part.kind == _LOADED and 0 <= strings < part.size:
            text = read_at(_MAX_NAME + 1, part.offset + strings + dynamic[_SONAME])
            return ElfNames(machine, text.partition(b"\0")[0].decode("ascii"))
    return None


def _parts(read_at: Read, start: int, count: int) -> Iterator[_Part]:
    for number in range(count):
        header = read_at(_PROGRAM.size, start + number * _PROGRAM.size)
        kind, _, offset, address, _, size, _, _ = _PROGRAM.unpack(header)
        yield _Part(kind, offset, address, size)


def _entries(dynamic: bytes) -> Iterator[tuple[int, int]]:
    whole = len(dynamic) - len(dynamic) % _DYNAMIC.size
    for tag, value in _DYNAMIC.iter_unpack(dynamic[:whole]):
        if tag == _END:
            return
        yield tag, value
