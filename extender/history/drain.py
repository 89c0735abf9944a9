"""The drain: moves records from the spill to the database, in order, and rolls up and deletes what is due.

A batch is one transaction; segments are deleted after it. Where the database does not answer, the same records are
taken again after a back-off. The state of the drain is in a file beside the spill, for metrics.
"""

import logging
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Final

from sqlalchemy import Engine

from extender.history import drain_state
from extender.history.drain_state import DrainState
from extender.history.recording.events import Record
from extender.history.recording.spill_reader import SpillReader
from extender.history.storage import database, ingest, retention, rollup
from extender.history.storage.retention import Retention
from vgpu.domain.errors import HistoryRefused, HistoryUnavailable
from vgpu.pacing.back_off import BackOff

BATCH: Final = 1_000  # records in one transaction
POLL_S: Final = 0.2
RETRIES: Final = BackOff(first_s=0.2, longest_s=5.0)
PURGE_S: Final = 3_600.0
ALIVE_S: Final = 5.0  # after which the state is written again: a drain that has died writes nothing

log = logging.getLogger(__name__)


class Drain:
    """`clock` is monotonic, in seconds; `now_ms` is the wall clock; `rest` sleeps, and returns True to stop."""

    def __init__(
        self,
        engine: Engine,
        reader: SpillReader,
        kept: Retention,
        state_file: Path,
        clock: Callable[[], float],
        now_ms: Callable[[], int],
        rest: Callable[[float], bool],
    ) -> None:
        self._engine = engine
        self._reader = reader
        self._kept = kept
        self._state_file = state_file
        self._clock = clock
        self._now_ms = now_ms
        self._rest = rest
        self._state = DrainState(replaced_ms=drain_state.read(state_file).replaced_ms)
        self._written_at = float("-inf")
        self._identity: database.FileIdentity | None = None
        self._purge_at = clock()
        self._is_migrated = False
        self._refused = 0

    def run(self) -> None:
        """Drain until `rest` says to stop."""
        failures = 0
        while True:
            try:
                pause_s = 0.0 if self.step() else POLL_S
                failures = 0
            except HistoryUnavailable as error:
                self._reader.rewind()
                self._report(str(error))
                failures += 1
                pause_s = RETRIES.delay_s(failures)
            if self._rest(pause_s):
                return

    def step(self) -> bool:
        """Store one batch, or do what else is due; return whether there may be more to do at once.

        Raises:
            HistoryUnavailable: the database does not answer; nothing of the batch is stored.
        """
        if self._identity is not None and database.identity(self._engine) != self._identity:
            self._take_replacement()
        if not self._is_migrated:
            database.migrate(self._engine)
            self._is_migrated = True
            self._identity = database.identity(self._engine)
        records = self._reader.read(BATCH)
        if records:
            self._store(records)
            self._reader.delete_read()
        self._report("")
        return bool(records) or self._maintain()

    def _take_replacement(self) -> None:
        """Note that the database's file was removed, or another one is in its place: it may have no tables."""
        log.warning(
            "the database's file was removed or replaced: what was stored in it is gone; records are stored anew"
        )
        self._is_migrated, self._identity = False, None
        self._state = replace(self._state, replaced_ms=self._now_ms())
        self._written_at = float("-inf")

    def _store(self, records: Sequence[Record]) -> None:
        """Store records in one transaction; where the database refuses one, store each in its own without that one."""
        try:
            with database.writing(self._engine) as connection:
                ingest.ingest(connection, records)
        except HistoryRefused as error:
            if len(records) > 1:
                for record in records:
                    self._store([record])
                return
            self._refused += 1
            log.warning("a record is left out: %s: %.200s", error, records[0])

    def _maintain(self) -> bool:
        """Roll up complete hours; delete what is too old once an hour. Return whether more hours may be due."""
        hours = rollup.roll_up(self._engine, self._now_ms())
        if not hours and self._clock() >= self._purge_at:
            retention.purge(self._engine, self._kept, self._now_ms())
            self._purge_at = self._clock() + PURGE_S
        return bool(hours)

    def _report(self, error: str) -> None:
        """Write the state where it has changed, and every few seconds; log where the error has changed."""
        now_ms, before = self._now_ms(), self._state
        since_ms = (before.failing_since_ms or now_ms) if error else 0
        state = DrainState(
            self._reader.next_line, self._reader.unreadable, self._refused, error, since_ms, before.alive_ms,
            before.replaced_ms,
        )  # fmt: skip
        if state == before and self._clock() - self._written_at < ALIVE_S:
            return
        state = replace(state, alive_ms=now_ms)
        self._written_at = self._clock()
        if error != self._state.error:
            log.warning("the database does not take events: %s", error) if error else log.info("the database answers")
        self._state = state
        drain_state.write(self._state_file, state)
