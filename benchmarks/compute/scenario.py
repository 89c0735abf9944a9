"""Goals of figures, and the table of the figures measured: natively once, and with the limiter in each round."""

import math
import statistics
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from benchmarks.compute.host_lateness import Lateness
from benchmarks.compute.node import BenchmarkNode, LaunchPlace, Native
from benchmarks.record import result

Figures = Mapping[str, float]


@dataclass(frozen=True, slots=True)
class Goal:
    """The bounds of a figure. Of a share of the card's time, `asked` is the percent asked for."""

    least: float = -math.inf
    most: float = math.inf
    asked: float | None = None

    def beyond(self, value: float) -> float:
        """Return how far the value is out of bounds; negative within them."""
        return max(self.least - value, value - self.most)

    def __str__(self) -> str:
        if self.asked is not None:
            return f"{self.asked:g} within {self.most - self.asked:g}"
        if self.least > -math.inf and self.most < math.inf:
            return f"{self.least:.4g} to {self.most:.4g}"
        if self.least > -math.inf:
            return f">= {self.least:.4g}"
        return f"<= {self.most:.4g}" if self.most < math.inf else ""


SHOWN = Goal()


def near(asked: float, points: float) -> Goal:
    """Return the goal of a share, in percent."""
    return Goal(asked - points, asked + points, asked)


def at_least(value: float) -> Goal:
    """Return the goal of a figure that must not be less."""
    return Goal(least=value)


def at_most(value: float) -> Goal:
    """Return the goal of a figure that must not be more."""
    return Goal(most=value)


class SkippedError(Exception):
    """The scenario cannot be measured on this machine; the message says why."""


@dataclass(frozen=True, slots=True)
class Scenario:
    """Something to measure.

    Attributes:
        part: of the command line.
        name: in the table.
        goals: of each figure.
        measure: returns the figures, with containers of a place: a node, or native.
        has_native: whether it is measured natively too.
    """

    part: str
    name: str
    goals: Mapping[str, Goal]
    measure: Callable[[LaunchPlace], Figures]
    has_native: bool = True


@dataclass(frozen=True, slots=True)
class ScenarioFigure:
    """One figure: natively, in each round with the limiter, and how late the host was meanwhile."""

    part: str
    name: str
    figure: str
    goal: Goal
    native: float | None
    rounds: Sequence[float]
    seconds: float
    host_late_ms: float
    fault: str = field(init=False)

    def __post_init__(self) -> None:
        missed = self.goal.beyond(self.median) > 0
        object.__setattr__(self, "fault", f"{self.goal.beyond(self.median):.2f} off" if missed else "")

    @property
    def median(self) -> float:
        """Return the median of the rounds."""
        return statistics.median(self.rounds)

    @property
    def worst(self) -> float:
        """Return the round that is furthest out of bounds or nearest to them; without a goal, the highest."""
        return max(self.rounds, key=self.goal.beyond if self.goal != SHOWN else None)

    def line(self) -> str:
        """Return its line of the table."""
        native = "" if self.native is None else f"{self.native:.2f}"
        goal, fault = str(self.goal), self.fault or ("none" if self.goal != SHOWN else "")
        what = f"| {self.part} | {self.name} | {self.figure} | {goal} | {native} "
        return (
            f"{what}| {self.median:.2f} | {self.worst:.2f} | {fault} | {self.host_late_ms:.0f} | {self.seconds:.0f} |"
        )

    def as_row(self) -> result.ResultRow:
        """Return the row of a result: the median of the rounds."""
        return result.ResultRow(
            id=result.slug(self.part, self.name, self.figure),
            value=self.median,
            unit=UNITS.get(self.figure.rpartition(" ")[2].rstrip(","), ""),
            native=self.native,
            worst=self.worst,
            rounds=tuple(self.rounds),
            goal=str(self.goal),
            fault=self.fault,
            details={"host_late_ms": self.host_late_ms, "seconds": self.seconds},
        )


UNITS = {"%": "%", "ms": "ms", "us": "us", "ns": "ns", "s": "s"}  # the last word of a figure: its unit


@dataclass(frozen=True, slots=True)
class Failure:
    """A scenario that failed."""

    part: str
    name: str
    fault: str

    def as_row(self) -> result.ResultRow:
        """Return the row of a result, without a value."""
        words = self.fault.replace("\n", " ")[:1000]
        return result.ResultRow(id=result.slug(self.part, self.name), value=None, unit="", fault=words)


HEAD = "| part | what | figure | goal | native | median | worst | fault | host late ms | s |\n" + "|---" * 10 + "|"


def table(scenarios: Sequence[Scenario], rounds: int, *, has_head: bool = True) -> Iterator[ScenarioFigure | Failure]:
    """Print and yield each row as soon as it is measured. A skipped scenario is printed with its reason."""
    if has_head:
        print(HEAD, flush=True)
    for scenario in scenarios:
        try:
            for row in rows(scenario, rounds):
                print(row.line(), flush=True)
                yield row
        except SkippedError as reason:
            print(f"| {scenario.part} | {scenario.name} | skipped: {reason} |" + " |" * 7, flush=True)
        except (RuntimeError, OSError) as error:
            print(f"| {scenario.part} | {scenario.name} | FAILED: {error} |" + " |" * 7, flush=True)
            yield Failure(scenario.part, scenario.name, str(error))


def rows(scenario: Scenario, rounds: int) -> list[ScenarioFigure]:
    """Measure a scenario natively and in each round; `seconds` of a row are those of all rounds."""
    begun = time.monotonic()
    with Native() as place:
        native = scenario.measure(place) if scenario.has_native else {}
    ours = []
    with Lateness() as late:
        for _ in range(rounds):
            with BenchmarkNode() as place:
                ours.append(scenario.measure(place))
    seconds = time.monotonic() - begun
    return [
        ScenarioFigure(
            scenario.part,
            scenario.name,
            name,
            goal,
            native.get(name),
            [our[name] for our in ours],
            seconds,
            late.worst_ms,
        )
        for name, goal in scenario.goals.items()
    ]
