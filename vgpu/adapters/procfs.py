"""Processes of this machine, from /proc: what a process is called, and its cgroups.

A process chooses its own name, and a container may choose the names of cgroups below its own: both are untrusted input.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

_MAX_COMMAND: Final = 16  # TASK_COMM_LEN of the kernel
_MAX_CGROUPS: Final = 64 * 1024  # a line of at most 4 KiB for each of a dozen hierarchies


@dataclass(frozen=True, slots=True)
class Process:
    """A process.

    Attributes:
        command: the name of the main thread, of at most 16 printable characters.
        cgroups: the text of `/proc/<pid>/cgroup`.
    """

    command: str
    cgroups: str


class Procfs:
    """Reads processes. The pids are those of the pid namespace in which `root` was mounted."""

    def __init__(self, root: Path = Path("/proc")) -> None:
        self._root = root

    def process(self, pid: int) -> Process | None:
        """Return a process; None where there is none with this pid, or where it cannot be read."""
        try:
            with _opened(self._root / str(pid)) as directory:  # not a later process of the same pid
                command = _read(directory, "comm", _MAX_COMMAND + 1)
                cgroups = _read(directory, "cgroup", _MAX_CGROUPS + 1)
        except OSError:
            return None
        if len(cgroups) > _MAX_CGROUPS:
            return None
        return Process(_printable(command), cgroups.decode(errors="replace"))


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
    text = command.removesuffix(b"\n").decode(errors="replace")[:_MAX_COMMAND]
    return "".join(each if each.isprintable() else "?" for each in text)
