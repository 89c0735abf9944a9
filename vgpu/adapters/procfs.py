"""Processes of this machine, from /proc: what a process is called, its cgroups, and the files that it has mapped.

A process chooses its own name, and a container may choose the names of cgroups below its own: both are untrusted input.
"""

import contextlib
import mmap
import os
import re
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Final

from vgpu.adapters.bounded_calls import BoundedCalls
from vgpu.domain import printable

COMMAND_LENGTH: Final = 15  # the kernel cuts the name of a command: TASK_COMM_LEN, with the byte at its end
_MAX_COMMAND: Final = COMMAND_LENGTH + 1
_MAX_CGROUPS: Final = 64 * 1024  # a line of at most 4 KiB for each of a dozen hierarchies
_MAX_MAPS: Final = 16 << 20  # 100,000 mappings; the kernel allows 65,530 unless an administrator allows more
_MAPS_TIMEOUT_S: Final = 1.0
_FIRST_PID_NAMESPACE: Final = "pid:[4026531836]"  # PROC_PID_INIT_INO of the kernel
_AT_ONCE: Final = 32  # processes, each in a thread

# Address range, device and inode of each mapping that is executable or shared and has a file.
_MAPPING: Final = re.compile(
    rb"^([0-9a-f]+-[0-9a-f]+) (?:..x.|...s) [0-9a-f]+ ([0-9a-f]+):([0-9a-f]+) ([1-9][0-9]*)\b", re.MULTILINE
)


@dataclass(frozen=True, slots=True, order=True)
class FileId:
    """A file, whatever its path in a container is: `st_dev` and `st_ino`."""

    device: int
    inode: int


def file_id(path: Path) -> FileId:
    """Return the identity of the file at a path of this machine, without opening the file. Raises OSError."""
    status = path.stat()
    return FileId(status.st_dev, status.st_ino)


@dataclass(frozen=True, slots=True)
class HostProcess:
    """A process.

    Attributes:
        command: the name of the main thread, of at most 16 printable characters.
        cgroups: the text of `/proc/<pid>/cgroup`.
    """

    command: str
    cgroups: str


class Procfs:
    """Reads processes. The pids are those of the pid namespace in which `root` was mounted."""

    def __init__(self, root: Path = Path("/proc"), timeout_s: float = _MAPS_TIMEOUT_S) -> None:
        """`timeout_s`: the time in which the mappings of a process must be read."""
        self._root = root
        self._calls = BoundedCalls(timeout_s)

    def process(self, pid: int) -> HostProcess | None:
        """Return a process; None where there is none with this pid, or where it cannot be read."""
        try:
            with _opened(self._root / str(pid)) as directory:  # not a later process of the same pid
                command = _read(directory, "comm", _MAX_COMMAND + 1)
                cgroups = _read(directory, "cgroup", _MAX_CGROUPS + 1)
        except OSError:
            return None
        if len(cgroups) > _MAX_CGROUPS:
            return None
        return HostProcess(_printable(command), cgroups.decode(errors="replace"))

    def mapped(self, pids: Collection[int]) -> dict[int, frozenset[FileId]]:
        """Return the files that processes have mapped as a program or as shared memory, by pid.

        A process that has ended is left out. A process whose mappings cannot be read, or not in time, has none: a fault
        on a file system that the process serves itself can hold the kernel's lock of the mappings for any time.
        """
        answers: dict[int, frozenset[FileId] | Exception | None] = {}
        ordered = sorted(pids)
        for batch in (ordered[at : at + _AT_ONCE] for at in range(0, len(ordered), _AT_ONCE)):
            answers |= self._calls.ask({pid: partial(_mapped, self._root / str(pid)) for pid in batch})
        found = {
            pid: frozenset[FileId]() if isinstance(answer, Exception) else answer for pid, answer in answers.items()
        }
        return {pid: process for pid, process in found.items() if process is not None}

    def mountinfos(self) -> dict[int, str]:
        """Return the mounts of every process, as proc(5) describes mountinfo, by pid; ended processes are left out."""
        found: dict[int, str] = {}
        for entry in self._root.iterdir():
            if entry.name.isdecimal():
                with contextlib.suppress(OSError), _opened(entry) as directory:
                    found[int(entry.name)] = _read(directory, "mountinfo", _MAX_MAPS).decode(errors="replace")
        return found

    def shows_every_process(self) -> bool:
        """Whether every process of the machine is seen, and its mounts: for root, outside of all pid namespaces."""
        return os.geteuid() == 0 and str((self._root / "self" / "ns" / "pid").readlink()) == _FIRST_PID_NAMESPACE

    def tells_files_apart(self, path: Path) -> bool:
        """Whether mappings can be judged: they have a file's identity, and those of process 1 can be read. Blocks.

        Some file systems show another identity, and only a privileged process reads the mappings of others.
        """
        own = os.getpid()
        try:
            with path.open("rb") as file, mmap.mmap(file.fileno(), 0, mmap.MAP_SHARED, mmap.PROT_READ):
                seen = self.mapped([1, own])
                return file_id(path) in seen.get(own, ()) and bool(seen.get(1))
        except (OSError, ValueError):
            return False


def _mapped(directory: Path) -> frozenset[FileId] | None:
    try:
        with _opened(directory) as opened:
            maps = _read(opened, "maps", _MAX_MAPS)
            return frozenset(_files(opened, maps)) if maps else None  # without an address space: the process has ended
    except (FileNotFoundError, ProcessLookupError):
        return None


def _files(directory: int, maps: bytes) -> Iterator[FileId]:
    """Yield the mapped files, each by what stat says where that is known: `maps` has other devices on btrfs."""
    ranges = {tuple(file): addresses for addresses, *file in _MAPPING.findall(maps)}
    for (major, minor, inode), addresses in ranges.items():
        try:
            status = os.stat(f"map_files/{addresses.decode()}", dir_fd=directory)
        except OSError:
            yield FileId(os.makedev(int(major, 16), int(minor, 16)), int(inode))
        else:
            yield FileId(status.st_dev, status.st_ino)


@contextmanager
def _opened(path: Path) -> Iterator[int]:
    directory = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        yield directory
    finally:
        os.close(directory)


def _read(directory: int, name: str, most: int) -> bytes:
    with os.fdopen(os.open(name, os.O_RDONLY | os.O_CLOEXEC, dir_fd=directory), "rb") as file:
        return file.read(most)


def _printable(command: bytes) -> str:
    return printable.line(command.removesuffix(b"\n").decode(errors="replace")[:_MAX_COMMAND])
