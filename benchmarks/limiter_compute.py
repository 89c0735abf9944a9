"""The shares of a card's time that containers get, compared with the shares they asked for, on a GPU.

    python -m benchmarks.limiter_compute [PART ...] --rounds 3 --json FILE --plot FILE --only TEXT --quick

curve: one container at each share; shapes: one container with each kind of load; torch: one container with PyTorch;
costs: a launch without a share; tenants: several containers; burst: two containers with policy burst; inference: short
work beside a burner; stall: the longest launch; arbiter: an arbiter that is killed, stopped or attacked; same: results
of PyTorch. Each figure is measured natively, which is the card's own time slicing, and in each round on a node with an
arbiter. With SIMGPU_STATE set it runs on the simulated GPU. Exits with 1 when a goal is missed.
"""

import argparse
import json
import os
import sys
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

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
from benchmarks.compute.load import Feeder
from benchmarks.compute.scenario import Failure, Row, Scenario, table
from benchmarks.container import native_env
from benchmarks.record import provenance
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
    parser.add_argument("--json", type=Path, help="write every figure into this file")
    parser.add_argument("--plot", type=Path, help="write a plot of the shares into this SVG file")
    parser.add_argument("--quick", action="store_true", help="shorter and fewer measurements, to see whether it runs")
    parser.add_argument("--commit", help="the commit, when the folder is not a git checkout")
    asked = parser.parse_args()
    if unknown := set(asked.parts) - set(PARTS):
        parser.error(f"no such part: {', '.join(sorted(unknown))}")
    limiter.arbiter_path()  # raises at once when it is not built
    rows = measure(asked)
    result = provenance.of_this_machine() | {"gpu": gpu(), "rows": [asdict(row) for row in rows]}
    result["commit"] = asked.commit or result["commit"]
    result["faults"] = sum(bool(row.fault) for row in rows)
    words = f"{result['gpu']}; {result['machine']}; commit {result['commit']}"
    print(f"{words}; {result['faults']} goals missed")
    write(asked, rows, result, words)
    return 1 if result["faults"] else 0


def measure(asked: argparse.Namespace) -> list[Row | Failure]:
    """Print and return the rows of the chosen scenarios."""
    seconds = 1.0 if asked.quick else asked.seconds
    every = [scenario for part in asked.parts or PARTS for scenario in PARTS[part](seconds, asked.quick)]
    chosen = {scenario.name: scenario for scenario in reversed(every) if asked.only in scenario.name}  # once each
    return list(table(list(reversed(chosen.values())), asked.rounds))


def write(asked: argparse.Namespace, rows: list[Row | Failure], result: dict[str, Any], words: str) -> None:
    """Write the files named on the command line."""
    if asked.json:
        asked.json.write_text(json.dumps(result, indent=1))
    if asked.plot:
        asked.plot.write_text(plot.picture([row for row in rows if isinstance(row, Row)], words))


def gpu() -> str:
    """Return the card's name, and "simulated" behind it when it is."""
    feeder = Feeder(single_container.HALF_MS, 1, native_env())
    name = str(feeder.await_start()["gpu"])
    feeder.end()
    return f"{name}, simulated" if "SIMGPU_STATE" in os.environ else name


if __name__ == "__main__":
    sys.exit(main())
