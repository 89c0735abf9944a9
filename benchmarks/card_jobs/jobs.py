"""Jobs in PyTorch and JAX: their processes and containers, and what a share allows them."""

import importlib.util
import os
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from benchmarks.card_jobs import seat
from benchmarks.card_jobs.kernel_spans import busiest_us
from benchmarks.card_jobs.processes import READY_S, CardProgram, answers_of, ask_all, end_all
from benchmarks.card_jobs.seat import Seat
from benchmarks.compute import linked_jobs
from benchmarks.compute.linked_jobs import TOLERANCE, LinkedJob
from benchmarks.compute.node import Env, LaunchPlace
from benchmarks.compute.scenario import Goal, SkippedError

Asked = tuple[int | None, str]  # share and policy
WARM_S: Final = 1.5  # all programs work for this long before a phase counts
PREPARE_S, TRACE_S, LATE_S = 90.0, 60.0, 30.0  # time limits; the last one behind the end of a phase
TRACED_STEPS: Final = 10


@dataclass(frozen=True, slots=True)
class CardJob:
    """A kind of job.

    Attributes:
        module: its program, below `benchmarks.card_jobs`.
        is_one_process: whether one process has all cards; otherwise each card has a process of its own.
        is_apart: whether each process is in a container of its own, with a card of its own.
        is_linked: whether its cards wait for each other. Otherwise each process is a program by itself, or the cards
            work one after the other.
        times: how many times the usual work a step has.
        most_ms: goal of the time of 99 of 100 steps of two such jobs on the same cards, with burst shares.
    """

    module: str
    is_one_process: bool = False
    is_apart: bool = False
    is_linked: bool = True
    times: int = 1
    most_ms: float | None = None

    @property
    def is_independent(self) -> bool:
        """Whether each process is a program by itself."""
        return not self.is_linked and not self.is_one_process

    def seats(self, cards: int, folder: Path, backend: str) -> list[Seat]:
        """Return the place of each process. Independent programs have folders of their own."""
        if self.is_one_process:
            return [Seat(0, 1, 0, cards, folder, backend, self.times)]
        if self.is_independent:
            return [Seat(0, 1, card, 1, folder / str(card), backend, self.times) for card in range(cards)]
        return [Seat(card, cards, card, 1, folder, backend, self.times) for card in range(cards)]


JOBS: Final = {
    "ddp": CardJob("ddp", most_ms=45),
    "ddp-containers": CardJob("ddp", is_apart=True, most_ms=45),
    "decoder": CardJob("decoder", most_ms=5),
    "fsdp": CardJob("fsdp"),
    "shard-map": CardJob("shard_map", is_one_process=True),
    "pmap": CardJob("pmap", is_one_process=True),
    "pipeline": CardJob("pipeline", is_one_process=True, is_linked=False),
    "independent": CardJob("independent", is_linked=False),
}
TRAINERS: Final = CardJob("independent", is_apart=True, is_linked=False, times=3)  # 50 ms a step on an H200


def framework(job: CardJob) -> str:
    """Return the package that a job needs."""
    return "jax" if job.module in ("pmap", "shard_map") else "torch"


def check_runs(job: CardJob, backend: str) -> None:
    """Raise SkippedError where a job cannot run."""
    if not importlib.util.find_spec(framework(job)):
        raise SkippedError(f"needs {framework(job)}")
    if backend == "nccl" and "SIMGPU_STATE" in os.environ:
        raise SkippedError("needs real cards")


def envs_of(job: CardJob, processes: int, place: LaunchPlace, share: int | None, policy: str = "fixed") -> list[Env]:
    """Return the environment of each process of a job.

    Processes in containers of their own have a card each, and their containers name one job where the job is linked.
    """
    if not job.is_apart:
        return [place.container(share, policy)] * processes
    name = linked_jobs.job_name(time.monotonic_ns())
    envs = [place.container(share, policy, job=name if job.is_linked else None) for _ in range(processes)]
    return [{**env, "CUDA_VISIBLE_DEVICES": str(card)} for card, env in enumerate(envs)]


class RunningJob:
    """The processes of a job, until the stack is closed."""

    def __init__(self, job: CardJob, seats: Sequence[Seat], envs: Sequence[Env], stack: ExitStack) -> None:
        self.job = job
        for folder in {place.folder for place in seats}:
            seat.make_folder(folder)
        self.programs = [_program(job, place, env) for place, env in zip(seats, envs, strict=True)]
        stack.callback(end_all, self.programs)

    def await_ready(self) -> None:
        """Wait until each process has imported its framework."""
        answers_of(self.programs, READY_S)

    def prepare(self) -> None:
        """Let the ranks join each other, build their models and run a few steps."""
        ask_all(self.programs, PREPARE_S, kind="prepare")

    def busiest_us(self) -> float:
        """Return for how many us of a step its busiest card works. Raises UnknownBusyError."""
        answers = ask_all(self.programs, TRACE_S, kind="trace", steps=TRACED_STEPS)
        cards = [spans for answer in answers for spans in answer["cards"].values()]
        if self.job.is_linked or len(cards) < 2:  # noqa: PLR2004  # collectives join cards only of linked jobs
            return busiest_us(cards, TRACED_STEPS)
        return max(busiest_us([spans], TRACED_STEPS) for spans in cards)


def start(job: CardJob, cards: int, place: LaunchPlace, asked: Asked, backend: str, stack: ExitStack) -> RunningJob:
    """Start a job in containers of a place, with a share and a policy; `await_ready` waits for it."""
    folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="job-")))
    seats = job.seats(cards, folder, backend)
    for each in seats:
        each.folder.mkdir(exist_ok=True)
    return RunningJob(job, seats, envs_of(job, len(seats), place, *asked), stack)


def _program(job: CardJob, place: Seat, env: Env) -> CardProgram:
    command = [sys.executable, "-m", f"benchmarks.card_jobs.{job.module}", *place.arguments()]
    return CardProgram(
        f"{job.module}, rank {place.rank}", command, {**env, **place.environment(), "OMP_NUM_THREADS": "1"}
    )


_phases = iter(range(seat.MOST_PHASES))


def together(jobs: Sequence[RunningJob], seconds: float) -> list[list[Mapping[str, Any]]]:
    """Let jobs work at the same time; return when the steps of each process ended, for each job."""
    programs = [program for job in jobs for program in job.programs]
    begin_ns = time.monotonic_ns() + int(WARM_S * 1e9)
    request = {"kind": "steps", "phase": next(_phases), "begin_ns": begin_ns, "seconds": seconds}
    answers = iter(ask_all(programs, WARM_S + seconds + LATE_S, **request))
    return [[next(answers) for _ in job.programs] for job in jobs]


def rate(answers: Sequence[Mapping[str, Any]], seconds: float) -> float:
    """Return the steps a second of a job's slowest process."""
    return min(len(answer["ends_ns"]) for answer in answers) / seconds


def goal_of(job: CardJob, share: int, native: float, busy_us: float | None) -> Goal:
    """Return the steps a second that a fixed share allows, with the tolerance.

    Where cards wait for each other, at least that share of the steps alone. Where they do not, also all that the share
    of the busiest card's time is enough for. At most what keeps the busiest card at work for the share.

    Args:
        job: the kind of job.
        share: percent.
        native: steps a second without limits.
        busy_us: of a step, how long the busiest card works; None: not known, so there is no upper bound.
    """
    if busy_us is None:
        return Goal(least=(1 - TOLERANCE) * share / 100 * native)
    goal = linked_jobs.goal_of(LinkedJob(job.module, round(busy_us), 1, 0), share, native)
    busy = native * busy_us / 1e6
    if job.is_linked or share / 100 < (1 - TOLERANCE) * busy:
        return goal
    return Goal((1 - TOLERANCE) * min(1, share / 100 / busy) * native, goal.most)
