"""What runs under limits on this machine, as its files say. They are written by whoever runs: nothing is believed."""

import json
import os
import stat
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from limiter import local_state
from vgpu import limits, region
from vgpu.errors import MalformedError, VgpuError
from vgpu.limits import Limits
from vgpu.region import CardUse

NODE: Final = Path("/var/lib/vgpu")  # the device plugin's, where nothing else is said

_RECORD: Final = "record.json"  # the device plugin's note of whom an allocation is for
_MAX_TEXT: Final = 65536  # bytes


class CannotLook(VgpuError):
    """There is nothing to look at, or it may not be read; the message says which directory."""


@dataclass(frozen=True, slots=True)
class Sight:
    """One allocation.

    Attributes:
        folder: its directory, whose name is its ID.
        name: the command, or NAMESPACE/POD/CONTAINER; printable whatever was written. `(left)` stands before one whose
            `vgpu run` was killed: the next `vgpu run` removes it.
        limits: what is in force; None where that cannot be read.
        cards: what it used, card by card; empty before the first use, or where the region cannot be read.
    """

    folder: Path
    name: str
    limits: Limits | None
    cards: tuple[CardUse, ...]


def places(env: Mapping[str, str], chosen: Path | None) -> list[Path]:
    """Return the state directories to look at: the chosen one, or the user's own and the node's. Raises CannotLook."""
    if chosen is not None:
        if not os.access(chosen / local_state.ALLOCATIONS, os.R_OK | os.X_OK):
            raise CannotLook(f"--state: {chosen / local_state.ALLOCATIONS} cannot be read")
        return [chosen]
    return [each for each in (local_state.place(env), NODE) if _is_trusted(each)]


def look(place: Path) -> list[Sight]:
    """Read every allocation below a state directory, in the order of their names."""
    try:
        folders = [each for each in (place / local_state.ALLOCATIONS).iterdir() if (each / "limits").exists()]
    except OSError:
        return []
    found = [Sight(folder, _name(folder), read_limits(folder), _cards(folder)) for folder in folders]
    return sorted(found, key=lambda each: (each.name, each.folder.name))


def read_limits(folder: Path) -> Limits | None:
    """Read what is in force in an allocation; None where it cannot be read."""
    try:
        return limits.decode(_read(folder / "limits", limits.SIZE))
    except (OSError, MalformedError):
        return None


def _is_trusted(place: Path) -> bool:
    """Whether a directory is there, and nobody but its user or root could have put it there."""
    if not os.access(place / local_state.ALLOCATIONS, os.R_OK | os.X_OK):
        return False
    return place == NODE or not local_state.doubt(place)


def _cards(folder: Path) -> tuple[CardUse, ...]:
    try:
        return region.decode(_read(folder / "region", region.SIZE)).cards
    except (OSError, MalformedError):
        return ()


def _name(folder: Path) -> str:
    for name, read in ((local_state.COMMAND, _command), (_RECORD, _holder)):
        try:
            text = read(_read(folder / name, _MAX_TEXT))
        except (OSError, ValueError, LookupError, TypeError):
            continue
        left = "(left) " if name == local_state.COMMAND and not local_state.is_owned(folder) else ""
        return left + "".join(each if each.isprintable() else "?" for each in text)
    return "?"


def _command(written: bytes) -> str:
    """The command line without the folders of its program."""
    program, space, rest = written.decode().partition(" ")
    return program.rpartition("/")[2] + space + rest


def _holder(record: bytes) -> str:
    holder = json.loads(record)["holder"]
    return "/".join(str(holder[key]) for key in ("namespace", "name", "container"))


def _read(path: Path, size: int) -> bytes:
    """Read the beginning of a regular file; anything else could make us wait. Raises OSError."""
    handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    try:
        if not stat.S_ISREG(os.fstat(handle).st_mode):
            raise OSError(f"{path} is no regular file")
        return os.pread(handle, size, 0)
    finally:
        os.close(handle)
