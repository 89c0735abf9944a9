"""The limiter's memory limit with many processes on a GPU: races, kills, stops, shared memory, exec.

    python -m benchmarks.limiter_races [race|kills|locks|shared|exec] ... --json FILE --quick --space
        --processes N --seconds N

race: processes that race for the last bytes; kills: kills at random instants; locks: kills and stops at every
instruction inside the region's lock; shared: exporters of shared memory that are killed or free it; exec: a process
that becomes another program. With --space race and kills run in a member of a group in space; an MPS server has at most
48 clients, so as many race there as most (ADR 174). Exits with 1 when there was a fault.
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
from benchmarks.record import recorder, result
from benchmarks.record.recorder import ResultRecorder
from benchmarks.space import daemon
from vgpu.domain.asks.space import MAX_CLIENTS

RACES = {2: (6000, 110), 8: (3500, 110), 64: (500, 180)}  # processes: rounds, and the seconds after which they stop
QUICK_RACES = {2: (100, 20), 8: (50, 20), 64: (2, 20)}
SPACE_RACES = {8: (800, 50), MAX_CLIENTS: (60, 80)}
QUICK_SPACE_RACES = {8: (30, 20), MAX_CLIENTS: (2, 40)}
FAR = 100_000  # more instructions than any holder executes inside the lock
SEED = 1

KILLS = KillCampaign(workers=16, kills=1000, looks=5, seconds=250, seed=SEED)
QUICK_KILLS = KillCampaign(workers=4, kills=30, looks=3, seconds=50, seed=SEED)
SPACE_KILLS = KillCampaign(workers=16, kills=200, looks=5, seconds=120, seed=SEED)
NATIVE_KILLS, NATIVE_S = 150, 40
SPACE_NATIVE_S = 20

Pipe = Path | None  # pipe directory of the daemon of a group in space; None: without MPS
Campaign = Callable[[Watcher, Namespace, Pipe], Iterator[TrialOutcome]]


def main() -> int:
    """Run the campaigns, print a line of each outcome, and return 1 when there was a fault."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("campaigns", nargs="*", metavar="campaign", help=f"of {', '.join(CAMPAIGNS)}; all by default")
    parser.add_argument("--json", type=Path, help=recorder.JSON_HELP)
    parser.add_argument("--quick", action="store_true", help="fewer rounds, to see whether it runs")
    parser.add_argument("--seconds", type=int, help="after which kills, or one race, stop")
    parser.add_argument("--processes", type=int, help="of the race; each that is measured by default")
    parser.add_argument("--space", action="store_true", help="as members of a group in space: race and kills")
    asked = parser.parse_args()
    campaigns = SPACE_CAMPAIGNS if asked.space else tuple(CAMPAIGNS)
    if set(asked.campaigns) - set(campaigns):
        parser.error(f"campaigns are {', '.join(campaigns)}")
    if asked.processes not in {None, *(SPACE_RACES if asked.space else RACES)}:
        parser.error(f"--processes is of {', '.join(map(str, SPACE_RACES if asked.space else RACES))}")
    record = ResultRecorder(asked.json, "limiter_races", recorder.MEMORY_SOURCES)
    print(record, flush=True)
    with daemon.pipe_of_group(is_wanted=asked.space) as pipe, Watcher() as watcher:
        for name in asked.campaigns or campaigns:
            for outcome in CAMPAIGNS[name](watcher, asked, pipe):
                row = report(outcome).as_row(name)
                record.add(result.in_space(row) if pipe else row)
    return 1 if record.result.faults else 0


def report(outcome: TrialOutcome) -> TrialOutcome:
    """Print the outcome as a line, and return it."""
    figures = ", ".join(f"{name} {value}" for name, value in outcome.figures.items()) or "not in this driver"
    print(f"{outcome.name}: {'; '.join(outcome.faults) or 'no fault'} ({figures})", flush=True)
    return outcome


def run_races(watcher: Watcher, asked: Namespace, pipe: Pipe) -> Iterator[TrialOutcome]:
    """Race for the last bytes."""
    full, quick = (SPACE_RACES, QUICK_SPACE_RACES) if pipe else (RACES, QUICK_RACES)
    for processes, (rounds, seconds) in (quick if asked.quick else full).items():
        if asked.processes in {None, processes}:
            yield races.race(watcher, processes, rounds, asked.seconds or seconds, SEED, pipe)


def run_kills(watcher: Watcher, asked: Namespace, pipe: Pipe) -> Iterator[TrialOutcome]:
    """Kill workers, without limits and with them."""
    full, native_s = (SPACE_KILLS, SPACE_NATIVE_S) if pipe else (KILLS, NATIVE_S)
    plan = QUICK_KILLS if asked.quick else full
    plan = replace(plan, seconds=asked.seconds or plan.seconds, pipe=pipe)
    yield kills.kill_natively(replace(plan, kills=min(plan.kills, NATIVE_KILLS), looks=1, seconds=native_s))
    yield kills.kill(watcher, plan)


def run_locks(_: Watcher, asked: Namespace, __: Pipe) -> Iterator[TrialOutcome]:
    """Kill and stop a process inside the lock."""
    yield process_ends.inside_the_lock("kill", range(0, FAR, 7 if asked.quick else 4))
    yield process_ends.inside_the_lock("stop", range(0, 200, 40 if asked.quick else 10))


def run_shared(watcher: Watcher, _: Namespace, __: Pipe) -> Iterator[TrialOutcome]:
    """Kill exporters of shared memory, and let one free it."""
    for how in process_ends.WAYS:
        yield process_ends.exporter_killed(watcher, how)
    yield process_ends.exporter_frees(watcher)


def run_exec(_: Watcher, __: Namespace, ___: Pipe) -> Iterator[TrialOutcome]:
    """Exec a program without CUDA."""
    yield process_ends.exec_without_cuda()


CAMPAIGNS: dict[str, Campaign] = {
    "race": run_races,
    "kills": run_kills,
    "locks": run_locks,
    "shared": run_shared,
    "exec": run_exec,
}
SPACE_CAMPAIGNS = ("race", "kills")


if __name__ == "__main__":
    sys.exit(main())
