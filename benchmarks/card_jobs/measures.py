"""Measures jobs in PyTorch and JAX: natively once, then in containers for each mix of shares.

All processes are started together, because importing a framework takes ten seconds and more. They use the cards only
from `prepare` on, one mix after the other, and end after their mix.
"""

import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Final

from benchmarks.card_jobs.jobs import RunningJob, check_runs, rate, start, together
from benchmarks.card_jobs.kernel_spans import UnknownBusyError
from benchmarks.card_jobs.mixes import JobMix, NativeJobs, goal_of_figure
from benchmarks.compute.host_lateness import Lateness
from benchmarks.compute.linked_jobs import PART
from benchmarks.compute.node import BenchmarkNode, LaunchPlace, Native
from benchmarks.compute.scenario import Failure, Figures, ScenarioFigure

Row = ScenarioFigure | Failure
ERRORS: Final = (RuntimeError, OSError)


@dataclass(frozen=True, slots=True)
class MeasureSettings:
    """How to measure: cards of a job, seconds of a measurement, rounds with the limiter, backend of the collectives."""

    cards: int
    seconds: float
    rounds: int
    backend: str


class RunningMix:
    """The processes of a mix, in a place, until `close`."""

    def __init__(self, mix: JobMix, place: LaunchPlace, settings: MeasureSettings) -> None:
        self._mix, self._settings, self._stack = mix, settings, ExitStack()
        try:
            if isinstance(place, BenchmarkNode):
                self._stack.enter_context(place)
            self.jobs = [
                start(job, settings.cards, place, asked, settings.backend, self._stack) for job, asked in mix.tenants
            ]
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """End the processes, and then the node."""
        self._stack.close()

    def prepare(self) -> None:
        """Wait until all processes are there, and let them build their models."""
        for job in self.jobs:
            job.await_ready()
        for job in self.jobs:
            job.prepare()

    def together(self, alone: Sequence[float]) -> Figures:
        """Return the figures of all jobs at the same time."""
        seconds = self._settings.seconds
        return self._mix.figures(together(self.jobs, seconds), seconds, alone)

    def natively(self) -> NativeJobs:
        """Measure what the goals need, without limits. The profiler comes last: it may stay in the way of launches."""
        seconds = self._settings.seconds
        alone = [rate(together([job], seconds)[0], seconds) for job in self.jobs]
        figures = self.together(alone) if len(self.jobs) > 1 else {}
        return NativeJobs(alone, _busy_us(self.jobs[0]), figures)


def measure(mixes: Sequence[JobMix], settings: MeasureSettings) -> Iterator[Row]:
    """Measure mixes of the same jobs, and yield the rows of each one. Raises SkippedError where they cannot run."""
    for job, _ in mixes[0].tenants:
        check_runs(job, settings.backend)
    with ExitStack() as stack:
        try:
            natively = RunningMix(mixes[0], Native(), settings)
            stack.callback(natively.close)
            ours = [RunningMix(mix, BenchmarkNode(), settings) for mix in mixes]
            for running in ours:
                stack.callback(running.close)
            _say(f"{mixes[0].name}: {len(ours)} with the limiter, and one without, are started")
            natively.prepare()
            native = natively.natively()
        except ERRORS as error:
            yield Failure(PART, f"{mixes[0].name}, natively", str(error))
            return
        natively.close()
        _say(f"{mixes[0].name}: natively {', '.join(f'{alone:.2f}' for alone in native.alone)} steps a second alone")
        for mix, running in zip(mixes, ours, strict=True):
            yield from _rows(mix, running, native, settings)


def _rows(mix: JobMix, running: RunningMix, native: NativeJobs, settings: MeasureSettings) -> Sequence[Row]:
    begun = time.monotonic()
    try:
        with Lateness() as late:
            running.prepare()
            found = [running.together(native.alone) for _ in range(settings.rounds)]
    except ERRORS as error:
        return [Failure(PART, _failed(mix), str(error))]
    finally:
        running.close()
    goals, passed = mix.goals(native), time.monotonic() - begun
    return [
        ScenarioFigure(
            PART,
            mix.name,
            name,
            goal_of_figure(goals, name),
            native.figures.get(name, native.alone[0] if len(native.alone) == 1 else None),
            [figures[name] for figures in found],
            passed,
            late.worst_ms,
        )
        for name in found[0]
    ]


def _failed(mix: JobMix) -> str:
    (_, (share, policy)), *_ = mix.tenants
    return mix.name if len(mix.tenants) > 1 else f"{mix.name}, {policy} {share}"


def _busy_us(job: RunningJob) -> float | None:
    """Return how long the busiest card works on a step, and say it; None where traces do not tell."""
    try:
        busy_us = job.busiest_us()
    except UnknownBusyError as reason:
        _say(f"{job.job.module}: the time that its cards work is not known, so shares have no upper bound: {reason}")
        return None
    _say(f"{job.job.module}: its busiest card works {busy_us / 1000:.3f} ms of a step")
    return busy_us


def _say(what: str) -> None:
    print(f"# {what}", file=sys.stderr, flush=True)
