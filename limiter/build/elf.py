"""Which symbols and libraries a shared library or a program has and needs, as pyelftools reads its ELF file."""

from collections.abc import Iterator
from dataclasses import dataclass
from io import BytesIO

from elftools.elf.dynamic import DynamicSection
from elftools.elf.elffile import ELFFile
from elftools.elf.gnuversions import GNUVerNeedSection
from elftools.elf.sections import SymbolTableSection


@dataclass(frozen=True, slots=True)
class Library:
    """A shared library: names exported, names imported, libraries needed, glibc versions needed."""

    exports: frozenset[str]
    imports: frozenset[str]
    needed: frozenset[str]
    glibc: tuple[tuple[int, ...], ...]


def read(data: bytes) -> Library:
    """Read a library's bytes."""
    file = ELFFile(BytesIO(data))
    symbols = list(_symbols(file))
    return Library(
        exports=frozenset(name for name, is_defined in symbols if is_defined),
        imports=frozenset(name for name, is_defined in symbols if not is_defined),
        needed=frozenset(_needed(file)),
        glibc=tuple(tuple(map(int, name.removeprefix("GLIBC_").split("."))) for name in _versions(file)),
    )


def needed(data: bytes) -> frozenset[str]:
    """Return the names of the libraries that a program or library needs."""
    return frozenset(_needed(ELFFile(BytesIO(data))))


def _symbols(file: ELFFile) -> Iterator[tuple[str, bool]]:
    """Yield each dynamic symbol's name, and whether the library defines it."""
    for section in file.iter_sections("SHT_DYNSYM"):
        if isinstance(section, SymbolTableSection):
            yield from (
                (symbol.name, symbol["st_shndx"] != "SHN_UNDEF") for symbol in section.iter_symbols() if symbol.name
            )


def _needed(file: ELFFile) -> Iterator[str]:
    for section in file.iter_sections("SHT_DYNAMIC"):
        if isinstance(section, DynamicSection):
            # pyelftools sets the attribute of this name on tags of this kind only, so its type does not have it.
            yield from (tag.needed for tag in section.iter_tags("DT_NEEDED"))  # type: ignore[attr-defined]


def _versions(file: ELFFile) -> Iterator[str]:
    for section in file.iter_sections("SHT_GNU_verneed"):
        if isinstance(section, GNUVerNeedSection):
            yield from (version.name for _, versions in section.iter_versions() for version in versions)
