"""The spill: a directory of segments, files of lines that are appended and synced before an event counts as recorded.

    <directory>/00000000000000000042.log     named by the number of its first line

One writer appends to the last segment. A reader deletes segments that it has read to the end, never the last one: its
name says where the numbers go on. A writer that starts begins a new segment. What a killed writer left unfinished at
the end of the last segment is cut off and reported; an unreadable line between readable ones stays, and the reader
counts it.
"""

import fcntl
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from extender.history.recording import lines
from vgpu.domain.errors import MalformedEvent, SpillFull, UnusableSetting

SUFFIX: Final = ".log"
LOCK_FILE: Final = "writer.lock"
SEGMENT_BYTES: Final = 4 << 20


@dataclass(frozen=True, slots=True)
class Segment:
    """A file of the spill; `first` is the number of its first line."""

    path: Path
    first: int


@dataclass(frozen=True, slots=True)
class Recovery:
    """What a writer found: the number of the next line, and the bytes that it cut off as unfinished."""

    next_line: int
    torn_bytes: int


def segments(directory: Path) -> list[Segment]:
    """Return the segments, the oldest first; other files are ignored."""
    named = ((path, path.name.removesuffix(SUFFIX)) for path in directory.glob(f"*{SUFFIX}"))
    return sorted(
        (Segment(path, int(name)) for path, name in named if name.isdigit()), key=lambda segment: segment.first
    )


class Spill:
    """The writer's end. `max_bytes` bounds all segments together.

    Raises UnusableSetting where another process writes to the directory.
    """

    def __init__(self, directory: Path, *, max_bytes: int, segment_bytes: int = SEGMENT_BYTES) -> None:
        directory.mkdir(parents=True, exist_ok=True)
        self._directory = directory
        self._lock = _lock(directory)
        self._max_bytes = max_bytes
        self._segment_bytes = segment_bytes
        self.recovery = _recover(directory)
        self.next_line = self.recovery.next_line
        self._file = -1
        self._size = 0

    def append(self, added: Sequence[bytes]) -> None:
        """Append lines and sync them; after an error none of them is in the spill, and the call may be repeated.

        Raises:
            SpillFull: the spill has its largest size.
            OSError: the file system is full, or failed.
        """
        data = b"".join(added)
        if self._others() + self._size + len(data) > self._max_bytes:
            raise SpillFull(f"the spill in {self._directory} has {self._max_bytes} bytes: is the database reachable?")
        if self._file < 0 or self._size >= self._segment_bytes:
            self._begin_segment()
        try:
            _write(self._file, data)
            os.fdatasync(self._file)
        except OSError:
            os.ftruncate(self._file, self._size)
            os.lseek(self._file, self._size, os.SEEK_SET)
            raise
        self._size += len(data)
        self.next_line += len(added)

    def close(self) -> None:
        """Let another writer have the directory."""
        self._close_segment()
        os.close(self._lock)

    def _close_segment(self) -> None:
        if self._file >= 0:
            os.close(self._file)
            self._file = -1

    def _others(self) -> int:
        """Return the bytes of all segments but the one that is written."""
        current = _path(self._directory, self.next_line) if self._file < 0 else self._path
        return sum(_size(segment.path) for segment in segments(self._directory) if segment.path != current)

    def _begin_segment(self) -> None:
        path = _path(self._directory, self.next_line)
        file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
        _sync_directory(self._directory)
        self._close_segment()
        self._file, self._path, self._size = file, path, 0


def _lock(directory: Path) -> int:
    """Return a file that is locked until it is closed: the kernel closes it where this process is killed."""
    file = os.open(directory / LOCK_FILE, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(file)
        raise UnusableSetting(f"{directory}: another extender writes there; give each its own folder") from None
    return file


def _recover(directory: Path) -> Recovery:
    """Cut off what follows the last readable line of the last segment."""
    found = segments(directory)
    if not found:
        return Recovery(1, 0)
    data = found[-1].path.read_bytes()
    end = readable_bytes(data)
    if end < len(data):
        os.truncate(found[-1].path, end)
    return Recovery(found[-1].first + data.count(b"\n", 0, end), len(data) - end)


def readable_bytes(data: bytes) -> int:
    """Return where the last readable line ends, with its newline; 0 where there is none."""
    end = data.rfind(b"\n") + 1
    while end:
        start = data.rfind(b"\n", 0, end - 1) + 1
        if is_readable(data[start : end - 1]):
            return end
        end = start
    return 0


def is_readable(line: bytes) -> bool:
    """Whether a line is a record."""
    try:
        lines.decode(line)
    except MalformedEvent:
        return False
    return True


def _path(directory: Path, first: int) -> Path:
    return directory / f"{first:020d}{SUFFIX}"


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except FileNotFoundError:  # the reader has deleted it
        return 0


def _write(file: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(file, view) :]


def _sync_directory(directory: Path) -> None:
    file = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(file)
    finally:
        os.close(file)
