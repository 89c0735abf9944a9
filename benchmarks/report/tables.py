"""The generated tables as data: which row ids stand in which line, and how a cell is written."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final

from benchmarks import (
    accounting,
    admin_load,
    arbiter,
    churn,
    filter_latency,
    limiter_compute,
    limiter_races,
    live_diagnosis,
    page_speed,
)
from benchmarks.applications import crowds, loads
from benchmarks.compute.scenario import SHOWN, Scenario
from benchmarks.limiter_programs import PAIRS
from benchmarks.memory import costs, process_ends, torch_step
from benchmarks.placement import traces
from benchmarks.record.result import ResultRow, slug
from benchmarks.recovery.goals import GOALS as RECOVERY_GOALS

HEADLINES, DETAILS, OPERATIONS = "README.md", "benchmarks/README.md", "docs/operations.md"
SECONDS = 2.0  # the default of limiter_compute; scenarios do not depend on it

Cell = Callable[[ResultRow], str]


@dataclass(frozen=True, slots=True)
class Line:
    """A line of a table: a label, and the figures that stand together in each of its cells."""

    label: str
    ids: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ReportTable:
    """A table.

    Attributes:
        name: in the markers.
        document: the file that has the markers.
        head: the head of the first column.
        columns: the head of each further column, and what it shows of a row.
        lines: its lines.
        largest_only: of the figures of a line only the one furthest from zero is shown.
    """

    name: str
    document: str
    head: str
    columns: dict[str, Cell]
    lines: tuple[Line, ...]
    largest_only: bool = False

    @property
    def row_ids(self) -> tuple[str, ...]:
        """The ids of all rows that the table shows."""
        return tuple(row_id for line in self.lines for row_id in line.ids)


def number(value: float | None, digits: int) -> str:
    """Return a figure with that many digits behind the point; empty for None."""
    return "" if value is None else f"{value:.{digits}f}"


def median(digits: int) -> Cell:
    """Return the cell of the median: bold when its goal is missed, "failed" without a value, "3 of 32" for counts."""

    def cell(row: ResultRow) -> str:
        if row.value is None:
            return "**failed**"
        of = f" of {row.details['of']}" if "of" in row.details else ""
        text = number(row.value, digits if row.unit != "faults" else 0) + of
        return f"**{text}**" if row.fault else text

    return cell


def native(digits: int) -> Cell:
    """Return the cell of the native figure."""
    return lambda row: number(row.native, digits)


def worst(digits: int) -> Cell:
    """Return the cell of the worst round."""
    return lambda row: number(row.worst, digits)


def goal(row: ResultRow) -> str:
    """Return the goal."""
    return row.goal


def microseconds(name: str) -> Cell:
    """Return the cell of a time in the details, given in ns."""
    return lambda row: number(row.details[name] / 1000, 2)


def quartiles(row: ResultRow) -> str:
    """Return the quartiles of the rounds' ratios."""
    low, high = row.details["quartiles"]
    return f"{low:.3f} to {high:.3f}"


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

_CROWD_COLUMNS: Final[dict[str, Cell]] = {
    "native": native(2),
    "with vgpushare": median(2),
    "worst of a goal": worst_of_goal,
    "goal": goal,
}


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


CROWDS: Final = ReportTable("crowds", DETAILS, "programs on one card", _CROWD_COLUMNS, tuple(_crowd_lines()))

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
    ),
)

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

PACKED: Final = ("fragmentation", "fgd", "binpack", "best-fit", "first-fit", "spread")


def rejected(row: ResultRow) -> str:
    """Return the percent of the offered load that was rejected."""
    return number(row.details["rejected"], 1)


def _packing(name: str, ids: str, columns: dict[str, Cell]) -> ReportTable:
    """Return a table with a line for each mix, and a figure for each policy in a cell; `ids` begins the rows' ids."""
    lines = tuple(Line(mix, tuple(f"{ids}{mix}.{policy}" for policy in PACKED)) for mix in traces.MIXES)
    return ReportTable(name, DETAILS, "mix", columns, lines)


_ALLOCATED: Final[dict[str, Cell]] = {", ".join(PACKED): median(2)}
_STEADY: Final[dict[str, Cell]] = {f"allocated: {', '.join(PACKED)}": median(2), "rejected": rejected}
PACKING: Final = _packing("packing", "fill.", _ALLOCATED)
PACKING_STEADY: Final = _packing("packing-steady", "steady-95.", _STEADY)
PACKING_VERBS: Final = _packing("packing-verbs", "fill.verbs-", _ALLOCATED)
PACKING_VERBS_STEADY: Final = _packing("packing-verbs-steady", "steady-95.verbs-", _STEADY)

_FAULTS: Final = {
    "webhook does not run for 3 to 15 s": "webhook does not run",
    "webhook killed": "kill -9 webhook",
    "webhook hangs": "SIGSTOP webhook",
    "connection between webhook and API server lost without notice": "half-open: webhook",
    "extender killed": "kill -9 extender",
    "extender hangs": "SIGSTOP extender",
    "connections of extender and scheduler lost without notice": "half-open: extender and scheduler",
    "kube-scheduler killed": "kill -9 scheduler",
    "kube-scheduler hangs": "SIGSTOP scheduler",
    "device plugin killed": "kill -9 plugin",
    "device plugin hangs": "SIGSTOP plugin",
    "connection of the device plugin lost without notice": "half-open: plugin",
    "a part without network for 3 to 15 s": "part cut off",
    "arbiter killed": "kill -9 arbiter",
    "arbiter hangs": "SIGSTOP arbiter",
    "kubelet killed": "kill -9 kubelet",
    "API server killed": "kill -9 api server",
    "API server hangs": "SIGSTOP api server",
    "API server answers 429 to our parts": "429 to our parts",
    "etcd hangs": "etcd stopped",
    "network delayed by 50 ms to 1 s": "slow network",
    "state directory full": "state disk full",
    "card lost, and back": "card lost",
    "driver reloaded": "driver reloaded",
    "NVML answers errors": "NVML errors",
}


def failed_pods(row: ResultRow) -> str:
    """Return how many pods the kubelet failed, over all faults of the kind."""
    return f"{row.details['failed']} in {row.details['count']}"


OUTAGES: Final = ReportTable(
    "outages",
    OPERATIONS,
    "fault",
    {"normal again after, median, s": median(1), "worst, s": worst(1), "pods failed, in faults": failed_pods},
    tuple(Line(label, (slug("outage", fault),)) for label, fault in _FAULTS.items()),
)


def most_load(row: ResultRow) -> str:
    """Return the most that the machine's load was in a round."""
    return number(row.details["load"], 1)


RECOVERY: Final = ReportTable(
    "recovery",
    DETAILS,
    "fault",
    {
        "objective": goal,
        "until the next pod, median, s": median(1),
        "worst, s": worst(1),
        "pods failed, in faults": failed_pods,
        "load of the machine, most": most_load,
    },
    tuple(Line(fault, (slug("recovery", fault),)) for fault in RECOVERY_GOALS),
)


def found(row: ResultRow) -> str:
    """Return the codes that were found."""
    return str(row.details.get("found") or "none")


ACCOUNTING: Final = ReportTable(
    "accounting",
    DETAILS,
    "case and account",
    {"s": median(3), "trace s": native(3)},
    tuple(
        Line(f"{case}: {account}", (slug(case, account),))
        for case, tenants in accounting.CASES.items()
        for account in accounting.accounts(tenants)
    ),
)

HOLD: Final = ReportTable(
    "hold",
    DETAILS,
    "figure",
    {"goal": goal, "median": median(2), "unit": lambda row: row.unit},
    (
        *(
            Line(f"target {target} %: {name}", (slug(f"target {target}", name),))
            for target in (30, 50, 70)
            for name in ("mean", "settling", "memory", "sleeps")
        ),
        *(
            Line(f"beside a program, {place}: {name}", (slug(place, name),))
            for place in ("native", "arbiter")
            for name in ("rate", "asleep", "back")
        ),
    ),
)

DIAGNOSIS: Final = ReportTable(
    "live-diagnosis",
    DETAILS,
    "program",
    {"right": goal, "found": found},
    tuple(Line(case.name or case.program, (f"{case.id}.code",)) for case in live_diagnosis.CASES),
)

CURES: Final = ReportTable(
    "cures",
    DETAILS,
    "program with its cure",
    {"times as fast": median(2), "said at most": native(1)},
    tuple(Line(case.program, (f"{case.id}.cured",)) for case in live_diagnosis.CASES if case.has_cure),
)


def error(row: ResultRow) -> str:
    """Return an error in percent with its sign, bold when its goal is missed."""
    text = f"{round(row.value or 0, 1) + 0.0:+.1f}"  # + 0.0: no negative zero
    return f"**{text}**" if row.fault else text


def mebibytes(name: str) -> Cell:
    """Return the cell of a size in the details, given in bytes."""
    return lambda row: f"{row.details[name] / 2**20:,.0f}"


_TRAINED: Final = ("momentum", "adamw", "adamw-fused")
_KINDS: Final = ("flash", "flash checkpointing", "eager", "eager checkpointing")


def _estimated() -> Iterator[tuple[str, list[str]]]:
    """Yield the cases of estimate_accuracy in groups: a label, and the cases' names, which stand in row ids."""
    yield "MLP, 64 and 1024 samples", [f"MLP b{batch} {optimizer}" for batch in (64, 1024) for optimizer in _TRAINED]
    yield (
        "ResNet-50, 16 and 64 images",
        [f"ResNet-50 b{batch} {optimizer}" for batch in (16, 64) for optimizer in _TRAINED],
    )
    for size in ("124M", "355M"):
        runs = [f"GPT-2 {size} {dtype} b{batch}" for dtype in ("fp32", "bf16") for batch in (2, 8)]
        for kind in _KINDS:
            yield f"GPT-2 {size}, {kind}", [f"{run} {kind} {optimizer}" for run in runs for optimizer in _TRAINED]
        yield f"GPT-2 {size}, decoding", [f"{run} decoding" for run in runs]


ESTIMATE: Final = ReportTable(
    "estimate",
    DETAILS,
    "model, and what is compared",
    {"largest error, %": error, "estimated MiB": mebibytes("estimated"), "measured MiB": mebibytes("measured")},
    tuple(
        Line(f"{label}: {what} of {len(cases)} runs", tuple(slug(case, what) for case in cases))
        for label, cases in _estimated()
        for what in ("peak", "NVML")
    ),
    largest_only=True,
)


def sighting(row: ResultRow) -> str:
    """Return the cell of a test of `make gpu-e2e`, or of a figure that it measured."""
    if row.unit == "faults":
        return "**failed**" if row.fault else "passed"
    text = number(row.value, {"%": 1, "s": 2}.get(row.unit, 3))
    return f"**{text}**" if row.fault else text


_FRAMEWORK_LIMITS: Final = ("torch", "cupy", "jax")
_IN_PODS: Final = (
    ("placed, shown its share by CUDA, NVML and nvidia-smi, and its slices freed again", ["the road of a pod"]),
    (
        "PyTorch, CuPy and JAX are refused at 8 GiB, and NVML outside counts no more for them",
        [f"a framework gets its limit and no more {name}" for name in _FRAMEWORK_LIMITS],
    ),
    ("fixed 20 and 60 side by side: % of one alone, by kernels", ["share 20 of 2", "share 60 of 2"]),
    ("fixed 10, 20, 25 and 35 side by side", [f"share {cores} of 4" for cores in (10, 20, 25, 35)]),
    ("burst 70 beside best-effort: % of one alone", ["burst and best-effort burst", "burst and best-effort rest"]),
    ("GPU seconds in the metrics over the kernels' own, two minutes of fixed 30", ["accounted"]),
    (
        "metrics of memory against NVML; an idle pod gives its card back; the figure above",
        ["two minutes are accounted and an idle pod gives its card back"],
    ),
    ("`vgpu set` changes the limit of a running program", ["a limit changes while a program runs"]),
    ("`vgpu hold --target 50`: % busy, by NVML", ["hold 50"]),
    ("`vgpu diagnose --live` names the share that holds a program back", ["diagnose of a running pod"]),
    ("a process on the card without a share is found", ["a process on the card without a share is found"]),
    (
        "device plugin, extender, webhook, containerd and kubelet restarted: a running pod keeps fixed 40",
        ["parts restart under load and a pod keeps its share"],
    ),
    ("50 random kills: nothing stays on the card", ["pods are killed at random and nothing of them stays"]),
    (
        "time in a pod over time by `vgpu run`: launch, allocation, training step",
        [f"pod against vgpu run {name}" for name in ("launch", "allocation", "step")],
    ),
    (
        "kernels in pods over those by `vgpu run`, fixed 20 and 60",
        [f"pod against vgpu run share {c}" for c in (20, 60)],
    ),
    (
        "s from the pod's creation to its process, to cuInit, to the first cuMemAlloc",
        [f"first allocation {step}" for step in ("process", "cuinit", "cumemalloc")],
    ),
    ("s of it that a pod without a share does not need", ["first allocation ours"]),
    ("two cards: a whole card beside shares; a pod over both", ["a whole card beside shares", "a pod over both cards"]),
    ("two cards: NCCL in one pod, and in two", ["nccl in one pod over two cards", "nccl in two pods"]),
)
IN_PODS: Final = ReportTable(
    "in-pods",
    HEADLINES,
    "in pods on real cards",
    {"seen": sighting},
    tuple(Line(label, tuple(slug("gpu_cluster", name) for name in names)) for label, names in _IN_PODS),
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

TABLES: Final = (
    IN_PODS,
    OUTAGES,
    RECOVERY,
    HEADLINE,
    HEADLINE_COSTS,
    LEAKS,
    COSTS,
    TORCH_STEP,
    COMPUTE,
    PROGRAMS,
    CROWDS,
    ARBITER,
    SCHEDULE,
    CHURN,
    HISTORY,
    FILTER_LATENCY,
    HISTORY_FAULTS,
    ADMIN_LOAD,
    PAGE_SPEED,
    PACKING,
    PACKING_STEADY,
    ACCOUNTING,
    HOLD,
    DIAGNOSIS,
    CURES,
    ESTIMATE,
    PACKING_VERBS,
    PACKING_VERBS_STEADY,
)
