"""What processes and their descendants use of the host: processor time, bytes read and written, from /proc.

https://docs.kernel.org/filesystems/proc.html
"""

import os
from collections.abc import Collection, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

_MAX_PROCESSES: Final = 4096  # of a tree
_TICKS_AT: Final = (11, 12)  # utime and stime in /proc/PID/stat, after the name
_THREADS_AT: Final = 17
_NS: Final = 1_000_000_000


@dataclass(frozen=True, slots=True)
class HostUse:
    """Totals since the process began, and its threads now.

    Attributes:
        cpu_ns: processor time.
        read_bytes: by read(2) and its like, from the page cache too.
        written_bytes: by write(2) and its like.
        storage_bytes: that were read from storage, because the page cache did not have them.
        threads: number of threads.
    """

    cpu_ns: int = 0
    read_bytes: int = 0
    written_bytes: int = 0
    storage_bytes: int = 0
    threads: int = 0


def of_trees(pids: Collection[int], root: Path = Path("/proc")) -> dict[int, HostUse]:
    """Return the use of processes and all their descendants, by pid; what cannot be read is left out."""
    found: dict[int, HostUse] = {}
    for pid in _trees(pids, root):
        with suppress(OSError, ValueError, LookupError):
            found[pid] = _one(root / str(pid))
    return found


def between(before: Mapping[int, HostUse], after: Mapping[int, HostUse]) -> HostUse:
    """Return what processes have used between two readings; a process that has ended counts for nothing."""
    pairs = [(use, before.get(pid, HostUse())) for pid, use in after.items()]
    return HostUse(
        sum(max(0, new.cpu_ns - old.cpu_ns) for new, old in pairs),
        sum(max(0, new.read_bytes - old.read_bytes) for new, old in pairs),
        sum(max(0, new.written_bytes - old.written_bytes) for new, old in pairs),
        sum(max(0, new.storage_bytes - old.storage_bytes) for new, old in pairs),
        sum(new.threads for new, _ in pairs),
    )


def pids_here(inside: Collection[tuple[int, int]], root: Path = Path("/proc")) -> set[int]:
    """Return the pids, in the pid namespace of `root`, of processes named by pid and pid namespace (inode number)."""
    wanted = set(inside)
    return {int(entry.name) for entry in root.iterdir() if entry.name.isdecimal() and _inside(entry) in wanted}


def found_here(inside: Collection[tuple[int, int]]) -> set[tuple[int, int]]:
    """Return those of the processes, named by pid and pid namespace, that /proc shows; zombies are left out."""
    wanted, found = set(inside), set[tuple[int, int]]()
    for entry in Path("/proc").iterdir():
        if entry.name.isdecimal() and (process := _inside(entry)) in wanted and not _is_zombie(entry):
            found.add(process)
    return found


def _is_zombie(process: Path) -> bool:
    """Whether all threads have ended; a process whose main thread has ended while others run is none."""
    try:
        fields = (process / "stat").read_text(errors="replace").rpartition(")")[2].split()
        return fields[0] in ("Z", "X") and int(fields[_THREADS_AT]) <= 1
    except (OSError, ValueError, LookupError):
        return True


def _inside(process: Path) -> tuple[int, int] | None:
    """Return the pid that a process has in its own pid namespace, and that namespace."""
    try:
        namespace = (process / "ns" / "pid").stat().st_ino
        status = (process / "status").read_text(errors="replace")
    except OSError:
        return None
    pids = next((line.split()[1:] for line in status.splitlines() if line.startswith("NSpid:")), [])
    return (int(pids[-1]), namespace) if pids else None


def _trees(pids: Collection[int], root: Path) -> Iterator[int]:
    waiting, seen = list(pids), set[int]()
    while waiting and len(seen) < _MAX_PROCESSES:
        pid = waiting.pop()
        if pid not in seen:
            seen.add(pid)
            yield pid
            waiting += _children(root / str(pid))


def _children(process: Path) -> Iterator[int]:
    with suppress(OSError):
        for task in (process / "task").iterdir():
            with suppress(OSError, ValueError):
                yield from map(int, (task / "children").read_text().split())


def _one(process: Path) -> HostUse:
    fields = (process / "stat").read_text(errors="replace").rpartition(")")[2].split()
    ticks = sum(int(fields[place]) for place in _TICKS_AT)
    counters = dict(line.split(": ") for line in (process / "io").read_text().splitlines())
    read, written, fetched = (int(counters[name]) for name in ("rchar", "wchar", "read_bytes"))
    return HostUse(ticks * _NS // os.sysconf("SC_CLK_TCK"), read, written, fetched, int(fields[_THREADS_AT]))
