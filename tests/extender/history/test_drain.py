"""From the recorder through the spill into the database, with failures of each."""

import threading
import time
from pathlib import Path

import pytest
from sqlalchemy import Engine

from extender.history import drain_state, folder
from extender.history.drain import Drain
from extender.history.lag import lag
from extender.history.recording.events import End, Event, Listed, Record, Watched
from extender.history.recording.recorder import MAX_QUEUED, SpillRecorder
from extender.history.recording.spill import Spill
from extender.history.recording.spill_reader import SpillReader
from extender.history.reporting.prices import Prices
from extender.history.reporting.reports import Dimension, UsageGroup
from extender.history.reporting.sql_reports import SqlReports
from extender.history.storage import database, retention
from extender.history.storage.retention import Retention
from tests.extender.history import make
from tests.extender.history.make import HOUR, MONDAY
from vgpu.domain.errors import HistoryUnavailable
from vgpu.domain.identifiers import PodUid

KEPT = Retention(90, 1000, 1 << 30)


class Pipeline:
    """A recorder and a drain over one folder; `now` is the wall clock in milliseconds."""

    def __init__(self, engine: Engine, home: Path, max_bytes: int = 1 << 20, max_queued: int = MAX_QUEUED) -> None:
        self.now = MONDAY
        self.home = home
        self.engine = engine
        self._max_bytes, self._max_queued = max_bytes, max_queued
        self.restart_recorder()
        self.drain = self.new_drain(engine)

    def restart_recorder(self) -> None:
        """Record from now on as another process: a recorder that has stopped has closed its spill."""
        self.spill = Spill(folder.spill(self.home), max_bytes=self._max_bytes, segment_bytes=4096)
        self.recorder = SpillRecorder(self.spill, "replica", lambda: self.now, max_queued=self._max_queued)

    def new_drain(self, engine: Engine) -> Drain:
        reader = SpillReader(folder.spill(self.home))
        state = folder.state_file(self.home)
        return Drain(engine, reader, KEPT, state, time.monotonic, lambda: self.now, lambda _: True)

    def record(self, *records: Record) -> None:
        for record in records:
            self.recorder.record(record)
        self.recorder.start()
        assert self.recorder.stop(10)

    def drain_all(self) -> None:
        while self.drain.step():
            pass

    def events(self) -> list[Event]:
        page = SqlReports(self.engine, Prices(), lambda: self.now).history(limit=1000)
        return [entry.event for entry in reversed(page.entries)]

    @property
    def lag(self) -> int:
        return lag(self.recorder.state(), self.home, self.now).waiting


@pytest.fixture
def pipeline(engine: Engine, tmp_path: Path) -> Pipeline:
    return Pipeline(engine, tmp_path / "home")


def test_what_is_recorded_arrives_once_and_in_order(pipeline: Pipeline) -> None:
    recorded = [make.decision(n, MONDAY + n) for n in range(50)]
    pipeline.record(*recorded, *recorded[:10])
    assert pipeline.lag > 0
    pipeline.drain_all()
    assert pipeline.lag == 0
    assert pipeline.events() == recorded


def test_a_drain_that_is_killed_after_its_commit_doubles_nothing(pipeline: Pipeline) -> None:
    recorded = [make.decision(n, MONDAY + n) for n in range(50)]
    pipeline.record(*recorded)
    pipeline.drain_all()
    again = pipeline.new_drain(pipeline.engine)
    while again.step():
        pass
    assert pipeline.events() == recorded


def test_a_database_that_does_not_answer_delays_and_loses_nothing(pipeline: Pipeline, tmp_path: Path) -> None:
    pipeline.record(make.decision(1), make.end(1))
    away = pipeline.new_drain(database.engine(f"postgresql://nobody@/none?host={tmp_path}"))
    away.run()
    assert "No such file" in drain_state.read(folder.state_file(pipeline.home)).error
    with pytest.raises(HistoryUnavailable):
        away.step()
    pipeline.drain_all()
    assert pipeline.events() == [make.decision(1), make.end(1)]
    assert drain_state.read(folder.state_file(pipeline.home)).error == ""


def test_the_lag_of_a_database_that_fails_later_is_what_came_since(pipeline: Pipeline) -> None:
    pipeline.record(*(make.decision(n) for n in range(9)))
    pipeline.drain_all()
    pipeline.restart_recorder()
    pipeline.record(make.decision(9))
    pipeline.drain._engine = database.engine(f"postgresql://nobody@/none?host={pipeline.home}")
    pipeline.drain.run()
    assert drain_state.read(folder.state_file(pipeline.home)).error
    assert pipeline.lag == 1
    pipeline.drain._engine = pipeline.engine
    pipeline.drain_all()
    assert pipeline.events() == [make.decision(n) for n in range(10)]


@pytest.mark.slow
def test_two_replicas_that_write_at_once_double_nothing(url: str, tmp_path: Path) -> None:
    engines = [database.engine(url) for _ in range(2)]
    database.migrate(engines[0])
    pipelines = [Pipeline(engine, tmp_path / f"home-{n}") for n, engine in enumerate(engines)]
    recorded: list[Record] = [make.decision(n, MONDAY + n) for n in range(500)]
    recorded += [make.end(n, MONDAY + HOUR + n) for n in range(500)]
    for drain in pipelines:
        drain.now = MONDAY + 3 * HOUR
        drain.record(*recorded)
    threads = [threading.Thread(target=drain.drain_all) for drain in pipelines]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert pipelines[0].events() == [*recorded]
    (row,) = SqlReports(engines[0], Prices(), lambda: MONDAY + 3 * HOUR).usage([], 0, MONDAY + 3 * HOUR)
    assert (row.bound, row.share_seconds) == (500, 500 * 900.0)
    for engine in engines:
        engine.dispose()


def test_a_spill_without_room_drops_and_says_how_many(engine: Engine, tmp_path: Path) -> None:
    pipeline = Pipeline(engine, tmp_path / "home", max_bytes=10)
    pipeline.record(make.decision(1))
    assert pipeline.lag == 0
    assert "is the database reachable" in pipeline.recorder.state().error


def test_too_many_records_leave_a_gap(engine: Engine, tmp_path: Path) -> None:
    pipeline = Pipeline(engine, tmp_path / "home", max_queued=3)
    for number in range(5):
        pipeline.recorder.record(make.decision(number))
    assert pipeline.recorder.state().dropped == 2
    pipeline.record()
    pipeline.drain_all()
    *kept, gap = pipeline.events()
    assert (len(kept), type(gap).__name__, getattr(gap, "events", 0)) == (3, "Gap", 2)


def test_pods_that_a_first_list_lacks_ended_in_an_interval(pipeline: Pipeline) -> None:
    pipeline.record(
        make.decision(1, MONDAY),
        make.decision(2, MONDAY),
        make.decision(3, MONDAY + 10 * HOUR),
        Watched("replica", MONDAY + HOUR),
        Listed("replica", MONDAY + 5 * HOUR, MONDAY + 6 * HOUR, frozenset({PodUid("uid-2")})),
    )
    pipeline.drain_all()
    ends = [event for event in pipeline.events() if isinstance(event, End)]
    assert [(end.pod.uid, end.after_ms, end.at_ms) for end in ends] == [("uid-1", MONDAY + HOUR, MONDAY + 6 * HOUR)]


@pytest.mark.heavy
def test_old_events_go_and_their_usage_stays(pipeline: Pipeline) -> None:
    pipeline.now = MONDAY + 100 * 24 * HOUR
    pipeline.record(make.decision(1), make.end(1), make.decision(2, MONDAY + HOUR), Watched("replica", pipeline.now))
    pipeline.drain_all()
    retention.purge(pipeline.engine, KEPT, pipeline.now)
    assert pipeline.events() == [make.decision(2, MONDAY + HOUR)]  # it still runs
    reports = SqlReports(pipeline.engine, Prices(), lambda: pipeline.now)
    rows = reports.usage([UsageGroup(Dimension.NAMESPACE)], MONDAY, MONDAY + 2 * HOUR)
    assert [row.share_seconds for row in rows] == [1800.0]


def test_a_database_that_is_too_large_loses_its_oldest_days(pipeline: Pipeline) -> None:
    day = 24 * HOUR
    for number in range(400):
        pipeline.recorder.record(make.decision(number, MONDAY + number * day // 100))
        pipeline.recorder.record(make.end(number, MONDAY + number * day // 100 + 1000))
    pipeline.record()
    pipeline.now = MONDAY + 5 * day
    pipeline.drain_all()
    retention.purge(pipeline.engine, Retention(90, 1000, 500_000), pipeline.now)
    left = pipeline.events()
    assert 0 < len(left) < 800
    assert left[-1].at_ms == max(event.at_ms for event in left) >= MONDAY + 3 * day


@pytest.fixture
def in_file(tmp_path: Path) -> Pipeline:
    """A pipeline into an SQLite file, of which one event is stored."""
    made = Pipeline(database.engine(database.sqlite_url(tmp_path / "history.db")), tmp_path / "home")
    made.record(make.decision(1, MONDAY))
    made.drain_all()
    return made


def removed(pipeline: Pipeline) -> Path:
    """Remove the database, as `rm history.db*` does."""
    (path,) = [Path(name) for name in [pipeline.engine.url.database] if name]
    for file in path.parent.glob("history.db*"):
        file.unlink()
    return path


def test_a_database_that_is_removed_is_made_anew_and_told(in_file: Pipeline) -> None:
    """SQLite itself would go on in the file that has no name any more, and report no error."""
    path = removed(in_file)
    in_file.now = MONDAY + HOUR
    in_file.restart_recorder()
    in_file.record(make.decision(2, MONDAY + 2))
    in_file.drain_all()
    fresh = database.engine(database.sqlite_url(path))
    stored = SqlReports(fresh, Prices(), lambda: in_file.now).history().entries
    assert [entry.at_ms for entry in stored] == [MONDAY + 2]
    assert [event.at_ms for event in in_file.events()] == [MONDAY + 2]  # connections opened before see the new file too
    found = lag(in_file.recorder.state(), in_file.home, in_file.now)
    assert (found.waiting, found.error, found.replaced_ms) == (0, "", MONDAY + HOUR)
    assert Drain(
        fresh, SpillReader(folder.spill(in_file.home)), KEPT, folder.state_file(in_file.home), time.monotonic,
        lambda: in_file.now, lambda _: True,
    )._state.replaced_ms == MONDAY + HOUR  # fmt: skip


def test_a_malformed_database_is_told_with_its_time(in_file: Pipeline) -> None:
    (path,) = [Path(name) for name in [in_file.engine.url.database] if name]
    in_file.engine.dispose()
    path.write_bytes(b"no database" * 4096)
    in_file.now = MONDAY + HOUR
    in_file.restart_recorder()
    in_file.record(make.decision(2, MONDAY + 2))
    in_file.drain.run()
    in_file.now += 60_000
    in_file.drain.run()
    found = lag(in_file.recorder.state(), in_file.home, in_file.now)
    assert (found.waiting, found.since_ms) == (1, MONDAY + HOUR)
    assert "not a database" in found.error or "malformed" in found.error


def test_a_drain_that_has_died_is_told(in_file: Pipeline) -> None:
    state = in_file.recorder.state()
    assert lag(state, in_file.home, in_file.now + 100_000).error == ""
    found = lag(state, in_file.home, in_file.now + 200_000)
    assert (found.error.startswith("the process that stores records does not run"), found.since_ms) == (True, MONDAY)
