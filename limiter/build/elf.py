"""Reads a shared library's symbols and what it depends on: 64-bit little-endian ELF, with sections.

Layouts from the System V ABI and the LSB's chapter on symbol versioning.
"""

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

_SECTION: Final = struct.Struct("<IIQQQQIIQQ")  # name, type, flags, address, offset, size, link, info, align, entsize
_SYMBOL: Final = struct.Struct("<IBBHQQ")  # name, info, other, section, value, size
_DYNAMIC: Final = struct.Struct("<QQ")
_NEED: Final = struct.Struct("<HHIII")  # version, count, file, first aux, next
_NEED_AUX: Final = struct.Struct("<IHHII")  # hash, flags, other, name, next

_DYNAMIC_SECTION: Final = 6
_DYNSYM_SECTION: Final = 11
_VERNEED_SECTION: Final = 0x6FFFFFFE
_DT_NEEDED: Final = 1


@dataclass(frozen=True, slots=True)
class Library:
    """A shared library: names exported, names imported, libraries needed, glibc versions needed."""

    exports: frozenset[str]
    imports: frozenset[str]
    needed: frozenset[str]
    glibc: tuple[tuple[int, ...], ...]


@dataclass(frozen=True, slots=True)
class _Section:
    kind: int
    offset: int
    size: int
    link: int


def read(data: bytes) -> Library:
    """Read a library's bytes."""
    sections = list(_sections(data))
    return Library(
        exports=frozenset(name for name, is_defined in _symbols(data, sections) if is_defined),
        imports=frozenset(name for name, is_defined in _symbols(data, sections) if not is_defined),
        needed=needed(data),
        glibc=tuple(
            tuple(map(int, name.removeprefix("GLIBC_").split(".")))
            for section in _of(sections, _VERNEED_SECTION)
            for name in _versions(data, section, sections[section.link])
        ),
    )


def needed(data: bytes) -> frozenset[str]:
    """Return the names of the libraries that a program or library needs."""
    sections = list(_sections(data))
    return frozenset(
        _string(data, sections[section.link], value)
        for section in _of(sections, _DYNAMIC_SECTION)
        for tag, value in _DYNAMIC.iter_unpack(_bytes(data, section))
        if tag == _DT_NEEDED
    )


def _sections(data: bytes) -> Iterator[_Section]:
    (table,) = struct.unpack_from("<Q", data, 0x28)
    (count,) = struct.unpack_from("<H", data, 0x3C)
    for index in range(count):
        _, kind, _, _, offset, size, link, *_ = _SECTION.unpack_from(data, table + index * _SECTION.size)
        yield _Section(kind, offset, size, link)


def _of(sections: list[_Section], kind: int) -> list[_Section]:
    return [section for section in sections if section.kind == kind]


def _bytes(data: bytes, section: _Section) -> bytes:
    return data[section.offset : section.offset + section.size]


def _string(data: bytes, strings: _Section, index: int) -> str:
    start = strings.offset + index
    return data[start : data.index(b"\0", start)].decode()


def _symbols(data: bytes, sections: list[_Section]) -> Iterator[tuple[str, bool]]:
    """Yield each dynamic symbol's name, and whether the library defines it."""
    for section in _of(sections, _DYNSYM_SECTION):
        for name, _, _, where, _, _ in _SYMBOL.iter_unpack(_bytes(data, section)):
            if name:
                yield _string(data, sections[section.link], name), bool(where)


def _versions(data: bytes, section: _Section, strings: _Section) -> Iterator[str]:
    at = section.offset
    while True:
        _, count, _, first, following = _NEED.unpack_from(data, at)
        aux = at + first
        for _ in range(count):
            _, _, _, name, following_aux = _NEED_AUX.unpack_from(data, aux)
            yield _string(data, strings, name)
            aux += following_aux
        if not following:
            return
        at += following
