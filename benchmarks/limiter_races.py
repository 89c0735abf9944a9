"""The limiter's memory limit with many processes on a GPU: races, kills, stops, shared memory, exec.

    python -m benchmarks.limiter_races [race|kills|locks|shared|exec] ... --json FILE --quick --processes N --seconds N

race: processes that race for the last bytes; kills: kills at random instants; locks: kills and stops at every
instruction inside the region's lock; shared: exporters of shared memory that are killed or free it; exec: a process
that becomes another program. Exits with 1 when there was a fault.
"""

import argparse
import sys
from argparse import Namespace
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

from benchmarks.memory import kills, process_ends, races
from benchmarks.memory.kills import KillCampaign
from benchmarks.memory.nvml_watcher import Watcher
from benchmarks.memory.outcome import TrialOutcome
from benchmarks.record import recorder
from benchmarks.record.recorder import ResultRecorder

RACES = {2: (6000, 110), 8: (3500, 110), 64: (500, 180)}  # processes: rounds, and the seconds after which they stop
QUICK_RACES = {2: (100, 20), 8: (50, 20), 64: (2, 20)}
FAR = 100_000  # more instructions than any holder executes inside the lock
SEED = 1

KILLS = KillCampaign(workers=16, kills=1000, looks=5, seconds=250, seed=SEED)
QUICK_KILLS = KillCampaign(workers=4, kills=30, looks=3, seconds=50, seed=SEED)
NATIVE_KILLS, NATIVE_S = 150, 40

Campaign = Callable[[Watcher, Namespace], Iterator[TrialOutcome]]


def main() -> int:
    """Run the campaigns, print a line of each outcome, and return 1 when there was a fault."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("campaigns", nargs="*", metavar="campaign", help=f"of {', '.join(CAMPAIGNS)}; all by default")
    parser.add_argument("--json", type=Path, help=recorder.JSON_HELP)
    parser.add_argument("--quick", action="store_true", help="fewer rounds, to see whether it runs")
    parser.add_argument("--seconds", type=int, help="after which kills, or one race, stop")
    parser.add_argument("--processes", type=int, choices=RACES, help="of the race; each of these by default")
    asked = parser.parse_args()
    if set(asked.campaigns) - set(CAMPAIGNS):
        parser.error(f"campaigns are {', '.join(CAMPAIGNS)}")
    record = ResultRecorder(asked.json, "limiter_races", recorder.MEMORY_SOURCES)
    print(record, flush=True)
    with Watcher() as watcher:
        for name in asked.campaigns or CAMPAIGNS:
            for outcome in CAMPAIGNS[name](watcher, asked):
                record.add(report(outcome).as_row(name))
    return 1 if record.result.faults else 0


def report(outcome: TrialOutcome) -> TrialOutcome:
    """Print the outcome as a line, and return it."""
    figures = ", ".join(f"{name} {value}" for name, value in outcome.figures.items()) or "not in this driver"
    print(f"{outcome.name}: {'; '.join(outcome.faults) or 'no fault'} ({figures})", flush=True)
    return outcome


def run_races(watcher: Watcher, asked: Namespace) -> Iterator[TrialOutcome]:
    """Race for the last bytes."""
    for processes, (rounds, seconds) in (QUICK_RACES if asked.quick else RACES).items():
        if asked.processes in {None, processes}:
            yield races.race(watcher, processes, rounds, asked.seconds or seconds, SEED)


def run_kills(watcher: Watcher, asked: Namespace) -> Iterator[TrialOutcome]:
    """Kill workers, without limits and with them."""
    plan = QUICK_KILLS if asked.quick else KILLS
    plan = replace(plan, seconds=asked.seconds or plan.seconds)
    yield kills.kill_natively(replace(plan, kills=min(plan.kills, NATIVE_KILLS), looks=1, seconds=NATIVE_S))
    yield kills.kill(watcher, plan)


def run_locks(_: Watcher, asked: Namespace) -> Iterator[TrialOutcome]:
    """Kill and stop a process inside the lock."""
    yield process_ends.inside_the_lock("kill", range(0, FAR, 7 if asked.quick else 4))
    yield process_ends.inside_the_lock("stop", range(0, 200, 40 if asked.quick else 10))


def run_shared(watcher: Watcher, _: Namespace) -> Iterator[TrialOutcome]:
    """Kill exporters of shared memory, and let one free it."""
    for how in process_ends.WAYS:
        yield process_ends.exporter_killed(watcher, how)
    yield process_ends.exporter_frees(watcher)


def run_exec(_: Watcher, __: Namespace) -> Iterator[TrialOutcome]:
    """Exec a program without CUDA."""
    yield process_ends.exec_without_cuda()


CAMPAIGNS: dict[str, Campaign] = {
    "race": run_races,
    "kills": run_kills,
    "locks": run_locks,
    "shared": run_shared,
    "exec": run_exec,
}


if __name__ == "__main__":
    sys.exit(main())
