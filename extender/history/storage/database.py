"""The database: SQLite in WAL mode, or PostgreSQL, from a URL; its tables are migrated when the drain starts."""

import contextlib
import sqlite3
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any, Final

import alembic.command
import alembic.config
import sqlalchemy
from alembic.util import CommandError
from sqlalchemy import URL, Connection, Engine, event, make_url
from sqlalchemy.exc import ArgumentError, DataError, DisconnectionError, IntegrityError, SQLAlchemyError
from sqlalchemy.pool import ConnectionPoolEntry

from vgpu.domain.errors import HistoryRefused, HistoryUnavailable, UnusableSetting

MIGRATIONS: Final = str(Path(__file__).with_name("migrations"))
MIGRATION_LOCK: Final = 0x76677075  # "vgpu": the number of an advisory lock
CONNECT_TIMEOUT_S: Final = 5
STATEMENT_TIMEOUT_S: Final = 60
BUSY_TIMEOUT_S: Final = 10.0
PRAGMA_TRIES: Final = 50
STATEMENTS: Final = 100  # of which SQLAlchemy keeps what it compiled, about 200 KB of a report; it has 50 more at times
SQLITE_PRAGMAS: Final = (
    "auto_vacuum = INCREMENTAL",  # takes effect only before the first table is created
    "journal_mode = WAL",
    "synchronous = FULL",  # segments of the spill are deleted after the commit
    "journal_size_limit = 67108864",
    "temp_store = MEMORY",  # a container's root file system is read-only
)
SQLITE: Final = "sqlite"
_FILE: Final = "vgpu.file"
POSTGRESQL: Final = "postgresql"


FileIdentity = tuple[int, int]  # device and inode


def identity(engine: Engine) -> FileIdentity | None:
    """Return what tells the file of an SQLite database from another one in its place; None where there is no file."""
    name = engine.url.database
    if engine.dialect.name != SQLITE or not name:
        return None
    try:
        found = Path(name).stat()
    except OSError:
        return None
    return found.st_dev, found.st_ino


def sqlite_url(path: Path) -> str:
    """Return the URL of an SQLite file."""
    return f"{SQLITE}:///{path}"


def engine(url: str) -> Engine:
    """Return an engine; nothing is connected yet.

    Raises:
        UnusableSetting: the URL cannot be read, or names another database.
    """
    try:
        parsed = make_url(url)
    except ArgumentError as error:
        raise UnusableSetting(f"history-url: {error}; write postgresql://USER@HOST/NAME, or sqlite:////PATH") from None
    match parsed.get_backend_name():
        case "sqlite":
            return _sqlite(parsed)
        case "postgresql":
            return _postgresql(parsed)
        case other:
            raise UnusableSetting(f"history-url: {other} is not supported; use postgresql or sqlite")


def migrate(engine: Engine, revision: str = "head") -> None:
    """Bring the tables to a revision, the newest by default; replicas that start at once wait for each other.

    Raises:
        HistoryUnavailable: the database does not answer, or was migrated by a later version.
    """
    with writing(engine) as connection:
        _wait_for_other_migrations(connection)
        config = alembic.config.Config()
        config.set_main_option("script_location", MIGRATIONS)
        config.attributes["connection"] = connection
        try:
            alembic.command.upgrade(config, revision)
        except CommandError as error:
            raise HistoryUnavailable(f"the tables are of another version of vgpushare: {error}") from error


@contextlib.contextmanager
def reading(engine: Engine) -> Iterator[Connection]:
    """Yield a connection in a transaction that only reads.

    Raises:
        HistoryUnavailable: the database does not answer, or its disk is full.
        HistoryRefused: a value has a form that the database does not store.
    """
    try:
        with engine.begin() as connection:
            yield connection
    except (DataError, IntegrityError) as error:
        raise HistoryRefused(_brief(error)) from error
    except SQLAlchemyError as error:
        raise HistoryUnavailable(_brief(error)) from error


def writing(engine: Engine) -> contextlib.AbstractContextManager[Connection]:
    """Yield a connection in a transaction that is committed at the end; errors are those of `reading`."""
    return reading(engine.execution_options(writes=True))


def _brief(error: SQLAlchemyError) -> str:
    cause = getattr(error, "orig", None) or error
    return str(cause).strip().partition("\n")[0][:300] or type(cause).__name__


def _wait_for_other_migrations(connection: Connection) -> None:
    """Take an advisory lock until the transaction ends; on SQLite, a writing transaction is alone already."""
    if connection.dialect.name == POSTGRESQL:
        connection.execute(sqlalchemy.text("SELECT pg_advisory_xact_lock(:lock)"), {"lock": MIGRATION_LOCK})


def _postgresql(url: URL) -> Engine:
    options = {"connect_timeout": CONNECT_TIMEOUT_S, "options": f"-c statement_timeout={STATEMENT_TIMEOUT_S}s"}
    url = url.set(drivername="postgresql+psycopg")
    return sqlalchemy.create_engine(
        url, connect_args=options, pool_pre_ping=True, pool_size=4, query_cache_size=STATEMENTS
    )


def _sqlite(url: URL) -> Engine:
    """Return an engine that begins transactions itself: Python's module would begin them late, and commit at DDL."""
    options = {"timeout": BUSY_TIMEOUT_S, "isolation_level": None}
    created = sqlalchemy.create_engine(url, connect_args=options, query_cache_size=STATEMENTS)
    event.listen(created, "connect", _prepare_sqlite)
    event.listen(created, "connect", partial(_note_file, created))
    event.listen(created, "checkout", partial(_refuse_old_file, created))
    event.listen(created, "begin", _begin_sqlite)
    return created


def _note_file(engine: Engine, _: Any, record: ConnectionPoolEntry) -> None:
    record.info[_FILE] = identity(engine)


def _refuse_old_file(engine: Engine, _: Any, record: ConnectionPoolEntry, __: Any) -> None:
    """Have a connection opened anew whose file was removed: SQLite would go on in the file that has no name."""
    if record.info.get(_FILE) != identity(engine):
        raise DisconnectionError("the file was removed or replaced")


def _prepare_sqlite(connection: Any, _: ConnectionPoolEntry) -> None:
    for pragma in SQLITE_PRAGMAS:
        _set_pragma(connection, pragma)


def _set_pragma(connection: Any, pragma: str) -> None:
    """Set a pragma. The journal mode cannot be set while another connection writes, whatever the busy timeout is."""
    for _ in range(PRAGMA_TRIES):
        with contextlib.suppress(sqlite3.OperationalError):
            connection.execute(f"PRAGMA {pragma}")
            return
        connection.execute("BEGIN IMMEDIATE")  # waits for the other connection, by the busy timeout
        connection.execute("ROLLBACK")
    connection.execute(f"PRAGMA {pragma}")


def _begin_sqlite(connection: Connection) -> None:
    writes = connection.get_execution_options().get("writes", False)
    connection.exec_driver_sql("BEGIN IMMEDIATE" if writes else "BEGIN")
