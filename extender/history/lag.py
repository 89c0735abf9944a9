"""How far the database is behind what happened, for metrics and the admin REST."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from extender.history import drain_state, folder
from extender.history.drain_state import DrainState
from extender.history.recording.recorder import HistoryRecorder, RecorderState, SpillRecorder

SILENT_MS: Final = 120_000  # the drain writes every 5 s, but for long work such as a migration


@dataclass(frozen=True, slots=True)
class Lag:
    """What is recorded and not stored, and what was lost. Times are Unix milliseconds; 0 is unknown, or never.

    Attributes:
        queued: records in memory, not synced to the disk yet.
        waiting: records on the disk, not stored in the database yet.
        dropped: records that were dropped, because neither disk nor memory had room.
        unreadable: lines of the spill that could not be read.
        refused: records that the database refused.
        error: why the disk, or the database, takes no records now; empty where both do.
        since_ms: since when.
        replaced_ms: when the database's file was last found removed or replaced.
    """

    queued: int
    waiting: int
    dropped: int
    unreadable: int
    refused: int
    error: str
    since_ms: int = 0
    replaced_ms: int = 0


def lag(recorder: RecorderState, home: Path, now_ms: int) -> Lag:
    """Return the lag of the history in the folder `home`; reads one small file. `now_ms` is the wall clock."""
    stored = drain_state.read(folder.state_file(home))
    waiting = max(0, recorder.next_line - stored.next_line) if stored.next_line else recorder.next_line - 1
    error, since_ms = _failure(recorder, stored, now_ms)
    return Lag(
        queued=recorder.queued,
        waiting=waiting,
        dropped=recorder.dropped,
        unreadable=stored.unreadable,
        refused=stored.refused,
        error=error,
        since_ms=since_ms,
        replaced_ms=stored.replaced_ms,
    )


def _failure(recorder: RecorderState, stored: DrainState, now_ms: int) -> tuple[str, int]:
    """Return why nothing is recorded or stored now, and since when; an empty text where both work."""
    if recorder.error:
        return recorder.error, 0
    if stored.error:
        return stored.error, stored.failing_since_ms
    if stored.alive_ms and now_ms - stored.alive_ms > SILENT_MS:
        return "the process that stores records does not run, or its disk takes nothing", stored.alive_ms
    return "", 0


def reader(recorder: HistoryRecorder, home: Path | None, now_ms: Callable[[], int]) -> Callable[[], Lag | None]:
    """Return what reads the lag; it returns None where no history is kept. `now_ms` is the wall clock."""
    if home is None or not isinstance(recorder, SpillRecorder):
        return lambda: None
    return lambda: lag(recorder.state(), home, now_ms())
