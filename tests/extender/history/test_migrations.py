"""Migrations: every earlier revision reaches the newest with its rows, and the tables are those of the models."""

import threading
from typing import Any

import pytest
from alembic import autogenerate, config, script
from alembic.migration import MigrationContext
from sqlalchemy import Engine, MetaData, insert, inspect, select, text

from extender.history.storage import database, progress
from extender.history.storage.progress import HOUR_MS
from extender.history.storage.tables import Base
from vgpu.domain.errors import HistoryUnavailable


def revisions() -> list[str]:
    settings = config.Config()
    settings.set_main_option("script_location", database.MIGRATIONS)
    return [
        walk_revision.revision
        for walk_revision in reversed(list(script.ScriptDirectory.from_config(settings).walk_revisions()))
    ]


@pytest.fixture
def bare(url: str) -> Any:
    """An engine whose database has no tables."""
    created = database.engine(url)
    yield created
    created.dispose()


def a_row(metadata: MetaData, table: str) -> dict[str, Any]:
    """Return a row with a value of the right type in every column."""
    columns = metadata.tables[table].columns
    values = {int: 1, str: "{}", bytes: b"1", float: 1.0, object: {}}
    return {column.name: values[column.type.python_type] for column in columns}


@pytest.mark.heavy
@pytest.mark.parametrize("revision", revisions())
def test_every_revision_reaches_the_newest_with_its_rows(bare: Engine, revision: str) -> None:
    database.migrate(bare, revision)
    before = MetaData()
    before.reflect(bare)
    tables = [name for name in before.tables if name not in ("alembic_version", "progress")]
    with database.writing(bare) as connection:
        for name in tables:
            connection.execute(insert(before.tables[name]), [a_row(before, name)])
    database.migrate(bare)
    after = MetaData()
    after.reflect(bare)
    with database.reading(bare) as connection:
        for name in [*tables, "progress"]:
            assert len(connection.execute(select(after.tables[name])).all()) == 1
        context = MigrationContext.configure(connection, opts={"compare_type": True})
        assert autogenerate.compare_metadata(context, Base.metadata) == []


def test_tables_of_a_later_version_are_left_alone(engine: Engine) -> None:
    with database.writing(engine) as connection:
        connection.execute(text("UPDATE alembic_version SET version_num = '99'"))
    with pytest.raises(HistoryUnavailable, match="another version"):
        database.migrate(engine)


def test_replicas_that_start_at_once_wait_for_each_other(url: str) -> None:
    engines = [database.engine(url) for _ in range(8)]
    errors: list[BaseException] = []

    def migrate(engine: Engine) -> None:
        try:
            database.migrate(engine)
        except BaseException as error:  # noqa: BLE001 - every failure of a thread is the test's
            errors.append(error)

    threads = [threading.Thread(target=migrate, args=[to_migrate]) for to_migrate in engines]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors == []
    assert inspect(engines[0]).has_table("progress")
    for engine in engines:
        engine.dispose()


def test_a_history_from_before_began_with_the_oldest_that_it_has(bare: Engine) -> None:
    database.migrate(bare, "4")
    tables = MetaData()
    tables.reflect(bare)
    with database.writing(bare) as connection:
        event = a_row(tables, "events") | {"at_ms": 9 * HOUR_MS}
        hour = a_row(tables, "usage_hours") | {"hour": 7}
        connection.execute(insert(tables.tables["events"]), [event])
        connection.execute(insert(tables.tables["usage_hours"]), [hour])
    database.migrate(bare)
    with database.reading(bare) as connection:
        assert progress.began_ms(connection, 100 * HOUR_MS) == 7 * HOUR_MS
        assert progress.began_ms(connection, 5 * HOUR_MS) == 5 * HOUR_MS  # a clock that is set back
