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
from collections.abc import Iterator
from pathlib import Path

import limiter
from benchmarks.compute import linked_jobs, scenario
from benchmarks.compute.scenario import Failure, ScenarioFigure
from benchmarks.record import recorder
from benchmarks.record.recorder import ResultRecorder


def main() -> int:
    """Run the jobs, print a line for each share, and return 1 when a goal was missed."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("jobs", nargs="*", metavar="job", help=f"of {', '.join(linked_jobs.JOBS)}; all by default")
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
    asked = parser.parse_args()
    if unknown := set(asked.jobs) - set(linked_jobs.JOBS):
        parser.error(f"no such job: {', '.join(sorted(unknown))}")
    limiter.arbiter_path()  # raises at once when it is not built
    record = ResultRecorder(asked.json, "limiter_jobs", recorder.COMPUTE_SOURCES)
    print(scenario.HEAD, flush=True)
    for name in asked.jobs or linked_jobs.JOBS:
        for row in rows(name, asked):
            record.add(row.as_row())
    print(f"{record}; {record.result.faults} goals missed")
    return 1 if record.result.faults else 0


def rows(name: str, asked: argparse.Namespace) -> Iterator[ScenarioFigure | Failure]:
    """Measure a job, alone or beside others; print and yield each row."""
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


if __name__ == "__main__":
    sys.exit(main())
