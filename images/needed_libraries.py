"""Shared libraries that programs and modules of an image need: a missing one would show at the first import only."""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Final

from limiter.build import elf

_MAGIC: Final = b"\x7fELF"


def missing(needed: Mapping[str, Iterable[str]], present: Iterable[str]) -> dict[str, str]:
    """Return each library that nothing provides, with one file that needs it.

    Args:
        needed: for each file, names of the libraries that it needs.
        present: names of files in the image.
    """
    there = set(present)
    return {library: file for file, names in needed.items() for library in names if library not in there}


def in_tree(trees: Iterable[Path]) -> dict[str, str]:
    """Return the libraries that the ELF files of an image's trees need and lack."""
    files = [path for tree in trees for path in tree.rglob("*") if not path.is_dir()]
    needed = {str(path): elf.needed(path.read_bytes()) for path in files if _is_elf(path)}
    return missing(needed, (path.name for path in files))


def _is_elf(path: Path) -> bool:
    if path.is_symlink() or not path.is_file():
        return False
    with path.open("rb") as file:
        return file.read(len(_MAGIC)) == _MAGIC
