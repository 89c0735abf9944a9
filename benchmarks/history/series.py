"""A day of five-minute series, on SQLite and on PostgreSQL: bytes of a point, and how long a card's day takes to read.

Each card has four containers. The reports are stored by the code that the drain runs.

    python -m benchmarks.history.series --cards 200
"""

import argparse
import statistics
import tempfile
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

from sqlalchemy import Engine, func, select, text

from benchmarks.history.reports import BATCH, BEGIN_MS, HOUR_MS, REPEATS, engines, timed
from extender.history.recording.events import (
    CardMeasured,
    CardShare,
    ContainerShare,
    Decision,
    PodName,
    PodOwner,
    Record,
    Used,
)
from extender.history.reporting.prices import Prices
from extender.history.reporting.sql_reports import SqlReports
from extender.history.storage import database, ingest
from extender.history.storage.points import SLOT_MS
from extender.history.storage.tables import PointRow
from vgpu.domain.identifiers import CardUuid, ContainerName, Namespace, NodeName, PodUid

DAY_MS = 24 * HOUR_MS
PER_NODE, CONTAINERS = 8, 4


def main() -> None:
    """Fill both databases and print one table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--cards", type=int, default=200, help="number of cards")
    cards = parser.parse_args().cards
    print(
        "| database | points of a day | bytes of a point | MiB a day and 1,000 cards | stored in "
        "| a card's day, median |"
    )
    print("|---|---|---|---|---|---|")
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)  # PostgreSQL runs as another user
        for name, engine in engines(Path(folder)):
            print(row(name, engine, cards))


def row(name: str, engine: Engine, cards: int) -> str:
    """Fill a database; return its row of the table."""
    database.migrate(engine)
    stored_s = timed(lambda: store(engine, cards))
    with database.reading(engine) as connection:
        points = connection.scalar(select(func.count()).select_from(PointRow)) or 1
    size = stored_bytes(engine)
    reports = SqlReports(engine, Prices(), lambda: BEGIN_MS + DAY_MS)
    read = [
        timed(lambda: reports.card_series(NodeName("node-0"), CardUuid("GPU-0000"), BEGIN_MS, BEGIN_MS + DAY_MS))
        for _ in range(REPEATS)
    ]
    mib = size / cards * 1000 / (1 << 20)
    took = 1000 * statistics.median(read)
    return f"| {name} | {points} | {size / points:.0f} | {mib:.0f} | {stored_s:.0f} s | {took:.1f} ms |"


def records(cards: int) -> Iterator[Record]:
    """Yield the decisions of all pods, and a report of each five minutes of each container and card."""
    for card in range(cards):
        gpu, node = CardUuid(f"GPU-{card:04}"), NodeName(f"node-{card // PER_NODE}")
        for number in range(CONTAINERS):
            pod = PodName(
                PodUid(f"{card:08x}-5f0c-4b1e-9d43-{number:012x}"), Namespace("team"), f"train-{card}-{number}"
            )
            share = ContainerShare(ContainerName("main"), gpu, 8192, 25)
            taken = CardShare(gpu, card % PER_NODE, "NVIDIA H100 80GB HBM3", 81_920, 8192, 25)
            yield Decision(pod, node, BEGIN_MS, BEGIN_MS, PodOwner("Job", "train"), {}, (share,), (taken,), {})
    for until_ms in range(BEGIN_MS + SLOT_MS // 2, BEGIN_MS + DAY_MS, SLOT_MS):
        from_ms = until_ms // HOUR_MS * HOUR_MS
        used = (until_ms - from_ms) // 4
        for card in range(cards):
            gpu, node = CardUuid(f"GPU-{card:04}"), NodeName(f"node-{card // PER_NODE}")
            yield CardMeasured(node, gpu, from_ms, until_ms, used, 40_000 + card, 61, 350)
            for number in range(CONTAINERS):
                uid, waits = PodUid(f"{card:08x}-5f0c-4b1e-9d43-{number:012x}"), (used // 8, used // 16, 900, 0)
                yield Used(uid, node, ContainerName("main"), gpu, from_ms, until_ms, used, 9000, (1,), 8000, waits)


def store(engine: Engine, cards: int) -> None:
    """Store the records as the drain does."""
    found = records(cards)
    while batch := list(islice(found, BATCH)):
        with database.writing(engine) as connection:
            ingest.ingest(connection, batch)


def stored_bytes(engine: Engine) -> int:
    """Return the size of the points with their index."""
    if engine.dialect.name == database.SQLITE:
        size = text("SELECT sum(pgsize) FROM dbstat WHERE name IN ('points', 'ix_points_slot')")
    else:
        size = text("SELECT pg_total_relation_size('points')")
    with database.reading(engine) as connection:
        return int(connection.scalar(size) or 0)


if __name__ == "__main__":
    main()
