"""The limiter: memory, calls, GPU time, programs beside each other, and the arbiter."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from benchmarks import arbiter, limiter_compute, limiter_races
from benchmarks.applications import compiles, crowds, loads, long_loads
from benchmarks.compute import handover, linked_jobs, waiting_kernels
from benchmarks.compute.scenario import SHOWN, Scenario
from benchmarks.limiter_programs import PAIRS
from benchmarks.memory import costs, process_ends, torch_step
from benchmarks.record.result import ResultRow, slug
from benchmarks.report.tables.report_table import (
    DETAILS,
    HEADLINES,
    Cell,
    Line,
    ReportTable,
    goal,
    median,
    microseconds,
    native,
    quartiles,
    worst,
)
from benchmarks.small_programs import worst_waits

SECONDS = 2.0  # the default of limiter_compute; scenarios do not depend on it


def _compute_lines(scenarios: Sequence[Scenario]) -> Iterator[Line]:
    """Yield a line for the shares of each scenario together, and a line for each other figure with a goal."""
    for scenario in scenarios:
        name = f"{scenario.part}: {scenario.name}"
        bounded = {figure: goal for figure, goal in scenario.goals.items() if goal != SHOWN}
        shares = [figure for figure, goal in bounded.items() if goal.asked is not None]
        if shares:
            yield Line(name, tuple(slug(scenario.part, scenario.name, figure) for figure in shares))
        for figure in (figure for figure in bounded if figure not in shares):
            yield Line(f"{name}, {figure}", (slug(scenario.part, scenario.name, figure),))


def _lines(part: str, names: Sequence[str]) -> tuple[Line, ...]:
    return tuple(Line(name, (slug(part, name),)) for name in names)


_CURVE: Final = tuple(slug("curve", f"0.5 ms kernels at {cores} %", "share %") for cores in (5, 10, 20, 30, 50, 80, 95))
_FOUR: Final = tuple(
    slug("tenants", "10, 20, 30 and 35", f"{place}: fixed {cores} %") for place, cores in enumerate((10, 20, 30, 35), 1)
)
_INFERENCE: Final = ("inference", "two kernels each 10 ms beside a burner, burst 50 and 50")
_CALLS: Final = ("launch", "alloc+free 4 KiB", "async 20 MiB", "cuMemGetInfo")

HEADLINE: Final = ReportTable(
    "headline",
    HEADLINES,
    "figure",
    {"native": native(1), "with vgpushare": median(1)},
    (
        Line("classes of allocation that exceed a limit, or are refused below it", ("leaks",)),
        Line("ordered pairs of classes that exceed a limit, or are refused below it", ("pairs",)),
        Line("% of the time, asked for 5, 10, 20, 30, 50, 80, 95, alone on the card", _CURVE),
        Line("% of the time, asked for 10, 20, 30 and 35, on one card", _FOUR),
        Line(
            "work of two compute-bound containers, % of one alone",
            (slug("burst", "two compute-bound, 50 and 50", "sum over alone %"),),
        ),
        Line(
            "two kernels each 10 ms beside a compute-bound container, time over alone: p50, p99",
            tuple(slug(*_INFERENCE, figure) for figure in ("p50 over alone", "p99 over alone")),
        ),
    ),
)

HEADLINE_COSTS: Final = ReportTable(
    "headline-costs",
    HEADLINES,
    "time of a call",
    {"native us": microseconds("native_ns"), "limited / native": median(3)},
    _lines("costs", _CALLS),
)

LEAKS: Final = ReportTable(
    "leaks",
    DETAILS,
    "campaign",
    {"faults": median(0)},
    (
        Line("leaks: each class of allocation", ("leaks",)),
        Line("pairs: each ordered pair of classes", ("pairs",)),
        *(
            Line(f"race: {count} processes", (slug("races", "race", f"{count} racing, {rounds} rounds"),))
            for count, (rounds, _) in limiter_races.RACES.items()
        ),
        Line(
            f"kills: {limiter_races.KILLS.kills}",
            (slug("races", "kills", f"{limiter_races.KILLS.kills} kills among {limiter_races.KILLS.workers}"),),
        ),
        *(Line(f"locks: {end}", (slug("races", "locks", f"{end} inside the lock"),)) for end in ("kill", "stop")),
        *(
            Line(f"shared: exporter killed, {how}", (slug("races", "shared", f"exporter killed, {how}"),))
            for how in process_ends.WAYS
        ),
        Line("shared: exporter frees, pool", ("races.shared.exporter-frees-pool",)),
        Line("exec", ("races.exec.exec",)),
    ),
)

_COST_COLUMNS: Final[dict[str, Cell]] = {
    "native us": microseconds("native_ns"),
    "limited us": microseconds("limited_ns"),
    "ratio": median(3),
    "quartiles of the rounds": quartiles,
    "goal": goal,
}
_STARTS: Final = ("cuInit", "primary context", "/bin/true", *(f"{count} starting together" for count in costs.TOGETHER))

COSTS: Final = ReportTable(
    "costs",
    DETAILS,
    "call",
    _COST_COLUMNS,
    (
        *_lines("costs", (*costs.CALLS, *_STARTS)),
        *_lines("crowds", [f"{count} starting together" for count in costs.CROWDS]),
    ),
)

TORCH_STEP: Final = ReportTable(
    "torch-step",
    DETAILS,
    "training step",
    _COST_COLUMNS,
    _lines("torch-step", [case.name for case in torch_step.CASES]),
)

COMPUTE: Final = ReportTable(
    "compute",
    DETAILS,
    "part and scenario",
    {"goal": goal, "native": native(2), "median": median(2), "worst": worst(2)},
    tuple(_compute_lines(limiter_compute.scenarios((), SECONDS))),
)


def worst_of_goal(row: ResultRow) -> str:
    """Return the worst round of a figure that has a goal."""
    return worst(2)(row) if row.goal else ""


_TOGETHER: Final = {
    "a step over alone: p50, p99": ("p50 over alone", "p99 over alone"),
    "% of alone: first, second": ("first %", "second %"),
    "both over alone, summed": ("sum of both",),
}
PROGRAMS: Final = ReportTable(
    "programs",
    DETAILS,
    "programs on one card",
    {"native": native(2), "with vgpushare": median(2), "worst of a goal": worst_of_goal, "goal": goal},
    (
        *(
            Line(f"{pair.name}; {label}", tuple(slug(part, pair.name, figure) for figure in figures))
            for part, pairs in PAIRS.items()
            for pair in pairs
            for label, figures in _TOGETHER.items()
        ),
        *(
            Line(f"{scenario.name}; {figure}", (slug(scenario.part, scenario.name, figure),))
            for scenario in loads.scenarios(SECONDS)
            for figure in scenario.goals
        ),
    ),
)

_BESIDE_EACH_OTHER: Final[dict[str, Cell]] = {
    "native": native(2),
    "with vgpushare": median(2),
    "worst of a goal": worst_of_goal,
    "goal": goal,
}


def _figure_lines(part: str, name: str, figures: Iterable[str]) -> Iterator[Line]:
    return (Line(f"{name}; {figure}", (slug(part, name, figure),)) for figure in figures)


def _scenario_lines(scenarios: Iterable[Scenario]) -> tuple[Line, ...]:
    return tuple(line for one in scenarios for line in _figure_lines(one.part, one.name, one.goals))


def _delay_lines() -> Iterator[Line]:
    """Yield the lines of kernels that wait for their host. Their goals are known only after a native measurement."""
    asked = waiting_kernels.ASKED
    for load in (waiting_kernels.TUNER, waiting_kernels.FLAGS):
        for cores, policy in asked:
            name = waiting_kernels.alone_name(load, cores, policy)
            yield from _figure_lines(waiting_kernels.PART, name, (f"20 {load.kind} ms", "given up", "measured ms"))
    for cores, policy in asked:
        name = waiting_kernels.beside_name(cores, policy)
        yield from _figure_lines(waiting_kernels.PART, name, ("20 timings ms", "given up", "neighbour %"))
    for policy in ("fixed", "burst"):
        yield from _figure_lines(waiting_kernels.PART, waiting_kernels.fixed_name(policy), ("neighbour %",))


COMPILING: Final = ReportTable(
    "compiling",
    DETAILS,
    "program, alone on the card",
    _BESIDE_EACH_OTHER,
    tuple(
        line
        for program in compiles.PROGRAMS
        for line in _figure_lines(compiles.PART, program.name, compiles.figures(program))
    ),
)
WAITING: Final = ReportTable(
    "waiting",
    DETAILS,
    "kernels that wait for their host",
    _BESIDE_EACH_OTHER,
    (*_delay_lines(), *_scenario_lines(waiting_kernels.overdrafts())),
)
LONG: Final = ReportTable(
    "long-kernels",
    DETAILS,
    "kernels on one card",
    _BESIDE_EACH_OTHER,
    _scenario_lines((*long_loads.long_kernels(), *long_loads.endless_kernels())),
)
HANDOVER: Final = ReportTable(
    "handover",
    DETAILS,
    "between two programs",
    {"native": native(1), "with vgpushare": median(1)},
    _scenario_lines(handover.scenarios()),
)


def _crowd_lines() -> Iterator[Line]:
    """Yield the lines of each crowd: what each group of its members does in a second and how long that takes."""
    for part, crowd in ((part, crowd) for part, members in crowds.PARTS.items() for crowd in members):
        for group in crowd.groups:
            yield Line(f"{crowd.name}; {group}: in a second", (slug(part, crowd.name, f"{group}: each s"),))
            times = tuple(slug(part, crowd.name, f"{group}: {cut} ms") for cut in ("p50", "p99"))
            yield Line(f"{crowd.name}; {group}: p50, p99 in ms", times)
        if crowd.is_fixed:
            over = tuple(slug(part, crowd.name, f"{crowd.groups[0]}: {cut} over alone") for cut in ("p50", "p99"))
            yield Line(f"{crowd.name}; over alone: p50, p99", over)
        else:
            yield Line(f"{crowd.name}; all over alone, summed", (slug(part, crowd.name, "sum over alone"),))


CROWDS: Final = ReportTable("crowds", DETAILS, "programs on one card", _BESIDE_EACH_OTHER, tuple(_crowd_lines()))

_JOB_CARDS: Final = 2
_JOB_SHARES: Final = (100, 80, 50, 20)


def _of_job(name: str) -> tuple[str, ...]:
    job = f"{name} on {_JOB_CARDS} cards"
    return tuple(slug(linked_jobs.PART, job, f"fixed {share}: steps a second") for share in _JOB_SHARES)


JOBS: Final = ReportTable(
    "jobs",
    DETAILS,
    "job on two cards; steps a second at 100, 80, 50 and 20 %",
    {"native": native(1), "with vgpushare": median(1), "goal": goal},
    tuple(Line(name, _of_job(name)) for name in linked_jobs.JOBS),
)


def _beside_jobs() -> Iterator[Line]:
    for name in ("training", "threads", "containers", "short", "short-threads", "short-containers"):
        for policy in ("burst", "fixed"):
            two = linked_jobs.beside_job(name, _JOB_CARDS, _HALF_SHARE, policy, SECONDS)
            yield from (Line(f"{two.name}; {figure}", (slug(two.part, two.name, figure),)) for figure in _OF_TWO)
    for name in ("training", "short"):
        mixed = linked_jobs.beside_trainers(name, _JOB_CARDS, _HALF_SHARE, "fixed", SECONDS)
        yield from (Line(f"{mixed.name}; {figure}", (slug(mixed.part, mixed.name, figure),)) for figure in mixed.goals)


_HALF_SHARE: Final = 50
_OF_TWO: Final = linked_jobs.JOB_FIGURES[2:]  # what both do together, and their slowest steps
JOBS_BESIDE: Final = ReportTable(
    "jobs-beside",
    DETAILS,
    "jobs on the same two cards",
    {"native": native(1), "with vgpushare": median(1)},
    tuple(_beside_jobs()),
)


def _small_program_lines() -> Iterator[Line]:
    """Yield the lines of small programs; the longest requests of programs that do the same stand together."""
    for scenario in limiter_compute.scenarios(tuple(limiter_compute.SMALL_PROGRAMS), SECONDS):
        alike = [figure for figure in scenario.goals if figure.startswith(worst_waits.OF_ONE)]
        yield from _figure_lines(scenario.part, scenario.name, [name for name in scenario.goals if name not in alike])
        if alike:
            label = f"{scenario.name}; longest of each other program ms"
            yield Line(label, tuple(slug(scenario.part, scenario.name, figure) for figure in alike))


SMALL_PROGRAMS: Final = ReportTable(
    "small-programs",
    DETAILS,
    "small programs on one card",
    {"native": native(1), "with vgpushare": median(1), "worst of a goal": worst_of_goal, "goal": goal},
    tuple(_small_program_lines()),
)

ARBITER: Final = ReportTable(
    "arbiter",
    DETAILS,
    "clients",
    {"value": median(1), "unit": lambda row: row.unit},
    (
        *(
            Line(f"{clients} clients: {figure}", (slug("arbiter", f"{clients} clients", figure),))
            for clients, _ in arbiter.SHAPES
            for figure in arbiter.UNITS
        ),
        *(Line(f"{count} idle: processor", (slug("arbiter", f"{count} idle"),)) for count in arbiter.IDLE),
        *(Line(f"{jobs} jobs repay: processor", (slug("arbiter", f"{jobs} jobs wait"),)) for jobs in arbiter.JOBS),
    ),
)
