"""The files by which the device plugin says which groups have members, and the supervisor which of them are served.

<space>/members/<card>/<group>/<allocation>   empty; the device plugin's. A group with such a file is wanted
<space>/ready/<card>/<group>                  empty; the supervisor's: a daemon serves the group
<space>/pipe/<card>/<group>/                  the daemon's pipe directory, mounted into the members
<space>/log/<card>/<group>/                   the daemon's logs
<space>/faults/<card>/<group>                  empty; the supervisor touches it when the group's server has faulted
<space>/alive                                 empty; the supervisor touches it in each round, so a node whose file is
                                              old has no supervisor

`<group>` is `SpaceGroup.directory`. A pipe directory is never replaced, because containers have it mounted.

The order of reads and writes leaves no moment in which a member starts without a daemon: a member is added before
`ready` is read, and `ready` is removed before the members are read a last time and a daemon is ended.
"""

import contextlib
import re
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from vgpu.domain.errors import StateUnusable
from vgpu.domain.identifiers import CardUuid

_CARD: Final = re.compile(r"GPU-[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.ASCII)
_GROUP: Final = re.compile(r"[0-9a-f]{16}", re.ASCII)
ALIVE: Final = "alive"
SUPERVISED_S: Final = 10.0  # for which a supervisor that runs may not have touched its file

_SOCKET: Final = 107  # characters of a socket's path, at most
_LONGEST_NAMES: Final = len("/pipe/GPU-01234567-89ab-cdef-0123-456789abcdef/0123456789abcdef/control_privileged")


@dataclass(frozen=True, slots=True, order=True)
class GroupOnCard:
    """What one daemon serves: a group on a card. Raises ValueError where a name is none of a card or a group.

    Attributes:
        card: UUID of the card.
        group: `SpaceGroup.directory` of the group.
    """

    card: CardUuid
    group: str

    def __post_init__(self) -> None:
        if not _CARD.fullmatch(self.card) or not _GROUP.fullmatch(self.group):
            raise ValueError(f"not a group on a card: {self.card!r}, {self.group!r}")

    def __str__(self) -> str:
        """Return the two names, as the paths have them."""
        return f"{self.card}/{self.group}"


class SpaceDirectories:
    """The files below `<space>`. All functions raise OSError."""

    def __init__(self, space: Path, label: Callable[[Path], None] = lambda _: None) -> None:
        """Raise StateUnusable where the path leaves no room for the name of a socket.

        `label` is called with each pipe directory before a daemon makes its sockets there: containers use them.
        """
        if len(str(space)) + _LONGEST_NAMES > _SOCKET:
            raise StateUnusable(f"{space}: too long for sockets below it; use a shorter state directory")
        self._members, self._ready = space / "members", space / "ready"
        self._pipe, self._log = space / "pipe", space / "log"
        self._alive, self._faults = space / ALIVE, space / "faults"
        self._label = label

    def pipe(self, of: GroupOnCard) -> Path:
        """Return the pipe directory."""
        return self._pipe / str(of)

    def log(self, of: GroupOnCard) -> Path:
        """Return the directory of the daemon's logs."""
        return self._log / str(of)

    def of_pipe(self, path: Path) -> GroupOnCard | None:
        """Return whose pipe directory a path is; None where it is another path."""
        if path.parent.parent != self._pipe:
            return None
        with contextlib.suppress(ValueError):
            return GroupOnCard(CardUuid(path.parent.name), path.name)
        return None

    def add_member(self, of: GroupOnCard, allocation: str) -> None:
        """Say that an allocation is a member; its group is wanted from now on."""
        path = self._members / str(of) / allocation
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()

    def remove_member(self, of: GroupOnCard, allocation: str) -> None:
        """Say that an allocation is no member any more; it may have been none."""
        (self._members / str(of) / allocation).unlink(missing_ok=True)

    def keep_members(self, allocations: Collection[str]) -> None:
        """Say that no other allocations are members any more."""
        for path in self._members.glob("*/*/*"):
            if path.name not in allocations:
                path.unlink(missing_ok=True)

    def members(self, of: GroupOnCard) -> frozenset[str]:
        """Return the allocations that are members."""
        try:
            return frozenset(path.name for path in (self._members / str(of)).iterdir())
        except FileNotFoundError:
            return frozenset()

    def wanted(self) -> frozenset[GroupOnCard]:
        """Return the groups that have members. What is named as no group is left out."""
        return frozenset(of for of in _listed(self._members) if self.members(of))

    def is_ready(self, of: GroupOnCard) -> bool:
        """Whether the supervisor says that a daemon serves the group. Ask after `add_member`."""
        return (self._ready / str(of)).exists()

    def set_ready(self, of: GroupOnCard, *, is_ready: bool) -> None:
        """Say whether a daemon serves the group."""
        path = self._ready / str(of)
        if is_ready:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.touch()
        else:
            path.unlink(missing_ok=True)

    def ready(self) -> frozenset[GroupOnCard]:
        """Return the groups that are said to be served."""
        return frozenset(_listed(self._ready))

    def set_supervised(self, *, is_supervised: bool) -> None:
        """Say whether a supervisor runs; one that does says it again within SUPERVISED_S."""
        if is_supervised:
            self._alive.parent.mkdir(parents=True, exist_ok=True)
            self._alive.touch()
        else:
            self._alive.unlink(missing_ok=True)

    def is_supervised(self, now: float) -> bool:
        """Whether a supervisor runs; `now` is in seconds since 1970."""
        try:
            return now - self._alive.stat().st_mtime < SUPERVISED_S
        except FileNotFoundError:
            return False

    def note_fault(self, of: GroupOnCard) -> None:
        """Say that the group's server has faulted now."""
        path = self._faults / str(of)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()

    def forget_fault(self, of: GroupOnCard) -> None:
        """Say nothing of faults of a group any more."""
        (self._faults / str(of)).unlink(missing_ok=True)

    def faults(self) -> dict[GroupOnCard, float]:
        """Return when the server of each group has faulted last, in seconds since 1970."""
        found: dict[GroupOnCard, float] = {}
        for of in _listed(self._faults):
            with contextlib.suppress(FileNotFoundError):
                found[of] = (self._faults / str(of)).stat().st_mtime
        return found

    def make(self, of: GroupOnCard) -> None:
        """Make the daemon's directories, unless they exist. Members of any user use the pipe directory."""
        for path in (self.pipe(of), self.log(of)):
            path.mkdir(parents=True, exist_ok=True)
        self.pipe(of).chmod(0o755)
        self._label(self.pipe(of))  # a socket gets the type of its directory


def _listed(folder: Path) -> Iterator[GroupOnCard]:
    for path in folder.glob("*/*"):
        with contextlib.suppress(ValueError):
            yield GroupOnCard(CardUuid(path.parent.name), path.name)


def below_state(state: Path) -> SpaceDirectories | None:
    """Return the directories below a state directory; None where a socket's path would not fit: no group is served."""
    try:
        return SpaceDirectories(state / "space")
    except StateUnusable:
        return None
