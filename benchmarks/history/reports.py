"""The history with a million events, on SQLite and on PostgreSQL: how fast reports are, and how large an event is.

A month of pods: each has a decision, the start and end of a container, and its own end. The events are stored by the
code that the drain runs; the database is a file, or a server of its own that the script starts and stops.

    python -m benchmarks.history.reports --events 1000000
"""

import argparse
import random
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path

from sqlalchemy import Engine, text

from benchmarks.record import recorder, result
from benchmarks.record.recorder import ResultRecorder
from cluster import progress
from cluster.additions import postgres
from cluster.additions.postgres import Postgres
from extender.history.recording.events import CardShare, ContainerShare, Decision, End, Event, PodName, PodOwner, Start
from extender.history.reporting.prices import Prices
from extender.history.reporting.reports import Dimension, HistoryFilters, UsageGroup
from extender.history.reporting.sql_reports import SqlReports
from extender.history.storage import database, ingest, retention, rollup
from vgpu.domain.identifiers import NO_CONTAINER, CardUuid, ContainerName, Namespace, NodeName, PodUid

HOUR_MS = 3_600_000
BEGIN_MS = 20_000 * 24 * HOUR_MS
MONTH_MS = 30 * 24 * HOUR_MS
NOW_MS = BEGIN_MS + MONTH_MS
EVENTS_PER_POD = 4
BATCH = 1_000
NAMESPACES, OWNERS, NODES, CARDS = 50, 1_000, 64, 8
CARD_MIB = 81_920
REPEATS = 10


def main() -> None:
    """Fill both databases, time the reports, print one table, and record the figures."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--events", type=int, default=1_000_000, help="number of events")
    parser.add_argument("--json", type=Path, help=recorder.JSON_HELP)
    asked = parser.parse_args()
    record = ResultRecorder(asked.json, "history", recorder.HISTORY_SOURCES)
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)  # PostgreSQL runs as another user
        for name, engine in engines(Path(folder)):
            record.add(*rows(name, asked.events, measure(engine, asked.events)))
    print("\n".join(f"| {row.id} | {row.value:.4g} {row.unit} |" for row in record.result.rows), f"\n\n{record}")


def engines(folder: Path) -> Iterator[tuple[str, Engine]]:
    """Yield an empty database of each kind."""
    yield "sqlite", database.engine(database.sqlite_url(folder / "history.db"))
    if why := postgres.missing():
        progress.say(why)
        return
    server = Postgres(folder / "server")
    server.start()
    try:
        yield "postgresql", database.engine(server.create("history"))
    finally:
        server.stop()


def events(count: int) -> Iterator[Event]:
    """Yield a month of events, in the order of the pods' decisions; the same ones in each run."""
    rng = random.Random(1)
    pods = count // EVENTS_PER_POD
    for number in range(pods):
        namespace, owner = f"team-{number % NAMESPACES}", number % OWNERS
        node, card = rng.randrange(NODES), rng.randrange(CARDS)
        begin = BEGIN_MS + number * MONTH_MS // pods
        end = begin + int(rng.expovariate(1 / 2)) * HOUR_MS + rng.randrange(HOUR_MS)
        pod = PodName(
            PodUid(f"{number:08x}-5f0c-4b1e-9d43-0123456789ab"), Namespace(namespace), f"train-{owner}-{number:x}"
        )
        share, gpu = rng.choice((8192, 16384, 40960)), CardUuid(f"GPU-{node:08x}-{card:04x}-4f6e-8d43-0123456789ab")
        node_name = f"node-{node:04}"
        yield Decision(
            pod,
            NodeName(node_name),
            begin,
            begin - rng.randrange(30_000),
            PodOwner("Deployment", f"train-{owner}"),
            {"app": f"train-{owner}", "team": f"t{number % NAMESPACES}"},
            (ContainerShare(ContainerName("main"), gpu, share, 25),),
            (CardShare(gpu, card, "NVIDIA H100 80GB HBM3", CARD_MIB, share, 25),),
            {"CardInsufficientMemory": 12} if number % 4 == 0 else {},
        )
        yield Start(pod, NodeName(node_name), ContainerName("main"), begin + 1_500)
        yield End(pod, NodeName(node_name), ContainerName("main"), end, end, 0, "Completed")
        yield End(pod, NodeName(node_name), NO_CONTAINER, end, end, None, "Ended")


def measure(engine: Engine, count: int) -> dict[str, tuple[float, str]]:
    """Return every figure with its unit."""
    stored_s = timed(lambda: store(engine, count))
    rolled_s = timed(lambda: roll_up(engine))
    progress.say(f"{engine.dialect.name}: {count} events stored in {stored_s:.0f} s, rolled up in {rolled_s:.0f} s")
    reports = SqlReports(engine, Prices("EUR", {"default": 2.5}), lambda: NOW_MS)
    by_day = [UsageGroup(Dimension.DAY), UsageGroup(Dimension.NODE)]
    asked: dict[str, Callable[[], object]] = {
        "month-by-namespace": lambda: reports.usage([UsageGroup(Dimension.NAMESPACE)], BEGIN_MS, NOW_MS),
        "month-by-day-and-node": lambda: reports.usage(by_day, BEGIN_MS, NOW_MS),
        "month-by-label": lambda: reports.usage([UsageGroup(Dimension.LABEL, "team")], BEGIN_MS, NOW_MS),
        "page-of-a-namespace": lambda: reports.history(HistoryFilters(namespaces=frozenset({Namespace("team-1")}))),
        "page-of-a-pod": lambda: reports.history(HistoryFilters(pod="train-7-7")),
        "page-of-a-card": lambda: reports.history(
            HistoryFilters(gpu=CardUuid("GPU-00000001-0001-4f6e-8d43-0123456789ab"))
        ),
    }
    medians = {name: statistics.median(timed(ask) for _ in range(REPEATS)) for name, ask in asked.items()}
    return {
        "events-per-s": (count / stored_s, "events/s"),
        "bytes-per-event": (stored_bytes(engine) / count, "B"),
        "rolled-up-hours-per-s": (MONTH_MS / HOUR_MS / rolled_s, "hours/s"),
        **{name: (1000 * seconds, "ms") for name, seconds in medians.items()},
    }


def store(engine: Engine, count: int) -> None:
    """Store the events as the drain does."""
    database.migrate(engine)
    found = events(count)
    while batch := list(islice(found, BATCH)):
        with database.writing(engine) as connection:
            ingest.ingest(connection, batch)


def roll_up(engine: Engine) -> None:
    """Roll the month up; then let the database count its rows, as PostgreSQL's autovacuum does in time."""
    while rollup.roll_up(engine, NOW_MS + rollup.GRACE_MS):
        pass
    with database.writing(engine) as connection:
        connection.execute(text("ANALYZE"))


def stored_bytes(engine: Engine) -> int:
    """Return the size of the database, with its indexes."""
    if engine.dialect.name == database.SQLITE:
        return retention.size(engine)
    with database.reading(engine) as connection:
        return int(connection.scalar(text("SELECT pg_database_size(current_database())")) or 0)


def timed(ask: Callable[[], object]) -> float:
    """Return the seconds that a call takes."""
    begun = time.perf_counter()
    ask()
    return time.perf_counter() - begun


def rows(name: str, count: int, figures: dict[str, tuple[float, str]]) -> list[result.ResultRow]:
    """Return the rows of a result."""
    return [
        result.ResultRow(id=f"history.{name}.{figure}", value=value, unit=unit, details={"events": count})
        for figure, (value, unit) in figures.items()
    ]


if __name__ == "__main__":
    main()
