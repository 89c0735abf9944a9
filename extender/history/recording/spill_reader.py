"""Reads the spill in order, while another process appends to it, and deletes what was read and stored.

A reader that starts begins with the oldest segment: what it reads twice after a crash adds nothing to the database.
"""

import logging
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from extender.history.recording import lines, spill
from extender.history.recording.events import Record
from extender.history.recording.spill import Segment
from vgpu.domain.errors import MalformedEvent

BLOCK: Final = 1 << 20

log = logging.getLogger(__name__)


class SpillReader:
    """The reader's end. `next_line` is the number of the next line to read, `unreadable` counts lines skipped."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._segment: Segment | None = None
        self._offset = 0
        self.next_line = 0
        self.unreadable = 0
        self._stored = self._position()

    def read(self, limit: int) -> list[Record]:
        """Return up to `limit` events, in order; empty where nothing new is in the spill."""
        found: list[Record] = []
        while len(found) < limit:
            before = self.next_line
            found += self._read_block(limit - len(found))
            if self.next_line == before and not self._go_on():
                break
        return found

    def delete_read(self) -> None:
        """Delete the segments before the one that is read: call it when what was read is stored."""
        self._stored = self._position()
        current = self._segment
        if current is not None:
            for segment in spill.segments(self._directory):
                if segment.first < current.first:
                    segment.path.unlink(missing_ok=True)

    def rewind(self) -> None:
        """Go back to where everything was stored: what was read since was not."""
        self._segment, self._offset, self.next_line, self.unreadable = self._stored

    def _position(self) -> tuple[Segment | None, int, int, int]:
        return self._segment, self._offset, self.next_line, self.unreadable

    def _go_on(self) -> bool:
        """Go to the next segment, where there is one: then nothing is appended to this one any more."""
        current = self._segment
        first = -1 if current is None else current.first
        following = [segment for segment in spill.segments(self._directory) if segment.first > first]
        if not following:
            return False
        if current is not None and self._rest(current):
            log.warning("%s ends with a line that is not complete", current.path)
        self._segment, self._offset, self.next_line = following[0], 0, following[0].first
        return True

    def _rest(self, current: Segment) -> bytes:
        with current.path.open("rb") as file:
            file.seek(self._offset)
            return file.read(spill.SEGMENT_BYTES + lines.MAX_LINE)

    def _read_block(self, limit: int) -> list[Record]:
        if self._segment is None:
            return []
        with self._segment.path.open("rb") as file:
            file.seek(self._offset)
            data = file.read(BLOCK)
            if b"\n" not in data and len(data) == BLOCK:
                data += file.read(lines.MAX_LINE)
        return list(self._decoded(data, limit))

    def _decoded(self, data: bytes, limit: int) -> Iterator[Record]:
        """Decode complete lines. An unreadable one is skipped if a readable one follows: else it may be unfinished."""
        end = spill.readable_bytes(data)
        start = 0
        while start < end and limit:
            stop = data.index(b"\n", start)
            try:
                yield lines.decode(data[start:stop])
                limit -= 1
            except MalformedEvent as error:
                self.unreadable += 1
                log.warning("line %d of the spill is left out: %s", self.next_line, error)
            self._offset += stop + 1 - start
            self.next_line += 1
            start = stop + 1
