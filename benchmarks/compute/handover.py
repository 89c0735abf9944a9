"""The parts of a handover: the time from the last kernel of one program to the first kernel of the next one.

Seen from outside: each kernel stamps its begin and its end with the card's clock, which all programs have in common,
and each program notes when it asked for a launch and when the launch returned, with its own clock translated into the
card's. What a handover with the limiter takes beyond the card's own change of contexts lies between the end of the last
kernel and the return of the next program's launch (announcement, drain, arbiter, wake-up), or after that return.
"""

import functools
import itertools
import os
import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from benchmarks import arbiter
from benchmarks.compute.load import run_together
from benchmarks.compute.node import Env, LaunchPlace
from benchmarks.compute.scenario import SHOWN, Figures, Scenario
from benchmarks.container import native_env
from benchmarks.programs import build

PART: Final = "handover"
KERNEL_US: Final = 200
IN_BURST: Final = 5
OFFSET_US: Final = 300  # of the second program: its launches wait while the first one's kernels run
APART_US: Final = 5000  # of two programs, half of a period: each finds the card idle
SECONDS: Final = 3.0
HOLD_US: Final = 800  # of the arbiter's clients, as in benchmarks.arbiter
HALF: Final = (50, "burst")

FEW: Final = 10  # gaps: deciles need more
BEFORE: Final = "begun before the end %"
GAPS: Final = ("gap p50 us", "gap p90 us")
PARTS: Final = (
    *GAPS,
    "launched after the end p50 us",
    "begun after both p50 us",
    BEFORE,
)
BEGUN: Final = "asked to begun p50 us"
BUSY: Final = (*PARTS, "working %", "handovers each s", "lost at a handover us")


@dataclass(frozen=True, slots=True)
class HandoverLoad:
    """The work of one process of `handover.c`."""

    kind: str
    count: int = IN_BURST
    offset_us: int = 0

    def command(self, seconds: float) -> list[str]:
        """Return the command line. Simulated kernels stamp nothing: there, the times are those of events."""
        clock = "host" if "SIMGPU_STATE" in os.environ else "card"
        sizes = (KERNEL_US, self.count, self.offset_us, seconds)
        return [str(build.program("handover")), self.kind, clock, *map(str, sizes)]


@dataclass(frozen=True, slots=True)
class StampedKernel:
    """A kernel of one of the programs, in ns of one clock.

    Attributes:
        program: number of the program.
        asked: when the program asked for the launch.
        launched: when the launch returned.
        begin: when the card began it.
        end: when the card ended it.
    """

    program: int
    asked: float
    launched: float
    begin: float
    end: float


Handover = tuple[StampedKernel, StampedKernel]


def scenarios() -> list[Scenario]:
    """Return what a handover consists of, and the whole."""
    return [
        Scenario(PART, "one program's kernels", dict.fromkeys(GAPS, SHOWN), _one_program),
        Scenario(PART, "a kernel on an idle card", {BEGUN: SHOWN}, _idle_card),
        Scenario(PART, "a kernel on an idle card that the other program used last", {BEGUN: SHOWN}, _after_other),
        Scenario(PART, "work that waits for the other program's end", dict.fromkeys(PARTS, SHOWN), _waiting),
        Scenario(PART, "two busy programs", dict.fromkeys(BUSY, SHOWN), _busy),
        Scenario(
            PART, "the arbiter without a card", dict.fromkeys(("p50 us", "p99 us"), SHOWN), _arbiter, has_native=False
        ),
    ]


def _one_program(place: LaunchPlace) -> Figures:
    return gap_figures(between(_run([HandoverLoad("busy")], [place.container(*HALF)])))


def _idle_card(place: LaunchPlace) -> Figures:
    return begun_figures(_run([HandoverLoad("burst", 1)], [place.container(*HALF)]))


def _after_other(place: LaunchPlace) -> Figures:
    """Natively, what this takes longer than after a kernel of the same program is the card's change of contexts."""
    loads = [HandoverLoad("burst", 1, offset_us) for offset_us in (0, APART_US)]
    return begun_figures(_run(loads, [place.container(*HALF) for _ in loads]))


def _waiting(place: LaunchPlace) -> Figures:
    loads = [HandoverLoad("burst"), HandoverLoad("burst", offset_us=OFFSET_US)]
    found = handovers(_run(loads, [place.container(*HALF) for _ in loads]))
    return native_figures(found) if place.native else handover_figures(found)


def _busy(place: LaunchPlace) -> Figures:
    kernels = _run([HandoverLoad("busy")] * 2, [place.container(*HALF) for _ in range(2)])
    found = handovers(kernels)
    figures = {"working %": working_percent(kernels), "handovers each s": len(found) / SECONDS}
    if place.native:  # kernels that are interrupted by each other's show no gaps
        return figures | {BEFORE: _before_percent(found)}
    lost = (_working_alone() - figures["working %"]) / 100 * 1e6 / max(1.0, figures["handovers each s"])
    return figures | {"lost at a handover us": lost} | handover_figures(found)


def _arbiter(_place: LaunchPlace) -> Figures:
    turns = arbiter.take_turns(build.program("arbiter_clients"), 2, HOLD_US, SECONDS)
    return {"p50 us": turns["median_us"], "p99 us": turns["p99_us"]}


def _run(loads: Sequence[HandoverLoad], envs: Sequence[Env]) -> list[StampedKernel]:
    return kernels_of(run_together(list(zip(loads, envs, strict=True)), SECONDS))


@functools.cache
def _working_alone() -> float:
    """Return the percentage of the time in which the kernels of one busy program run natively."""
    return working_percent(_run([HandoverLoad("busy")], [native_env()]))


def kernels_of(answers: Sequence[Mapping[str, Any]]) -> list[StampedKernel]:
    """Return the kernels of all programs in the order of their begins, by the clock of the first program.

    Each program has measured how far the card's clock is ahead of the host's, and is off by a microsecond or two. Only
    the difference between begins and ends on the one side and launches on the other side suffers from that.
    """
    first = answers[0]["clock_ahead_ns"]
    kernels = [
        StampedKernel(program, *times[:2], *(at + answer["clock_ahead_ns"] - first for at in times[2:]))
        for program, answer in enumerate(answers)
        for times in zip(answer["asked"], answer["launched"], answer["begins"], answer["ends"], strict=True)
    ]
    return sorted(kernels, key=lambda kernel: kernel.begin)


def between(kernels: Sequence[StampedKernel]) -> list[float]:
    """Return the ns between kernels that follow each other without a pause of the program's."""
    return [after.begin - before.end for before, after in itertools.pairwise(kernels) if after.asked < before.end]


def handovers(kernels: Sequence[StampedKernel]) -> list[Handover]:
    """Return the kernels before and after each change of the program, where the next program was waiting already."""
    found: list[Handover] = []
    last: StampedKernel | None = None
    for kernel in kernels:
        if last and last.program != kernel.program and kernel.asked < last.end:
            found.append((last, kernel))
        if last is None or kernel.end > last.end:
            last = kernel
    return found


def gap_figures(gaps_ns: Sequence[float]) -> dict[str, float]:
    """Return median and ninth decile. Raises RuntimeError where there are not enough gaps."""
    if len(gaps_ns) < FEW:
        raise RuntimeError(f"{len(gaps_ns)} gaps are too few")
    return {"gap p50 us": statistics.median(gaps_ns) / 1e3, "gap p90 us": statistics.quantiles(gaps_ns, n=10)[8] / 1e3}


def begun_figures(kernels: Iterable[StampedKernel]) -> dict[str, float]:
    """Return how long kernels take to begin."""
    return {BEGUN: statistics.median(kernel.begin - kernel.asked for kernel in kernels) / 1e3}


def apart(found: Iterable[Handover]) -> list[Handover]:
    """Return the handovers in which the next kernel did not begin before the end."""
    return [(before, after) for before, after in found if after.begin >= before.end]


def handover_figures(found: Sequence[Handover]) -> dict[str, float]:
    """Return the parts of the handovers. Raises RuntimeError where too few have a gap."""
    gaps = gap_figures([after.begin - before.end for before, after in apart(found)])
    launched = statistics.median(after.launched - before.end for before, after in apart(found))
    begun = statistics.median(after.begin - max(after.launched, before.end) for before, after in apart(found))
    return gaps | {
        "launched after the end p50 us": launched / 1e3,
        "begun after both p50 us": begun / 1e3,
        BEFORE: _before_percent(found),
    }


def native_figures(found: Sequence[Handover]) -> dict[str, float]:
    """Return the same where the card's time slices leave enough gaps."""
    return handover_figures(found) if len(apart(found)) >= FEW else {BEFORE: _before_percent(found)}


def _before_percent(found: Sequence[Handover]) -> float:
    return 100 * (1 - len(apart(found)) / len(found)) if found else 0.0


def working_percent(kernels: Sequence[StampedKernel]) -> float:
    """Return the percentage of the time that the kernels take when nothing interrupts them."""
    span_ns = max(kernel.end for kernel in kernels) - kernels[0].begin
    return 100 * len(kernels) * KERNEL_US * 1e3 / span_ns
