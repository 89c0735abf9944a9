"""Databases for the suite: SQLite in a file, and a real PostgreSQL server, started once and stopped at the end."""

import itertools
import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from sqlalchemy import Engine

from cluster.additions import postgres
from cluster.additions.postgres import Postgres
from extender.history.storage import database

_numbers = itertools.count(1)


@pytest.fixture(scope="session")
def server() -> Iterator[Postgres]:
    if why := postgres.missing():
        pytest.fail(why, pytrace=False) if os.environ.get("CI") else pytest.skip(why)
    with tempfile.TemporaryDirectory(prefix="vgpu-pg-") as folder:
        Path(folder).chmod(0o755)
        running = Postgres(Path(folder) / "server")
        running.start()
        yield running
        running.stop()


@pytest.fixture(params=["sqlite", pytest.param("postgresql", marks=pytest.mark.slow)])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """The URL of an empty database."""
    if request.param == "sqlite":
        return database.sqlite_url(tmp_path / "history.db")
    server: Postgres = request.getfixturevalue("server")
    return server.create(f"test{next(_numbers)}")


@pytest.fixture(scope="session")
def empty(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An SQLite file with all tables; a copy of it is made faster than migrated."""
    path = tmp_path_factory.mktemp("empty") / "history.db"
    created = database.engine(database.sqlite_url(path))
    database.migrate(created)
    created.dispose()
    return path


@pytest.fixture
def engine(url: str, empty: Path) -> Iterator[Engine]:
    """An engine whose database has all tables."""
    created = database.engine(url)
    if created.url.database and created.dialect.name == database.SQLITE:
        shutil.copy(empty, created.url.database)
    else:
        database.migrate(created)
    yield created
    created.dispose()
