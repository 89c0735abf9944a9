"""The shares of a card's time that containers get, compared with the shares they asked for, on a GPU.

    python -m benchmarks.limiter_compute [PART ...] --rounds 3 --json FILE --plot FILE --only TEXT --quick

curve: one container at each share; shapes: one container with each kind of load; torch: one container with PyTorch;
costs: a launch without a share; tenants: several containers; burst: two containers with policy burst; inference: short
work beside a burner; stall: the longest launch; arbiter: an arbiter that is killed, stopped or attacked; same: results
of PyTorch. Only where they are named, small programs beside each other: waits: the longest request of each of 16;
steps: programs that wait for each step; clients: 300 clients; joint: joint turns whose arbiter is killed, stopped or
replaced; old: containers with the limiter of an earlier release. Each figure is measured natively, which is the card's
own time slicing, and in each round on a node with an arbiter. With SIMGPU_STATE set it runs on the simulated GPU. Exits
with 1 when a goal is missed.
"""

import argparse
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import limiter
from benchmarks.compute import (
    arbiter_faults,
    latency,
    launch_cost,
    reproducibility,
    several_containers,
    single_container,
    torch_shapes,
)
from benchmarks.compute.scenario import Scenario, ScenarioFigure, table
from benchmarks.record import recorder
from benchmarks.record.recorder import ResultRecorder
from benchmarks.report import plot
from benchmarks.small_programs import awaited_steps, joint_faults, many_clients, old_containers, worst_waits

PARTS: dict[str, Callable[[float, bool], list[Scenario]]] = {
    "tenants": lambda seconds, quick: several_containers.tenants(seconds, quick=quick),
    "burst": lambda seconds, _quick: [*several_containers.halves(seconds), *latency.returns()],
    "inference": lambda seconds, _quick: latency.inference(seconds),
    "stall": lambda seconds, _quick: [*single_container.stalls(seconds), *several_containers.eight(seconds)],
    "arbiter": lambda seconds, _quick: arbiter_faults.faults(seconds),
    "same": lambda _seconds, _quick: reproducibility.same(),
    "curve": lambda seconds, quick: single_container.curve(seconds, quick=quick),
    "shapes": lambda seconds, _quick: single_container.shapes(seconds),
    "torch": lambda seconds, _quick: torch_shapes.shapes(seconds),
    "costs": lambda _seconds, quick: launch_cost.costs(quick=quick),
}

SMALL_PROGRAMS: dict[str, Callable[[float, bool], list[Scenario]]] = {
    "waits": lambda _seconds, _quick: worst_waits.waits(),
    "clients": lambda _seconds, _quick: many_clients.clients(),
    "joint": lambda _seconds, _quick: joint_faults.faults(),
    "steps": lambda seconds, _quick: awaited_steps.steps(seconds),
    "old": lambda seconds, _quick: old_containers.beside_old(seconds),
}
EVERY_PART = {**PARTS, **SMALL_PROGRAMS}
SOURCES = (*recorder.COMPUTE_SOURCES, "benchmarks/small_programs")


def main() -> int:
    """Run the parts, print a line for each figure, and return 1 when a goal was missed."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "parts", nargs="*", metavar="part", help=f"of {', '.join(EVERY_PART)}; by default all of {', '.join(PARTS)}"
    )
    parser.add_argument("--only", default="", help="only scenarios whose name contains this text")
    parser.add_argument("--seconds", type=float, default=2.0, help="of each measurement, after one second of warm-up")
    parser.add_argument("--rounds", type=int, default=1, help="with the limiter; published figures have 3")
    parser.add_argument("--json", type=Path, help=recorder.JSON_HELP)
    parser.add_argument("--plot", type=Path, help="write a plot of the shares into this SVG file")
    parser.add_argument("--quick", action="store_true", help="shorter and fewer measurements, to see whether it runs")
    asked = parser.parse_args()
    if unknown := set(asked.parts) - set(EVERY_PART):
        parser.error(f"no such part: {', '.join(sorted(unknown))}")
    limiter.arbiter_path()  # raises at once when it is not built
    record = ResultRecorder(asked.json, "limiter_compute", SOURCES)
    rows = []
    for row in table(scenarios(asked.parts, asked.seconds, asked.only, quick=asked.quick), asked.rounds):
        rows.append(row)
        record.add(row.as_row())
    print(f"{record}; {record.result.faults} goals missed")
    if asked.plot:
        asked.plot.write_text(plot.picture([row for row in rows if isinstance(row, ScenarioFigure)], str(record)))
    return 1 if record.result.faults else 0


def scenarios(parts: Sequence[str], seconds: float, only: str = "", *, quick: bool = False) -> list[Scenario]:
    """Return the scenarios of the parts, or of all of `PARTS`, whose name contains `only`; each name once."""
    seconds = 1.0 if quick else seconds
    every = [scenario for part in parts or PARTS for scenario in EVERY_PART[part](seconds, quick)]
    chosen = {scenario.name: scenario for scenario in reversed(every) if only in scenario.name}
    return list(reversed(chosen.values()))


if __name__ == "__main__":
    sys.exit(main())
