"""Jobs whose ranks wait for each other in collectives, on several cards: `parallel.c`, alone or beside others."""

import hashlib
import itertools
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from benchmarks.compute.host_lateness import Lateness
from benchmarks.compute.load import FeederLoad, FeederWork, of_alone_percent, run_together
from benchmarks.compute.node import BenchmarkNode, Env, LaunchPlace, Native
from benchmarks.compute.scenario import SHOWN, Failure, Figures, Goal, Scenario, ScenarioFigure
from benchmarks.programs import build
from vgpu.domain.asks import job_identity

PART: Final = "jobs"
TOLERANCE: Final = 0.05  # of both bounds
NO_LIMIT: Final = 100  # percent
SHARED_MEMORY: Final = Path("/dev/shm")
TRAINER: Final = FeederLoad("work", 2_000)
APART: Final = ("processes", "containers")  # kinds with a process for each card
SECOND_SHARE: Final = 0.99  # of the times of a job's steps


@dataclass(frozen=True, slots=True)
class LinkedJob:
    """A job: in each step a card has `work_us` in `launches` kernels, and a collective of `collective_us`.

    Attributes:
        kind: as in parallel.c; `processes`: a process for each card; `containers`: each in a container of its own.
        last_work_us: of the last card; by default as of the others.
    """

    kind: str
    work_us: int
    launches: int
    collective_us: int
    last_work_us: int | None = None

    @property
    def busiest_us(self) -> int:
        """Return the kernel time of a step on its busiest card."""
        return max(self.work_us, self.last_work_us or 0) + self.collective_us

    def loads(self, cards: int) -> list["ParallelLoad"]:
        """Return its processes."""
        group = time.monotonic_ns()
        if self.kind not in APART:
            return [ParallelLoad(self, cards, cards, 0, group)]
        return [ParallelLoad(self, cards, 1, rank, group) for rank in range(cards)]


@dataclass(frozen=True, slots=True)
class ParallelLoad:
    """One process of a job: `cards` of its `ranks`, from `first` on."""

    job: LinkedJob
    ranks: int
    cards: int
    first: int
    group: int

    def command(self, seconds: float) -> list[str]:
        """Return the command line."""
        job, last = self.job, self.job.last_work_us or self.job.work_us
        kind = "threads" if job.kind in APART else job.kind
        work = ",".join(map(str, [job.work_us] * (self.ranks - 1) + [last]))
        sizes = (job.launches, job.collective_us, self.cards, seconds, self.ranks, self.first, self.group)
        return [str(build.program("parallel")), kind, work, *map(str, sizes)]


JOBS: Final = {
    "training": LinkedJob("serial", 16_000, 16, 1_700),
    "threads": LinkedJob("threads", 16_000, 16, 1_700),
    "processes": LinkedJob("processes", 16_000, 16, 1_700),
    "containers": LinkedJob("containers", 16_000, 16, 1_700),
    "short": LinkedJob("serial", 552, 24, 98),
    "short-threads": LinkedJob("threads", 552, 24, 98),
    "short-containers": LinkedJob("containers", 552, 24, 98),
    "unequal": LinkedJob("threads", 16_000, 16, 1_700, last_work_us=8_000),
}


def placed(
    job: LinkedJob, cards: int, place: LaunchPlace, share: int | None, policy: str = "fixed"
) -> list[tuple["ParallelLoad", Env]]:
    """Return the processes of a job, each with the environment of its container. Containers are of one job."""
    loads = job.loads(cards)
    if job.kind != "containers":
        env = place.container(share, policy)
        return [(load, env) for load in loads]
    name = job_name(loads[0].group)
    return [(load, place.container(share, policy, job=name)) for load in loads]


def job_name(number: int) -> bytes:
    """Return the job that containers name in their limits, by a number that no other job has."""
    return hashlib.sha256(str(number).encode()).digest()[: job_identity.FINGERPRINT_SIZE]


def measure(
    name: str, cards: int, shares: Sequence[int], seconds: float, rounds: int
) -> Iterator[ScenarioFigure | Failure]:
    """Measure a job natively, then with each share, and yield a row for each share, in steps a second."""
    job = JOBS[name]
    try:
        with Native() as place:
            native = steps_a_second(job, cards, place, None, seconds)
    except (RuntimeError, OSError) as error:
        yield Failure(PART, name, str(error))
        return
    for share in shares:
        yield with_share(name, cards, share, native, seconds, rounds)


def line(row: ScenarioFigure | Failure) -> str:
    """Return its line of the table."""
    if isinstance(row, ScenarioFigure):
        return row.line()
    return f"| {row.part} | {row.name} | FAILED: {row.fault} |" + " |" * 7


def with_share(
    name: str, cards: int, share: int, native: float, seconds: float, rounds: int
) -> ScenarioFigure | Failure:
    """Measure a job with a share. `native`: steps a second without limits."""
    begun, found = time.monotonic(), []
    try:
        with Lateness() as late:
            for _ in range(rounds):
                with BenchmarkNode() as place:
                    found.append(steps_a_second(JOBS[name], cards, place, share, seconds))
    except (RuntimeError, OSError) as error:
        return Failure(PART, f"{name}, fixed {share}", str(error))
    what, goal = f"{name} on {cards} cards", goal_of(JOBS[name], share, native)
    passed = time.monotonic() - begun
    return ScenarioFigure(PART, what, f"fixed {share}: steps a second", goal, native, found, passed, late.worst_ms)


def goal_of(job: LinkedJob, share: int, native: float) -> Goal:
    """Return the steps a second that a share allows, with the tolerance.

    At least that share of the steps alone, and at most as many as keep the busiest card at work for that share of the
    time.
    """
    if share == NO_LIMIT:
        return Goal(least=(1 - TOLERANCE) * native)
    busy = native * job.busiest_us / 1e6
    low, high = share / 100 * native, min(1, share / 100 / busy) * native if busy else 0.0
    return Goal((1 - TOLERANCE) * low, (1 + TOLERANCE) * max(low, high))


def steps_a_second(job: LinkedJob, cards: int, place: LaunchPlace, share: int | None, seconds: float) -> float:
    """Run a job in a container of its own, and return the steps of its first rank a second."""
    first, *_ = _run(placed(job, cards, place, share), seconds)
    return float(first["steps"]) / seconds


def beside_job(name: str, cards: int, share: int, policy: str, seconds: float) -> Scenario:
    """Return the scenario of two jobs on the same cards, each with the share."""

    def measured(place: LaunchPlace) -> Figures:
        one, other = (placed(JOBS[name], cards, place, share, policy) for _ in range(2))
        answers = _run([*one, *other], seconds)
        first, second = answers[0], answers[len(one)]
        steps = [float(answer["steps"]) / seconds for answer in (first, second)]
        slowest = max(slowest_ms(answer["times_us"], 1e3, seconds) for answer in (first, second))
        return dict(zip(JOB_FIGURES, (*steps, sum(steps), slowest), strict=True))

    return Scenario(PART, f"two of {name} on {cards} cards, {policy} {share} each", _shown(JOB_FIGURES), measured)


def beside_trainers(name: str, cards: int, share: int, policy: str, seconds: float) -> Scenario:
    """Return the scenario of a job beside a best-effort trainer on each of its cards."""

    def measured(place: LaunchPlace) -> Figures:
        job, others = (
            placed(JOBS[name], cards, place, share, policy),
            [place.container(None, "best-effort") for _ in range(cards)],
        )
        trainers = [(TRAINER, {**other, "CUDA_VISIBLE_DEVICES": str(card)}) for card, other in enumerate(others)]
        answers = _run([*job, *trainers], seconds)
        shares = [of_alone_percent(TRAINER, answer) for answer in answers[len(job) :]]
        return dict(zip(TRAINER_FIGURES, (float(answers[0]["steps"]) / seconds, min(shares)), strict=True))

    what = f"{name} on {cards} cards, {policy} {share}, beside a trainer on each"
    return Scenario(PART, what, _shown(TRAINER_FIGURES), measured)


JOB_FIGURES: Final = ("first: steps a second", "second: steps a second", "both: steps a second", "99 of 100 steps, ms")
TRAINER_FIGURES: Final = ("steps a second", "slower trainer, of alone %")
BESIDE: Final = {"job": beside_job, "trainers": beside_trainers}


def _shown(figures: Sequence[str]) -> dict[str, Goal]:
    return dict.fromkeys(figures, SHOWN)


def slowest_ms(ends: Sequence[int], in_ms: float, seconds: float) -> float:
    """Return what 99 of 100 steps take at most, from end to end; the whole time where fewer than two ended.

    Args:
        ends: when each step ended, in parts of a millisecond.
        in_ms: how many parts a millisecond has.
        seconds: of the whole time.
    """
    gaps = sorted(after - before for before, after in itertools.pairwise(ends))
    return gaps[int(SECOND_SHARE * (len(gaps) - 1))] / in_ms if gaps else 1000 * seconds


def _run(loads: Sequence[tuple[FeederWork, Env]], seconds: float) -> list[dict[str, Any]]:
    """Run all loads at the same time, and remove what the ranks of jobs share."""
    try:
        return run_together(loads, seconds)
    finally:
        for load, _ in loads:
            if isinstance(load, ParallelLoad):
                (SHARED_MEMORY / str(load.group)).unlink(missing_ok=True)
