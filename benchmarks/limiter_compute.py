"""The shares of a card's time that containers get, compared with the shares they asked for, on a GPU.

    python -m benchmarks.limiter_compute [PART ...] --rounds 3 --json FILE --plot FILE --only TEXT --quick

curve: one container at each share; shapes: one container with each kind of load; torch: one container with PyTorch;
costs: a launch without a share; tenants: several containers; burst: two containers with policy burst; inference: short
work beside a burner; stall: the longest launch; arbiter: an arbiter that is killed, stopped or attacked; same: results
of PyTorch. Each figure is measured natively, which is the card's own time slicing, and in each round on a node with an
arbiter. With SIMGPU_STATE set it runs on the simulated GPU. Exits with 1 when a goal is missed.
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


def main() -> int:
    """Run the parts, print a line for each figure, and return 1 when a goal was missed."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("parts", nargs="*", metavar="part", help=f"of {', '.join(PARTS)}; all by default")
    parser.add_argument("--only", default="", help="only scenarios whose name contains this text")
    parser.add_argument("--seconds", type=float, default=2.0, help="of each measurement, after one second of warm-up")
    parser.add_argument("--rounds", type=int, default=1, help="with the limiter; published figures have 3")
    parser.add_argument("--json", type=Path, help=recorder.JSON_HELP)
    parser.add_argument("--plot", type=Path, help="write a plot of the shares into this SVG file")
    parser.add_argument("--quick", action="store_true", help="shorter and fewer measurements, to see whether it runs")
    asked = parser.parse_args()
    if unknown := set(asked.parts) - set(PARTS):
        parser.error(f"no such part: {', '.join(sorted(unknown))}")
    limiter.arbiter_path()  # raises at once when it is not built
    record = ResultRecorder(asked.json, "limiter_compute", recorder.COMPUTE_SOURCES)
    rows = []
    for row in table(scenarios(asked.parts, asked.seconds, asked.only, quick=asked.quick), asked.rounds):
        rows.append(row)
        record.add(row.as_row())
    print(f"{record}; {record.result.faults} goals missed")
    if asked.plot:
        asked.plot.write_text(plot.picture([row for row in rows if isinstance(row, ScenarioFigure)], str(record)))
    return 1 if record.result.faults else 0


def scenarios(parts: Sequence[str], seconds: float, only: str = "", *, quick: bool = False) -> list[Scenario]:
    """Return the scenarios of the parts, or of all parts, whose name contains `only`; each name once."""
    seconds = 1.0 if quick else seconds
    every = [scenario for part in parts or PARTS for scenario in PARTS[part](seconds, quick)]
    chosen = {scenario.name: scenario for scenario in reversed(every) if only in scenario.name}
    return list(reversed(chosen.values()))


if __name__ == "__main__":
    sys.exit(main())
