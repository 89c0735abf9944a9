"""The one row that says which hours are rolled up. Whoever writes locks it, so that one process writes at a time."""

from typing import Final

from sqlalchemy import Connection, Row, case, func, select, update

from extender.history.storage.tables import EventRow, Progress, ReplicaRow, UsedRow

HOUR_MS: Final = 3_600_000


def lock(connection: Connection) -> "Row[int | None, int]":
    """Wait for other writers until the transaction ends; return `rolled_until_hour` and `purged_until_hour`."""
    return connection.execute(select(*_COLUMNS).with_for_update()).one()


def read(connection: Connection) -> "Row[int | None, int]":
    """Return `rolled_until_hour` and `purged_until_hour`."""
    return connection.execute(select(*_COLUMNS)).one()


def proved_ms(connection: Connection, now_ms: int) -> int:
    """Return the latest stored time that is not after `now_ms`: a clock that runs ahead proves nothing by itself.

    The extender stores a mark every 5 s, so this is the present wherever the history is written.
    """
    latest = (
        select(func.max(ReplicaRow.watched_ms)).where(ReplicaRow.watched_ms <= now_ms),
        select(func.max(EventRow.at_ms)).where(EventRow.at_ms <= now_ms),
        select(func.max(UsedRow.until_ms)).where(UsedRow.until_ms <= now_ms),
    )
    return max(connection.scalar(query) or 0 for query in latest)


def began_ms(connection: Connection, now_ms: int) -> int:
    """Return since when the history is written, not later than `now_ms`; 0 where that is unknown."""
    return min(now_ms, connection.scalar(select(Progress.began_ms)) or 0)


def begin(connection: Connection, at_ms: int) -> None:
    """Note a mark of a replica: the first one says when the history began."""
    connection.execute(update(Progress).where(Progress.began_ms == 0).values(began_ms=max(0, at_ms)))


def roll_up_again(connection: Connection, from_ms: int) -> None:
    """Have the hours from a time on rolled up again, except those whose holdings are deleted."""
    hour = from_ms // HOUR_MS
    again = case((Progress.purged_until_hour > hour, Progress.purged_until_hour), else_=hour)
    connection.execute(update(Progress).where(Progress.rolled_until_hour > hour).values(rolled_until_hour=again))


_COLUMNS: Final = (Progress.rolled_until_hour, Progress.purged_until_hour)
