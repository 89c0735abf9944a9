"""The limiter under many processes on a GPU: races for the last bytes, kills, stops, shared memory, exec.

    python -m benchmarks.limiter_races [race|kills|locks|shared|exec] ... --json FILE --quick --processes N --seconds N

Ends with 1 where a figure is not as it must be.
"""

import argparse
import json
import sys
from argparse import Namespace
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

from benchmarks import provenance
from benchmarks.memory import kills, process_ends, races
from benchmarks.memory.kills import Plan
from benchmarks.memory.nvml_watcher import Watcher
from benchmarks.memory.races import Outcome

RACES = {2: (6000, 110), 8: (3500, 110), 64: (500, 180)}  # processes: rounds, seconds at most once all have started
QUICK_RACES = {2: (100, 20), 8: (50, 20), 64: (2, 20)}
FAR = 100_000  # more instructions than the lock is held for
SEED = 1

KILLS = Plan(workers=16, kills=1000, looks=5, seconds=250, seed=SEED)
QUICK_KILLS = Plan(workers=4, kills=30, looks=3, seconds=50, seed=SEED)
NATIVE_KILLS, NATIVE_S = 150, 40

Campaign = Callable[[Watcher, Namespace], Iterator[Outcome]]


def main() -> int:
    """Run the campaigns asked for, print a line of each outcome, and return 1 where something was wrong."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("campaigns", nargs="*", metavar="campaign", help=f"of {', '.join(CAMPAIGNS)}; all by default")
    parser.add_argument("--json", type=Path, help="every figure, into this file")
    parser.add_argument("--quick", action="store_true", help="fewer rounds")
    parser.add_argument("--seconds", type=int, help="that the kills, or a race, may take")
    parser.add_argument("--processes", type=int, choices=RACES, help="of the race; all of these by default")
    asked = parser.parse_args()
    if set(asked.campaigns) - set(CAMPAIGNS):
        parser.error(f"campaigns are {', '.join(CAMPAIGNS)}")
    with Watcher() as watcher:
        result = provenance.of_this_machine() | watcher.describe()
        print(f"{result['gpu']}, driver {result['driver']}; {result['machine']}; commit {result['commit']}", flush=True)
        outcomes = [tell(each) for name in asked.campaigns or CAMPAIGNS for each in CAMPAIGNS[name](watcher, asked)]
    result["outcomes"] = [each.as_json() for each in outcomes]
    if asked.json:
        asked.json.write_text(json.dumps(result, indent=1))
    return 1 if any(each.faults for each in outcomes) else 0


def tell(outcome: Outcome) -> Outcome:
    """Print it in a line."""
    figures = ", ".join(f"{name} {value}" for name, value in outcome.figures.items()) or "not in this driver"
    print(f"{outcome.name}: {'; '.join(outcome.faults) or 'as it must be'} ({figures})", flush=True)
    return outcome


def run_races(watcher: Watcher, asked: Namespace) -> Iterator[Outcome]:
    """Race for the last bytes."""
    for processes, (rounds, seconds) in (QUICK_RACES if asked.quick else RACES).items():
        if asked.processes in {None, processes}:
            yield races.race(watcher, processes, rounds, asked.seconds or seconds, SEED)


def run_kills(watcher: Watcher, asked: Namespace) -> Iterator[Outcome]:
    """Kill among workers, also without limits."""
    plan = QUICK_KILLS if asked.quick else KILLS
    plan = replace(plan, seconds=asked.seconds or plan.seconds)
    yield kills.kill_natively(replace(plan, kills=min(plan.kills, NATIVE_KILLS), looks=1, seconds=NATIVE_S))
    yield kills.kill(watcher, plan)


def run_locks(_: Watcher, asked: Namespace) -> Iterator[Outcome]:
    """Kill and stop inside the lock."""
    yield process_ends.inside_the_lock("kill", range(0, FAR, 7 if asked.quick else 4))
    yield process_ends.inside_the_lock("stop", range(0, 200, 40 if asked.quick else 10))


def run_shared(watcher: Watcher, _: Namespace) -> Iterator[Outcome]:
    """Kill exporters, and let one free what the driver keeps."""
    for how in process_ends.WAYS:
        yield process_ends.exporter_killed(watcher, how)
    yield process_ends.exporter_frees(watcher)


def run_exec(_: Watcher, __: Namespace) -> Iterator[Outcome]:
    """Become another program."""
    yield process_ends.becomes_another_program()


CAMPAIGNS: dict[str, Campaign] = {
    "race": run_races,
    "kills": run_kills,
    "locks": run_locks,
    "shared": run_shared,
    "exec": run_exec,
}


if __name__ == "__main__":
    sys.exit(main())
