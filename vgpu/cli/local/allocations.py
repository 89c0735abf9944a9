"""The allocations of this machine, read from their files. Other users write these files: nothing in them is trusted."""

import json
import os
import stat
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from limiter import local_state
from vgpu.adapters.slot_owners import SlotOwners
from vgpu.domain import printable
from vgpu.domain.asks import space
from vgpu.domain.errors import MalformedError, VgpuError
from vgpu.domain.formats import limits, region
from vgpu.domain.formats.limits import Limits
from vgpu.domain.formats.region import CardUse
from vgpu.domain.identifiers import CardUuid

NODE_STATE: Final = Path("/var/lib/vgpu")  # the device plugin's default

_RECORD: Final = "record.json"  # the device plugin's record of an allocation's holder
_MAX_TEXT: Final = 65536  # bytes
_MAX_GROUP: Final = 128  # bytes: the names of a namespace and a group, with what is between them


class StateUnreadable(VgpuError):
    """A state directory that cannot be read; the message says which one."""


@dataclass(frozen=True, slots=True)
class MachineAllocation:
    """One allocation.

    Attributes:
        folder: its directory, whose name is its ID.
        name: the command, or NAMESPACE/POD/CONTAINER, with only printable characters. `(left)` precedes the command
            where its `vgpu run` was killed: the next `vgpu run` removes such an allocation.
        limits: the limits in force; None where they cannot be read.
        cards: what is used of each card, without processes that were killed; empty before the first use, None where the
            region cannot be read.
        group: the name of its group in space, the first digits of the group's fingerprint where it has no name; empty
            where it is in none.
        is_container: whether it is a Kubernetes container's, whose record is removed a minute or more after its end.
    """

    folder: Path
    name: str
    limits: Limits | None
    cards: tuple[CardUse, ...] | None
    group: str = ""
    is_container: bool = False


def state_directories(env: Mapping[str, str], chosen: Path | None) -> list[Path]:
    """Return the state directories to read: `chosen`, else the user's and the node's. Raises StateUnreadable."""
    if chosen is not None:
        if not os.access(chosen / local_state.ALLOCATIONS, os.R_OK | os.X_OK):
            raise StateUnreadable(f"--state: {chosen / local_state.ALLOCATIONS} cannot be read")
        return [chosen]
    return [directory for directory in (local_state.state_directory(env), NODE_STATE) if _is_trusted(directory)]


def read_all(directory: Path) -> list[MachineAllocation]:
    """Read every allocation below a state directory, ordered by name."""
    try:
        folders = [path for path in (directory / local_state.ALLOCATIONS).iterdir() if (path / "limits").exists()]
    except OSError:
        return []
    return sorted(map(_allocation, folders), key=lambda allocation: (allocation.name, allocation.folder.name))


def read_limits(folder: Path) -> Limits | None:
    """Read the limits in force in an allocation; None where they cannot be read."""
    try:
        return limits.decode(_read(folder / "limits", limits.SIZE))
    except (OSError, MalformedError):
        return None


def _allocation(folder: Path) -> MachineAllocation:
    is_container = (folder / _RECORD).exists()
    found = read_limits(folder)
    return MachineAllocation(folder, _name(folder), found, _cards(folder), _group(folder, found), is_container)


def _is_trusted(directory: Path) -> bool:
    """Whether a state directory exists, and only its user or root can have created it."""
    if not os.access(directory / local_state.ALLOCATIONS, os.R_OK | os.X_OK):
        return False
    return directory == NODE_STATE or not local_state.distrust(directory)


def read_cards(folder: Path) -> tuple[CardUse, ...]:
    """Read what was used of each card in an allocation; empty where its region cannot be read."""
    return _cards(folder) or ()


def _cards(folder: Path) -> tuple[CardUse, ...] | None:
    try:
        with _opened(folder / "region") as handle:
            data = os.pread(handle, region.SIZE, 0)
            return region.cards(data, SlotOwners().ended(handle, data))
    except (OSError, MalformedError):
        return None


def read_linked_cards(folder: Path) -> tuple[list[frozenset[CardUuid]], frozenset[CardUuid]]:
    """Read the sets of cards that living processes have joined, and all cards that these use. Raises nothing."""
    try:
        with _opened(folder / "region") as handle:
            data = os.pread(handle, region.SIZE, 0)
            ended = SlotOwners().ended(handle, data)
            used = frozenset(card.gpu for card in region.cards(data, ended) if card.used_bytes)
            return region.linked_cards(data, ended), used
    except (OSError, MalformedError):
        return [], frozenset()


def read_region(folder: Path) -> bytes:
    """Read the bytes of an allocation's region. Raises OSError."""
    return _read(folder / "region", region.SIZE)


def _name(folder: Path) -> str:
    for name, read in ((local_state.COMMAND, _command), (_RECORD, _holder)):
        try:
            text = read(_read(folder / name, _MAX_TEXT))
        except (OSError, ValueError, LookupError, TypeError):
            continue
        left = "(left) " if name == local_state.COMMAND and not local_state.is_owned(folder) else ""
        return left + printable.line(text)
    return "?"


def _group(folder: Path, found: Limits | None) -> str:
    """Return the name of a member's group: the limits say whether there is one, the file beside them its name."""
    if found is None or found.space is None:
        return ""
    try:
        name = _read(folder / space.NAME_FILE, _MAX_GROUP).decode(errors="replace")
    except OSError:
        name = ""
    return printable.line(name) or found.space.group.hex()[:8]


def _command(written: bytes) -> str:
    """Return the command line without the folders of its program."""
    program, space, rest = written.decode(errors="replace").partition(" ")
    return program.rpartition("/")[2] + space + rest


def _holder(record: bytes) -> str:
    holder = json.loads(record)["holder"]
    return "/".join(str(holder[key]) for key in ("namespace", "name", "container"))


def _read(path: Path, size: int) -> bytes:
    """Read the beginning of a regular file. Raises OSError."""
    with _opened(path) as handle:
        return os.pread(handle, size, 0)


@contextmanager
def _opened(path: Path) -> Iterator[int]:
    """Open a regular file; opening any other kind of file could block. Raises OSError."""
    handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    try:
        if not stat.S_ISREG(os.fstat(handle).st_mode):
            raise OSError(f"{path} is no regular file")
        yield handle
    finally:
        os.close(handle)
