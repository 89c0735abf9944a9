"""Deletes old history: points, events and holdings by age, hours later; the oldest where the database is too large.

Hours are deleted from the journal only when they are rolled up, so that usage remains when its events are gone. From
the decision and the resizes of a pod its usage is derived until it ends: they stay while it runs, and nothing else
does.

A purge by age goes on by one day at most, and purges are an hour apart: a clock that is months ahead for a while costs
days of events, not all of them.
"""

import logging
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Final

from sqlalchemy import ColumnElement, Connection, Engine, and_, delete, exists, func, not_, select, text, update

from extender.history.recording.events import EventKind
from extender.history.storage import database, progress
from extender.history.storage.points import SLOT_MS
from extender.history.storage.progress import HOUR_MS
from extender.history.storage.tables import (
    EventRow,
    HoldingRow,
    PodRow,
    PointRow,
    Progress,
    ReplicaRow,
    SeriesRow,
    UsageDay,
    UsageHour,
    UsedRow,
    WorkloadRow,
)

HOURS_PER_DAY: Final = 24
DAY_MS: Final = HOURS_PER_DAY * HOUR_MS
POINT_STEP_MS: Final = 6 * HOUR_MS  # of points that are deleted at once where the database is too large
TARGET: Final = 0.9  # of the largest size, after a deletion by size
USAGE_PART: Final = 0.5  # of the largest size, above which usage by the hour is deleted before events are
POSTGRESQL_EVENT_BYTES: Final = 1_024  # with indexes and derived rows: benchmarks/history/reports.py measures 1,008
USED_BYTES: Final = 256  # of a measured period, with its indexes
POINT_BYTES: Final = 144  # of a five-minute point, with its indexes: benchmarks/history/series.py measures 141
SERIES_PART: Final = 0.25  # of the largest size, above which five-minute points are deleted before anything else
USAGE_BYTES: Final = 128  # of an hour's or a day's row, with its key
KEPT_KINDS: Final = (EventKind.DECISION, EventKind.RESIZE)  # what the usage of a running pod is derived from

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Retention:
    """How long events, and usage by the hour, are kept, in days; and how large the database may be, in bytes.

    `series_hours`: how long five-minute points are kept.
    """

    events_days: int
    hours_days: int
    max_bytes: int
    series_hours: int = 48


def purge(engine: Engine, retention: Retention, now_ms: int) -> None:
    """Delete what is too old, and, a day at a time, the oldest events and hours where the database is too large."""
    with database.writing(engine) as connection:
        proved_ms = progress.proved_ms(connection, now_ms)
        _delete_old_events(connection, proved_ms - retention.events_days * DAY_MS)
        _delete_old_points(connection, proved_ms - retention.series_hours * HOUR_MS)
        _delete_old_usage(connection, (proved_ms - retention.hours_days * DAY_MS) // HOUR_MS)
    limit: float = retention.max_bytes
    while size(engine) > limit and _delete_oldest_day(engine, retention.max_bytes):
        limit = TARGET * retention.max_bytes
    _delete_unused_workloads(engine)
    _delete_unused_series(engine)
    _give_space_back(engine)
    if (left := size(engine)) > retention.max_bytes:
        log.warning("the history has %d MiB, all about pods that run and the last hour", left >> 20)


def size(engine: Engine) -> int:
    """Return the bytes that rows use. Free pages of SQLite's file do not count.

    PostgreSQL's files do not shrink when rows are deleted, so their size says nothing: it is estimated from the
    number of rows.
    """
    with database.reading(engine) as connection:
        if connection.dialect.name == database.POSTGRESQL:
            events, used = _count(connection, EventRow), _count(connection, UsedRow)
            return (
                POSTGRESQL_EVENT_BYTES * events
                + USED_BYTES * used
                + _points_bytes(connection)
                + _usage_bytes(connection)
            )
        return int(connection.scalar(text(_SQLITE_SIZE)) or 0)


def _delete_oldest_day(engine: Engine, max_bytes: int) -> bool:
    """Delete the oldest day of events, or of usage where it takes too much; return whether anything was deleted."""
    with database.writing(engine) as connection:
        usage_first = _usage_bytes(connection) > USAGE_PART * max_bytes
        series_first = _points_bytes(connection) > SERIES_PART * max_bytes
        order = [_delete_usage_day, _delete_event_day] if usage_first else [_delete_event_day, _delete_usage_day]
        order.insert(0 if series_first else len(order), _delete_point_hours)
        is_deleted = any(delete_day(connection) for delete_day in order)
    if engine.dialect.name == database.POSTGRESQL:
        _vacuum(engine)
    return is_deleted


def _delete_old_points(connection: Connection, before_ms: int) -> None:
    """Delete the oldest points before a time; a day of them at most, as with events."""
    oldest = connection.scalar(select(func.min(PointRow.slot)))
    if oldest is not None:
        last = min(before_ms // SLOT_MS, oldest + DAY_MS // SLOT_MS)
        connection.execute(delete(PointRow).where(PointRow.slot < last))


def _delete_point_hours(connection: Connection) -> bool:
    """Delete the oldest six hours of points; return whether there were any."""
    oldest = connection.scalar(select(func.min(PointRow.slot)))
    if oldest is None:
        return False
    connection.execute(delete(PointRow).where(PointRow.slot < oldest + POINT_STEP_MS // SLOT_MS))
    return True


def _delete_unused_series(engine: Engine) -> None:
    """Delete series without points."""
    with database.writing(engine) as connection:
        progress.lock(connection)
        connection.execute(delete(SeriesRow).where(not_(exists().where(PointRow.series_id == SeriesRow.id))))


def _points_bytes(connection: Connection) -> int:
    return POINT_BYTES * _count(connection, PointRow)


def _delete_old_events(connection: Connection, before_ms: int) -> None:
    """Delete the oldest day of events where it is over before a time."""
    oldest = _oldest_ms(connection)
    if oldest is not None and oldest < before_ms:
        _delete_events(connection, min(before_ms, oldest + DAY_MS))


def _delete_event_day(connection: Connection) -> bool:
    """Delete the oldest events that may be deleted, to the end of their day; return whether there were any."""
    oldest = _oldest_ms(connection)
    rolled_ms = (progress.lock(connection).rolled_until_hour or 0) * HOUR_MS
    if oldest is None or oldest >= rolled_ms:
        return False
    _delete_events(connection, (oldest // DAY_MS + 1) * DAY_MS)
    return True


def _oldest_ms(connection: Connection) -> int | None:
    """Return the time of the oldest thing that may be deleted: an event, the end of a pod, a measured period."""
    oldest = (
        select(EventRow.at_ms).where(EventRow.kind.not_in(KEPT_KINDS)).order_by(EventRow.at_ms).limit(1),
        select(func.min(PodRow.ended_ms)),
        select(func.min(UsedRow.until_ms)),
    )
    return _earliest(connection.scalar(query) for query in oldest)


def _earliest(found: Iterable[int | None]) -> int | None:
    return min((at for at in found if at is not None), default=None)


def _delete_events(connection: Connection, before_ms: int) -> None:
    """Delete events, and holdings and pods that ended, before a time; at most up to the hours that are rolled up."""
    row = progress.lock(connection)
    before_hour = min(before_ms // HOUR_MS, row.rolled_until_hour or 0)
    before_ms = before_hour * HOUR_MS
    connection.execute(delete(EventRow).where(EventRow.at_ms < before_ms, not_(_is_kept(before_ms))))
    held = (HoldingRow.until_ms < before_ms, not_(_runs(HoldingRow.pod_uid, before_ms)))
    last_ms = connection.scalar(select(func.max(HoldingRow.until_ms)).where(*held))
    connection.execute(delete(HoldingRow).where(*held))
    last_ms = max(last_ms or 0, _delete_used(connection, before_ms))
    connection.execute(delete(PodRow).where(PodRow.ended_ms < before_ms))
    connection.execute(delete(ReplicaRow).where(ReplicaRow.watched_ms < before_ms))
    purged_hour = max(row.purged_until_hour, last_ms // HOUR_MS + 1 if last_ms else 0)
    connection.execute(update(Progress).values(purged_until_hour=purged_hour))


def _is_kept(before_ms: int) -> ColumnElement[bool]:
    return and_(EventRow.kind.in_(KEPT_KINDS), _runs(EventRow.pod_uid, before_ms))


def _runs(uid: Any, before_ms: int) -> ColumnElement[bool]:
    """Return whether a pod had not ended before a time."""
    return exists().where(PodRow.uid == uid, PodRow.ended_ms.is_(None) | (PodRow.ended_ms >= before_ms))


def _delete_used(connection: Connection, before_ms: int) -> int:
    """Delete measured time before a time; return the end of the last period that is deleted, 0 where there is none."""
    old = UsedRow.until_ms < before_ms
    last_ms = connection.scalar(select(func.max(UsedRow.until_ms)).where(old))
    connection.execute(delete(UsedRow).where(old))
    return last_ms or 0


def _delete_old_usage(connection: Connection, before_hour: int) -> None:
    """Delete the oldest day of usage by the hour and by the day where it is before an hour."""
    oldest = _oldest_usage_hour(connection)
    if oldest is not None and oldest < before_hour:
        _delete_usage(connection, min(before_hour, oldest + HOURS_PER_DAY))


def _delete_usage_day(connection: Connection) -> bool:
    """Delete the oldest day of usage; return whether there was any."""
    oldest = _oldest_usage_hour(connection)
    if oldest is None:
        return False
    _delete_usage(connection, (oldest // HOURS_PER_DAY + 1) * HOURS_PER_DAY)
    return True


def _oldest_usage_hour(connection: Connection) -> int | None:
    hour = connection.scalar(select(func.min(UsageHour.hour)))
    day = connection.scalar(select(func.min(UsageDay.day)))
    return _earliest((hour, None if day is None else day * HOURS_PER_DAY))


def _delete_usage(connection: Connection, before_hour: int) -> None:
    connection.execute(delete(UsageHour).where(UsageHour.hour < before_hour))
    connection.execute(delete(UsageDay).where(UsageDay.day < before_hour // HOURS_PER_DAY))


def _delete_unused_workloads(engine: Engine) -> None:
    """Delete workloads that nothing is known of: a pod without an owner is one by itself."""
    tables = (PodRow, HoldingRow, UsageHour, UsageDay)
    unused = (not_(exists().where(table.workload_id == WorkloadRow.id)) for table in tables)
    with database.writing(engine) as connection:
        progress.lock(connection)
        connection.execute(delete(WorkloadRow).where(*unused))


def _usage_bytes(connection: Connection) -> int:
    return USAGE_BYTES * (_count(connection, UsageHour) + _count(connection, UsageDay))


def _count(connection: Connection, table: Any) -> int:
    return int(connection.scalar(select(func.count()).select_from(table)) or 0)


def _give_space_back(engine: Engine) -> None:
    if engine.dialect.name == database.SQLITE:
        with engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
            connection.exec_driver_sql("PRAGMA incremental_vacuum")


def _vacuum(engine: Engine) -> None:
    """Let PostgreSQL use the space of deleted rows again."""
    with engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
        connection.exec_driver_sql(
            "VACUUM events, holdings, pods, used, points, series, usage_hours, usage_days, workloads"
        )


_SQLITE_SIZE: Final = (
    "SELECT (page_count - freelist_count) * page_size"
    " FROM pragma_page_count(), pragma_freelist_count(), pragma_page_size()"
)
