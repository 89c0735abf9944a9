"""Deletes old history: events and holdings by age, hours later, and the oldest days where the database is too large.

Hours are deleted from the journal only when they are rolled up, so that usage remains when its events are gone. The
decision of a pod that still runs stays.
"""

from dataclasses import dataclass
from typing import Final

from sqlalchemy import Connection, Engine, delete, func, select, text, update

from extender.history.storage import database, progress
from extender.history.storage.progress import HOUR_MS
from extender.history.storage.tables import EventRow, HoldingRow, PodRow, Progress, UsageDay, UsageHour, UsedRow

DAY_MS: Final = 24 * HOUR_MS
TARGET: Final = 0.9  # of the largest size, after a deletion by size
POSTGRESQL_EVENT_BYTES: Final = 1_024  # with indexes and derived rows: benchmarks/history.py measures 1,008


@dataclass(frozen=True, slots=True)
class Retention:
    """How long events, and usage by the hour, are kept, in days; and how large the database may be, in bytes."""

    events_days: int
    hours_days: int
    max_bytes: int


def purge(engine: Engine, retention: Retention, now_ms: int) -> None:
    """Delete what is too old, and, a day at a time, the oldest events where the database is too large."""
    with database.writing(engine) as connection:
        _delete_events(connection, now_ms - retention.events_days * DAY_MS)
        old_hour = (now_ms - retention.hours_days * DAY_MS) // HOUR_MS
        connection.execute(delete(UsageHour).where(UsageHour.hour < old_hour))
        connection.execute(delete(UsageDay).where(UsageDay.day < old_hour // 24))
    limit: float = retention.max_bytes
    while size(engine) > limit and _delete_oldest_day(engine):
        limit = TARGET * retention.max_bytes
    _give_space_back(engine)


def size(engine: Engine) -> int:
    """Return the bytes that rows use. Free pages of SQLite's file do not count.

    PostgreSQL's files do not shrink when rows are deleted, so their size says nothing: it is estimated from the number
    of events.
    """
    with database.reading(engine) as connection:
        if connection.dialect.name == database.POSTGRESQL:
            return POSTGRESQL_EVENT_BYTES * int(connection.scalar(select(func.count()).select_from(EventRow)) or 0)
        return int(connection.scalar(text(_SQLITE_SIZE)) or 0)


def _delete_oldest_day(engine: Engine) -> bool:
    """Delete the events of the oldest day; return whether any were deleted."""
    with database.writing(engine) as connection:
        oldest = connection.scalar(select(func.min(EventRow.at_ms)))
        if oldest is None:
            return False
        deleted = _delete_events(connection, (oldest // DAY_MS + 1) * DAY_MS)
    if engine.dialect.name == database.POSTGRESQL:
        _vacuum(engine)
    return deleted > 0


def _delete_events(connection: Connection, before_ms: int) -> int:
    """Delete events and holdings that ended before a time, at most up to the hours that are rolled up."""
    row = progress.lock(connection)
    before_hour = min(before_ms // HOUR_MS, row.rolled_until_hour or 0)
    before_ms = before_hour * HOUR_MS
    if before_hour <= row.purged_until_hour:
        return 0
    running = select(PodRow.uid).where(PodRow.ended_ms.is_(None) | (PodRow.ended_ms >= before_ms))
    old = delete(EventRow).where(EventRow.at_ms < before_ms, EventRow.pod_uid.not_in(running))
    deleted = connection.execute(old).rowcount
    connection.execute(delete(HoldingRow).where(HoldingRow.until_ms < before_ms, HoldingRow.pod_uid.not_in(running)))
    connection.execute(delete(UsedRow).where(UsedRow.until_ms < before_ms))
    connection.execute(delete(PodRow).where(PodRow.ended_ms < before_ms))
    connection.execute(update(Progress).values(purged_until_hour=before_hour))
    return deleted


def _give_space_back(engine: Engine) -> None:
    if engine.dialect.name == database.SQLITE:
        with engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
            connection.exec_driver_sql("PRAGMA incremental_vacuum")


def _vacuum(engine: Engine) -> None:
    """Let PostgreSQL use the space of deleted rows again."""
    with engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
        connection.exec_driver_sql("VACUUM events, holdings, pods, used")


_SQLITE_SIZE: Final = (
    "SELECT (page_count - freelist_count) * page_size"
    " FROM pragma_page_count(), pragma_freelist_count(), pragma_page_size()"
)
