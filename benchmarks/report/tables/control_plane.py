"""The control plane: scheduling, the history, the admin REST and the page, and memory over an hour."""

from collections.abc import Callable
from functools import partial
from typing import Final

from benchmarks import admin_load, churn, filter_latency, page_speed
from benchmarks.record.result import ResultRow, slug
from benchmarks.report.tables.report_table import DETAILS, Cell, Line, ReportTable, goal, median, native, number, worst

SCHEDULE: Final = ReportTable(
    "schedule",
    DETAILS,
    "figure",
    {"plain pods": native(1), "pods with a share": median(2), "unit": lambda row: row.unit},
    (
        Line("scheduled", ("schedule.pods-per-s",)),
        Line("pods with a share, divided by plain pods", ("schedule.ratio",)),
        Line("time in filter and prioritize", ("schedule.in-filter-and-prioritize",)),
        *(Line(f"median {verb}", (f"schedule.median-{verb}",)) for verb in ("filter", "prioritize", "bind")),
        Line("writes to a pod", ("schedule.writes-a-pod",)),
        *(
            Line(f"processor time of {program}", (f"schedule.processor-{program}",))
            for program in ("etcd", "kube-apiserver", "kube-scheduler", "extender")
        ),
    ),
)

DATABASES: Final = ("sqlite", "postgresql")
HISTORY: Final = ReportTable(
    "history",
    DETAILS,
    "a month, 1,000,000 events",
    {"SQLite, PostgreSQL": median(1), "unit": lambda row: row.unit},
    tuple(
        Line(label, tuple(f"history.{database}.{figure}" for database in DATABASES))
        for label, figure in (
            ("usage by namespace", "month-by-namespace"),
            ("usage by a label", "month-by-label"),
            ("usage by day and node", "month-by-day-and-node"),
            ("100 events of a namespace", "page-of-a-namespace"),
            ("100 events of a card", "page-of-a-card"),
            ("events stored", "events-per-s"),
            ("size of an event, with indexes", "bytes-per-event"),
        )
    ),
)

_SIZES: Final = ((10, 10), (100, 100), (1_000, 1_000), (5_000, 500), (5_000, 5_000))  # nodes, and names in a call
FILTER_LATENCY: Final = ReportTable(
    "filter_latency",
    DETAILS,
    "10, 100, 1,000 nodes; 5,000 nodes with 500 and 5,000 names in a call",
    {"p50": median(2), "p99": worst(1), "unit": lambda row: row.unit},
    tuple(
        Line(label, tuple(filter_latency.row_id(*size, label) for size in _SIZES))
        for label in (
            "filter, equal pods",
            "filter, each pod another request",
            "filter, two cards",
            "filter, every node refused",
            "prioritize, equal pods",
            "watch event",
            "ready",
            "memory, peak",
        )
    ),
)


def interval(row: ResultRow) -> str:
    """Return the interval that has a ratio with a probability of 95 %; empty for other figures."""
    return f"{number(row.details['low'], 2)} to {number(row.details['high'], 2)}" if "low" in row.details else ""


def percentiles(label: str, row_id: Callable[[str], str]) -> tuple[Line, Line]:
    """Return the lines of a figure: its percentiles, and the ratio of p99; `row_id` makes the ID of a row of them."""
    return Line(label, (row_id("p50"), row_id("p99"))), Line(f"{label}, ratio of p99", (row_id("ratio"),))


HISTORY_FAULTS: Final = ReportTable(
    "history_faults",
    DETAILS,
    "p50, p99; p99 failing over healthy",
    {"healthy": native(1), "failing": median(2), "unit": lambda row: row.unit, "95 % interval": interval},
    tuple(
        line
        for verb in ("filter", "bind")
        for label, case in (
            ("SQLite, file system full", "sqlite-disk-full"),
            ("PostgreSQL, killed", "postgresql-killed"),
        )
        for line in percentiles(f"{verb}: {label}", partial("history-faults.{}.{}.{}".format, case, verb))
    ),
)

ADMIN_LOAD: Final = ReportTable(
    "admin_load",
    DETAILS,
    "load: p50, p99; p99 beside it over alone",
    {"alone": native(2), "beside": median(2), "unit": lambda row: row.unit, "95 % interval": interval, "goal": goal},
    tuple(
        line
        for label, kind in (("none", "none"), ("100 open pages with live updates", "pages"))
        for line in percentiles(label, partial(admin_load.row_id, kind))
    ),
)

PAGE_SPEED: Final = ReportTable(
    "page_speed",
    DETAILS,
    "5,000 cards, 20,000 pods",
    {"median": median(2), "worst": worst(2), "unit": lambda row: row.unit, "goal": goal},
    tuple(
        Line(name, (slug("page", name),))
        for name in (page_speed.FIRST_VIEW, page_speed.MAIN_THREAD, page_speed.LONGEST_TASK)
    ),
)


def at_mark(place: int) -> Cell:
    """Return the cell of a figure at one of the run's marks."""
    return lambda row: number(row.rounds[place], 0) if place < len(row.rounds) else ""


def growth(row: ResultRow) -> str:
    """Return how much more a part has at the end than after the warm-up, bold where that is too much."""
    more = f"{(row.value or 0) - (row.native or 0):.1f}"
    return f"**{more}**" if row.fault else more


def made_pods(row: ResultRow) -> str:
    """Return how many pods were created."""
    return str(row.details["POST 201"])


CHURN: Final = ReportTable(
    "churn",
    DETAILS,
    "resident memory in MiB after minutes",
    {**{f"{10 * (place + 1)}": at_mark(place) for place in range(churn.MARKS)}, "growth": growth, "pods": made_pods},
    tuple(Line(label, (slug("churn", part),)) for part, label in churn.LABELS.items()),
)
