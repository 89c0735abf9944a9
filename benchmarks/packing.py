"""How well policies pack: GPU allocation of a simulated cluster that fills up, or at a steady load with departures.

    python -m benchmarks.packing --seeds 10                                  (generated traces of several mixes)
    python -m benchmarks.packing --nodes FILE --pods FILE --policy fgd --seeds 10 --steady 0.95

Pods arrive in random order until 130 % of the capacity has arrived. The figure is the GPU allocation when the arrived
load equals the capacity. All policies of one seed get the same nodes and the same pods.
"""

import argparse
import statistics
import time
from collections.abc import Sequence
from dataclasses import astuple
from pathlib import Path

from benchmarks.placement import baselines, simulation, traces
from benchmarks.placement.fleet import FleetArrays
from benchmarks.placement.traces import Trace
from benchmarks.placement.verbs import ThroughVerbs
from benchmarks.record import recorder
from benchmarks.record.recorder import ResultRecorder
from benchmarks.record.result import ResultRow

CARDS = 400
THROUGH_VERBS = ("fragmentation", "binpack", "spread", "power")  # fgd is measured as its authors published it
SOURCES = ("vgpu/placement", "benchmarks/placement")


def main() -> None:
    """Simulate, print one line for each trace and policy, and record the figures."""
    asked = arguments()
    record = ResultRecorder(asked.json, "packing", SOURCES)
    for name in [asked.nodes.stem] if asked.nodes else asked.mix:
        for policy in asked.policy:
            began = time.process_time()
            runs = [once(asked, name, policy, asked.first_seed + n) for n in range(asked.seeds)]
            made = row(f"verbs-{name}" if asked.verbs else name, policy, asked.steady, runs)
            record.add(made)
            took = f"{time.process_time() - began:6.1f} s"
            print(f"{name:14} {policy:14} {made.value:6.2f} {median(runs, 1):6.2f} {took}", flush=True)
    print(f"\n{record}")


def arguments() -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--nodes", type=Path, help="CSV file of nodes (default: generated traces)")
    parser.add_argument("--pods", type=Path, help="CSV file of pods, with --nodes")
    parser.add_argument("--mix", nargs="*", choices=traces.MIXES, default=list(traces.MIXES), help="generated mixes")
    parser.add_argument("--cards", type=int, default=CARDS, help="cards of a generated trace")
    parser.add_argument("--policy", nargs="*", choices=baselines.names(), default=list(baselines.names()))
    parser.add_argument("--seeds", type=int, default=10, help="number of runs; the figure is their median")
    parser.add_argument("--first-seed", type=int, default=0, help="seed of the first run")
    parser.add_argument("--steady", type=float, help="load of a steady state, as a share of the capacity: 0.95")
    parser.add_argument(
        "--verbs", action="store_true", help="the extender's policies through its verbs; no pods without cards"
    )
    parser.add_argument("--json", type=Path, help=recorder.JSON_HELP)
    asked = parser.parse_args()
    if (asked.nodes is None) != (asked.pods is None):
        parser.error("give both of --nodes and --pods, or none")
    return asked


def once(asked: argparse.Namespace, mix: str, policy: str, seed: int) -> tuple[float, ...]:
    """Return the two figures of one run."""
    trace = read(asked, mix, seed)
    fleet = FleetArrays(trace.machines)
    through_verbs = asked.verbs and policy in THROUGH_VERBS
    chooser = ThroughVerbs(fleet, trace, policy) if through_verbs else baselines.POLICIES[policy](fleet, trace, seed)
    return astuple(_run(trace, fleet, chooser, asked.steady, seed))


def read(asked: argparse.Namespace, mix: str, seed: int) -> Trace:
    """Return the trace of one run."""
    if asked.nodes:
        return traces.read(asked.nodes, asked.pods)
    return traces.generate(traces.MIXES[mix], asked.cards, seed, cpu_only=not asked.verbs)


def _run(
    trace: Trace, fleet: FleetArrays, chooser: object, load: float | None, seed: int
) -> simulation.Filled | simulation.Steady:
    if load is None:
        return simulation.fill(trace, fleet, chooser, seed)
    return simulation.steady(trace, fleet, chooser, load, seed)


def row(name: str, policy: str, load: float | None, runs: Sequence[tuple[float, ...]]) -> ResultRow:
    """Return the figure of one policy on one trace, in percent of all cards."""
    kind, second = ("fill", "at-end") if load is None else (f"steady-{100 * load:.0f}", "rejected")
    allocated = tuple(round(run[0], 3) for run in runs)
    details = {second: round(median(runs, 1), 3), "seeds": len(runs)}
    return ResultRow(
        id=f"{kind}.{name}.{policy}", value=round(median(runs, 0), 3), unit="%", rounds=allocated, details=details
    )


def median(runs: Sequence[tuple[float, ...]], figure: int) -> float:
    """Return the median of one of the figures."""
    return statistics.median(run[figure] for run in runs)


if __name__ == "__main__":
    main()
