"""How far the database is behind what happened, for metrics and the admin REST."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from extender.history import drain_state, folder
from extender.history.recording.recorder import HistoryRecorder, RecorderState, SpillRecorder


@dataclass(frozen=True, slots=True)
class Lag:
    """What is recorded and not stored, and what was lost.

    Attributes:
        queued: records in memory, not synced to the disk yet.
        waiting: records on the disk, not stored in the database yet.
        dropped: records that were dropped, because neither disk nor memory had room.
        unreadable: lines of the spill that could not be read.
        refused: records that the database refused.
        error: why the disk, or the database, takes no records now; empty where both do.
    """

    queued: int
    waiting: int
    dropped: int
    unreadable: int
    refused: int
    error: str


def lag(recorder: RecorderState, home: Path) -> Lag:
    """Return the lag of the history in the folder `home`; reads one small file."""
    stored = drain_state.read(folder.state_file(home))
    waiting = max(0, recorder.next_line - stored.next_line) if stored.next_line else recorder.next_line - 1
    error = recorder.error or stored.error
    return Lag(recorder.queued, waiting, recorder.dropped, stored.unreadable, stored.refused, error)


def reader(recorder: HistoryRecorder, home: Path | None) -> Callable[[], Lag | None]:
    """Return what reads the lag; it returns None where no history is kept."""
    if home is None or not isinstance(recorder, SpillRecorder):
        return lambda: None
    return lambda: lag(recorder.state(), home)
