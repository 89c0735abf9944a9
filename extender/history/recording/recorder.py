"""Takes records from the verbs and the watches without ever blocking them, and appends them to the spill in a thread.

A record counts as recorded when the spill is synced. While the spill cannot be written, records wait in memory, up to
`MAX_QUEUED` of them; what comes then is dropped, and a `Gap` is recorded that says how many.
"""

import logging
import queue
import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, Protocol

from extender.history.recording import lines
from extender.history.recording.events import Gap, Record
from extender.history.recording.spill import Spill
from vgpu.domain.errors import SpillFull
from vgpu.pacing.back_off import BackOff

MAX_QUEUED: Final = 50_000
BATCH: Final = 1_000
RETRIES: Final = BackOff(first_s=0.1, longest_s=5.0)

log = logging.getLogger(__name__)


class HistoryRecorder(Protocol):
    """Where the parts of the extender hand over what happens."""

    def record(self, record: Record) -> None:
        """Take a record; returns at once, and never fails."""


class NoRecorder:
    """For an extender without a history: takes records and drops them."""

    def record(self, record: Record) -> None:
        """Drop a record."""


NO_RECORDER: Final = NoRecorder()


@dataclass(frozen=True, slots=True)
class RecorderState:
    """The recorder's figures, for metrics.

    Attributes:
        queued: records in memory that are not synced yet.
        next_line: the number of the spill's next line: as many lines as this, less the drain's, wait for the database.
        dropped: records that were dropped.
        error: why the spill cannot be written now; empty where it can.
    """

    queued: int
    next_line: int
    dropped: int
    error: str


class SpillRecorder:
    """Appends records to `spill`, of which `max_queued` wait at most.

    `now_ms` is the wall clock; `replica` names this process in a `Gap`.
    """

    def __init__(self, spill: Spill, replica: str, now_ms: Callable[[], int], *, max_queued: int = MAX_QUEUED) -> None:
        self._max_queued = max_queued
        self._spill = spill
        self._replica = replica
        self._now_ms = now_ms
        self._queue: queue.SimpleQueue[Record | None] = queue.SimpleQueue()
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="history-spill", daemon=True)
        self._pending = 0
        self._error = ""
        self._dropped = 0
        self._gap: Gap | None = None
        if spill.recovery.torn_bytes:
            log.warning("history: the last %d bytes of the spill were incomplete", spill.recovery.torn_bytes)

    def record(self, record: Record) -> None:
        """Take a record; drop it where too many wait."""
        if self._queue.qsize() >= self._max_queued:
            self._drop()
        else:
            self._queue.put(record)

    def state(self) -> RecorderState:
        """Return the figures."""
        return RecorderState(self._queue.qsize() + self._pending, self._spill.next_line, self._dropped, self._error)

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    def stop(self, timeout_s: float) -> bool:
        """Write what was taken, then end the thread; return whether it ended in time."""
        self._queue.put(None)
        self._stopping.set()
        self._thread.join(timeout_s)
        return not self._thread.is_alive()

    def _drop(self) -> None:
        now = self._now_ms()
        gap = self._gap or Gap(self._replica, now, now, 0)
        self._gap = Gap(gap.replica, gap.from_ms, now, gap.events + 1)
        self._dropped += 1

    def _run(self) -> None:
        is_last = False
        while not is_last:
            batch, is_last = self._next_batch()
            if batch:
                self._append(batch)
        self._spill.close()

    def _next_batch(self) -> tuple[list[Record], bool]:
        """Wait for a record, and return it with all that wait behind it; and whether the end was among them."""
        found = [self._queue.get()]
        while len(found) < BATCH and not self._queue.empty():
            found.append(self._queue.get())
        gap, self._gap = self._gap, None
        batch = [record for record in found if record is not None]
        return [*batch, *([gap] if gap else [])], None in found

    def _append(self, batch: list[Record]) -> None:
        """Append a batch; repeat it until the spill takes it, or until the extender stops."""
        self._pending = len(batch)
        encoded = [lines.encode(record) for record in batch]
        failures = 0
        while not self._append_once(encoded):
            failures += 1
            if self._stopping.wait(RETRIES.delay_s(failures)):
                log.error("history: %d records are lost: %s", len(batch), self._error)
                break
        self._pending = 0

    def _append_once(self, encoded: list[bytes]) -> bool:
        try:
            self._spill.append(encoded)
        except (OSError, SpillFull) as error:
            if not self._error:
                log.warning("history: events wait in memory: %s", error)
            self._error = str(error)
            return False
        self._error = ""
        return True
