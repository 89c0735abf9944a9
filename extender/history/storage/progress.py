"""The one row that says which hours are rolled up. Whoever writes locks it, so that one process writes at a time."""

from typing import Final

from sqlalchemy import Connection, Row, case, select, update

from extender.history.storage.tables import Progress

HOUR_MS: Final = 3_600_000


def lock(connection: Connection) -> "Row[int | None, int]":
    """Wait for other writers until the transaction ends; return `rolled_until_hour` and `purged_until_hour`."""
    return connection.execute(select(*_COLUMNS).with_for_update()).one()


def read(connection: Connection) -> "Row[int | None, int]":
    """Return `rolled_until_hour` and `purged_until_hour`."""
    return connection.execute(select(*_COLUMNS)).one()


def roll_up_again(connection: Connection, from_ms: int) -> None:
    """Have the hours from a time on rolled up again, except those whose holdings are deleted."""
    hour = from_ms // HOUR_MS
    again = case((Progress.purged_until_hour > hour, Progress.purged_until_hour), else_=hour)
    connection.execute(update(Progress).where(Progress.rolled_until_hour > hour).values(rolled_until_hour=again))


_COLUMNS: Final = (Progress.rolled_until_hour, Progress.purged_until_hour)
