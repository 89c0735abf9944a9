"""Jobs on several cards under fixed shares: steps a second beside native and the bounds of the share.

    python -m benchmarks.limiter_jobs [JOB ...] --cards 2 --rounds 1 --seconds 3 --shares 80 50 20 --json FILE
    python -m benchmarks.limiter_jobs [JOB ...] --beside job trainers --shares 50 --policy burst

training: 17.7 ms a step, 1.7 ms of it a collective; one thread launches for one card after the other.
threads: likewise, with a thread for each card; processes: with a process for each card, all in one container;
containers: with a container for each card, whose limits name one job.
unequal: as threads, but the last card has half of the work. short, short-threads,
short-containers: 0.65 ms a step.
Each job is alone on its cards: natively, without a limit of time, and with each share. With --beside it shares them
with another such job, or with a best-effort trainer on each card. All take two minutes on two cards. Needs as
many cards as a job has, and runs on simulated ones, too. Exits with 1 when a goal is missed.
"""

import argparse
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

import limiter
from benchmarks.card_jobs import jobs as framework_jobs
from benchmarks.card_jobs import measures
from benchmarks.card_jobs.measures import MeasureSettings
from benchmarks.card_jobs.mixes import AloneMix, BesideTrainers, JobMix, TwoJobs
from benchmarks.compute import linked_jobs, scenario
from benchmarks.compute.scenario import Failure, ScenarioFigure, SkippedError
from benchmarks.record import recorder
from benchmarks.record.recorder import ResultRecorder

FRAMEWORKS: Final = "frameworks"
JOBS: Final = (*linked_jobs.JOBS, *framework_jobs.JOBS)
NOWHERE: Final = Path("/dev/null")
SOURCES: Final = (*recorder.COMPUTE_SOURCES, "benchmarks/card_jobs")


def main() -> int:
    """Run the jobs, print a line for each share, and return 1 when a goal was missed."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("jobs", nargs="*", metavar="job", help=f"of {', '.join(JOBS)}; by default those in C")
    parser.add_argument("--cards", type=int, default=2, help="of a job, at most 8")
    parser.add_argument(
        "--shares", type=int, nargs="+", default=[100, 80, 50, 20], help="percent; 100: no limit of time"
    )
    parser.add_argument("--seconds", type=float, default=3.0, help="of each measurement, after 1 s of warm-up")
    parser.add_argument("--rounds", type=int, default=1, help="with the limiter; published figures have 3")
    parser.add_argument("--json", type=Path, help=recorder.JSON_HELP)
    parser.add_argument("--policy", choices=["fixed", "burst"], default="fixed", help="of the shares, beside others")
    parser.add_argument(
        "--beside", nargs="+", choices=list(linked_jobs.BESIDE), default=[], help="what shares the cards"
    )
    parser.add_argument("--second-share", type=int, help="of the second job, beside a job in PyTorch or JAX")
    parser.add_argument(
        "--backend",
        choices=["nccl", "gloo"],
        default="nccl",
        help="gloo: try programs without cards, recording nothing",
    )
    asked = parser.parse_args()
    if unknown := set(asked.jobs) - {*JOBS, FRAMEWORKS}:
        parser.error(f"no such job: {', '.join(sorted(unknown))}")
    limiter.arbiter_path()  # raises at once when it is not built
    record = ResultRecorder(NOWHERE if asked.backend == "gloo" else asked.json, "limiter_jobs", SOURCES)
    print(scenario.HEAD, flush=True)
    for name in named(asked.jobs):
        for row in rows(name, asked):
            record.add(row.as_row())
    print(f"{record}; {record.result.faults} goals missed")
    return 1 if record.result.faults else 0


def rows(name: str, asked: argparse.Namespace) -> Iterator[ScenarioFigure | Failure]:
    """Measure a job, alone or beside others; print and yield each row."""
    if name in framework_jobs.JOBS:
        yield from framework_rows(name, asked)
        return
    if asked.beside:
        scenarios = [
            linked_jobs.BESIDE[beside](name, asked.cards, share, asked.policy, asked.seconds)
            for beside in asked.beside
            for share in asked.shares
        ]
        yield from scenario.table(scenarios, asked.rounds, has_head=False)
        return
    for row in linked_jobs.measure(name, asked.cards, asked.shares, asked.seconds, asked.rounds):
        print(linked_jobs.line(row), flush=True)
        yield row


def named(jobs: Sequence[str]) -> list[str]:
    """Return the jobs that a command line names."""
    every = [framework_jobs.JOBS if name == FRAMEWORKS else [name] for name in jobs]
    return [name for names in every for name in names] or list(linked_jobs.JOBS)


def framework_rows(name: str, asked: argparse.Namespace) -> Iterator[ScenarioFigure | Failure]:
    """Measure a job in PyTorch or JAX; print and yield each row. One that cannot run is printed with its reason."""
    settings = MeasureSettings(asked.cards, asked.seconds, asked.rounds, asked.backend)
    for mixes in mixes_of(name, asked):
        try:
            for row in measures.measure(mixes, settings):
                print(linked_jobs.line(row), flush=True)
                yield row
        except SkippedError as reason:
            print(f"| {linked_jobs.PART} | {mixes[0].name} | skipped: {reason} |" + " |" * 7, flush=True)


def mixes_of(name: str, asked: argparse.Namespace) -> list[list[JobMix]]:
    """Return what to measure of a job in PyTorch or JAX: lists of the same jobs, a mix for each share."""
    cards, shares, second, policy = asked.cards, asked.shares, asked.second_share, asked.policy
    made: dict[str, list[JobMix]] = {
        "": [AloneMix(name, cards, share) for share in shares],
        "job": [TwoJobs(name, cards, (share, second or share), policy) for share in shares],
        "trainers": [BesideTrainers(name, cards, share, policy) for share in shares],
    }
    return [made[beside] for beside in asked.beside or [""]]


if __name__ == "__main__":
    sys.exit(main())
