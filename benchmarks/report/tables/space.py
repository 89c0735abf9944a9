"""Groups in space: the memory limit below MPS, programs beside MPS without us, and faults."""

from collections.abc import Iterator
from typing import Final

from benchmarks import limiter_races
from benchmarks.applications import space_crowds
from benchmarks.applications.space_crowds import SpaceCrowd
from benchmarks.record.result import ResultRow, slug
from benchmarks.report.tables.report_table import (
    COMPARISONS,
    DETAILS,
    GUIDES,
    Cell,
    Line,
    ReportTable,
    goal,
    median,
    native,
    number,
    worst,
)
from benchmarks.space import faults

PART: Final = "space"


def _race_lines() -> Iterator[Line]:
    for count, (rounds, _) in limiter_races.SPACE_RACES.items():
        yield Line(f"race: {count} processes", (slug("space", "races", "race", f"{count} racing, {rounds} rounds"),))


_KILLS: Final = f"{limiter_races.SPACE_KILLS.kills} kills among {limiter_races.SPACE_KILLS.workers}"
SPACE_MEMORY: Final = ReportTable(
    "space-memory",
    DETAILS,
    "campaign, as members of a group in space",
    {"faults": median(0)},
    (
        Line("leaks: each class of allocation", ("space.leaks",)),
        *_race_lines(),
        Line(f"kills: {limiter_races.SPACE_KILLS.kills}", (slug("space", "races", "kills", _KILLS),)),
    ),
)


def _figure(crowd: SpaceCrowd, label: str, figure: str) -> Line:
    """Return a line of a figure: below MPS without us, and as a group."""
    ids = tuple(slug(PART, crowd.name, name) for name in (f"MPS alone: {figure}", figure))
    return Line(f"{crowd.name}; {label}", ids)


def _crowd_lines(crowd: SpaceCrowd) -> Iterator[Line]:
    yield _figure(crowd, "all over alone, summed", "sum over alone")
    for group in crowd.crowd.groups:
        yield _figure(crowd, f"{group}: in a second", f"{group}: each s")
        for cut in ("p50", "p99"):
            yield _figure(crowd, f"{group}: {cut} in ms", f"{group}: {cut} ms")
    for program in crowd.beside:
        figure = space_crowds.share_of(program)
        yield _figure(crowd, figure, figure)


SPACE_CROWDS: Final = ReportTable(
    "space-crowds",
    DETAILS,
    "programs on one card; below MPS without us, as a group",
    {"native": native(2), "median": median(2), "worst": worst(2), "goal": goal},
    tuple(line for crowd in space_crowds.CROWDS for line in _crowd_lines(crowd)),
)


def _detail(name: str) -> Cell:
    return lambda row: number(row.details[name], 0) if name in row.details else ""


def _told(row: ResultRow) -> str:
    who = [name for name, is_told in row.details.get("told", {}).items() if is_told]
    return "; ".join(who) or "nobody"


SPACE_FAULTS: Final = ReportTable(
    "space-faults",
    DETAILS,
    "what happens to a member of a group",
    {
        "a new member after s": median(1),
        "goal": goal,
        "fixed 30 waits, before, ms": _detail("stall_before_ms"),
        "meanwhile, ms": _detail("stall_ms"),
        "told": _told,
        "not as it must be": lambda row: row.fault,
    },
    tuple(Line(case.name, (faults.row_id(case.name),)) for case in faults.CASES),
)

_FOUR: Final = next(crowd for crowd in space_crowds.CROWDS if crowd.name == "4 small models, closed")
_PREFILL: Final = next(crowd for crowd in space_crowds.CROWDS if crowd.name == "a graph decoder and prefill")
_BESIDE: Final = next(crowd for crowd in space_crowds.CROWDS if crowd.beside)
_SHOWN: Final = (
    _figure(_FOUR, "requests a second", "small_model closed: each s"),
    _figure(_FOUR, "p99 in ms", "small_model closed: p99 ms"),
    _figure(_PREFILL, "prompt, p50 in ms", "prefill requests: p50 ms"),
    _figure(_BESIDE, "requests a second", "small_model closed: each s"),
    *(_figure(_BESIDE, space_crowds.share_of(one), space_crowds.share_of(one)) for one in _BESIDE.beside),
)
_SHORT: Final = {"native": native(1), "median": median(1)}
SPACE_GUIDE: Final = ReportTable(
    "space-guide", GUIDES, "programs on one card; below MPS without us, as a group", _SHORT, _SHOWN
)
SPACE_COMPARISON: Final = ReportTable(
    "space-comparison", COMPARISONS, "programs on one card; below MPS, as a group of vgpushare", _SHORT, _SHOWN
)
