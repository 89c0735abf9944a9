"""The processes that use an allocation's files, found in /proc by their environment or by their mappings."""

import os
from pathlib import Path
from typing import Final

_PROC: Final = Path("/proc")
_FILES: Final = ("environ", "maps")  # a program may overwrite its environment (setproctitle), but not its mappings


def uses(folder: Path) -> bool:
    """Whether a process of this user other than this one has files of a directory in its environment or mapped."""
    needle = os.fsencode(folder) + b"/"
    pids = (int(entry.name) for entry in _PROC.iterdir() if entry.name.isdecimal())
    return any(needle in _read(pid, name) for pid in pids if pid != os.getpid() for name in _FILES)


def _read(pid: int, name: str) -> bytes:
    """Return a file of a process; empty where the process has ended, or belongs to another user."""
    try:
        return (_PROC / str(pid) / name).read_bytes()
    except OSError:
        return b""
