"""Statements that SQLite and PostgreSQL both know, but SQLAlchemy writes for each by itself."""

from collections.abc import Sequence
from typing import Any

from sqlalchemy import Connection
from sqlalchemy.dialects import postgresql, sqlite

from extender.history.storage.database import POSTGRESQL

Rows = Sequence[dict[str, Any]]


def insert(connection: Connection, table: Any) -> "postgresql.Insert | sqlite.Insert":
    """Return an insert that can have an ON CONFLICT clause."""
    is_postgresql = connection.dialect.name == POSTGRESQL
    return postgresql.insert(table) if is_postgresql else sqlite.insert(table)


def insert_new(connection: Connection, table: Any, rows: Rows) -> None:
    """Insert rows; those whose key exists are left out."""
    if rows:
        connection.execute(insert(connection, table).on_conflict_do_nothing(), rows)


def replace(connection: Connection, table: Any, rows: Rows, *key: str, keep: str = "") -> None:
    """Insert rows; one whose `key` exists replaces the old row, with `keep` only where that column is higher."""
    if not rows:
        return
    statement: Any = insert(connection, table)
    changed = {name: statement.excluded[name] for name in rows[0] if name not in key}
    where = statement.excluded[keep] > table.c[keep] if keep else None
    connection.execute(statement.on_conflict_do_update(index_elements=key, set_=changed, where=where), rows)
