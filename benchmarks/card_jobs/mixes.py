"""Which jobs share cards in a measurement, and the figures and goals of them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from benchmarks.card_jobs.jobs import JOBS, TRAINERS, Asked, CardJob, goal_of, rate
from benchmarks.compute.linked_jobs import JOB_FIGURES, TOLERANCE, TRAINER_FIGURES, slowest_ms
from benchmarks.compute.scenario import SHOWN, Figures, Goal, at_least, at_most

Answers = Sequence[Mapping[str, Any]]  # of a job's processes
FIXED: Final = "fixed"
TRAINER_SHARE: Final = 40  # of each trainer beside a fixed job, if the job leaves as much


@dataclass(frozen=True, slots=True)
class NativeJobs:
    """What the jobs do without limits.

    Attributes:
        alone: steps a second of each job alone on the cards.
        busy_us: of a step of the first job, how long its busiest card works; None: not known.
        figures: of all of them together; empty where there is one.
    """

    alone: Sequence[float]
    busy_us: float | None
    figures: Figures


@dataclass(frozen=True, slots=True)
class AloneMix:
    """A job alone on its cards, with a fixed share."""

    job_name: str
    cards: int
    share: int

    @property
    def tenants(self) -> list[tuple[CardJob, Asked]]:
        """Return the jobs, each with its share and its policy."""
        return [(JOBS[self.job_name], (self.share, FIXED))]

    @property
    def name(self) -> str:
        """Return the name in the table."""
        return f"{self.job_name} on {self.cards} cards"

    def figures(self, answers: Sequence[Answers], seconds: float, alone: Sequence[float]) -> Figures:  # noqa: ARG002
        """Return the figures, in the table's order; `alone`: steps a second of each job alone without limits."""
        return {f"fixed {self.share}: steps a second": rate(answers[0], seconds)}

    def goals(self, native: NativeJobs) -> Mapping[str, Goal]:
        """Return the goals of figures; those without a goal are only shown."""
        goal = goal_of(JOBS[self.job_name], self.share, native.alone[0], native.busy_us)
        return {f"fixed {self.share}: steps a second": goal}


@dataclass(frozen=True, slots=True)
class TwoJobs:
    """Two such jobs on the same cards."""

    job_name: str
    cards: int
    shares: tuple[int, int]
    policy: str

    @property
    def tenants(self) -> list[tuple[CardJob, Asked]]:
        """Return the jobs, each with its share and its policy."""
        return [(JOBS[self.job_name], (share, self.policy)) for share in self.shares]

    @property
    def name(self) -> str:
        """Return the name in the table."""
        first, second = self.shares
        asked = f"{first} each" if first == second else f"{first} and {second}"
        return f"two of {self.job_name} on {self.cards} cards, {self.policy} {asked}"

    def figures(self, answers: Sequence[Answers], seconds: float, alone: Sequence[float]) -> Figures:  # noqa: ARG002
        """Return the figures, in the table's order."""
        steps = [rate(answer, seconds) for answer in answers]
        slowest = max(slowest_ms(each["ends_ns"], 1e6, seconds) for answer in answers for each in answer)
        return dict(zip(JOB_FIGURES, (*steps, sum(steps), slowest), strict=True))

    def goals(self, native: NativeJobs) -> Mapping[str, Goal]:
        """Return the goals: of fixed shares what each allows, of burst shares as many steps in all as natively."""
        first, second, both, slowest = JOB_FIGURES
        job = JOBS[self.job_name]
        if self.policy == FIXED:
            named = zip((first, second), self.shares, strict=True)
            return {name: goal_of(job, share, native.alone[0], native.busy_us) for name, share in named}
        bound = {} if job.most_ms is None else {slowest: at_most(job.most_ms)}
        return {both: at_least((1 - TOLERANCE) * native.figures[both])} | bound


@dataclass(frozen=True, slots=True)
class BesideTrainers:
    """A job beside a trainer on each of its cards, which is fixed where the job is, and best-effort otherwise."""

    job_name: str
    cards: int
    share: int
    policy: str

    @property
    def trainer_share(self) -> int | None:
        """Return the share of each trainer."""
        return min(TRAINER_SHARE, 100 - self.share) or None if self.policy == FIXED else None

    @property
    def tenants(self) -> list[tuple[CardJob, Asked]]:
        """Return the jobs, each with its share and its policy."""
        trainer = (self.trainer_share, FIXED) if self.trainer_share else (None, "best-effort")
        return [(JOBS[self.job_name], (self.share, self.policy)), (TRAINERS, trainer)]

    @property
    def name(self) -> str:
        """Return the name in the table."""
        trainer = f"fixed {self.trainer_share}" if self.trainer_share else "best-effort"
        return f"{self.job_name} on {self.cards} cards, {self.policy} {self.share}, beside a {trainer} trainer on each"

    def figures(self, answers: Sequence[Answers], seconds: float, alone: Sequence[float]) -> Figures:
        """Return the figures, in the table's order."""
        job, trainers = (rate(answer, seconds) for answer in answers)
        return dict(zip(TRAINER_FIGURES, (job, 100 * trainers / alone[1] if alone[1] else 0.0), strict=True))

    def goals(self, native: NativeJobs) -> Mapping[str, Goal]:
        """Return the goals: the job's and the trainers' shares; a burst job may have more than its share."""
        steps, trainers = TRAINER_FIGURES
        goal = goal_of(JOBS[self.job_name], self.share, native.alone[0], native.busy_us)
        wanted = {steps: goal if self.policy == FIXED else at_least(goal.least)}
        if self.trainer_share:
            wanted[trainers] = at_least((1 - TOLERANCE) * self.trainer_share)
        return wanted


JobMix = AloneMix | TwoJobs | BesideTrainers


def goal_of_figure(goals: Mapping[str, Goal], name: str) -> Goal:
    """Return the goal of a figure."""
    return goals.get(name, SHOWN)
