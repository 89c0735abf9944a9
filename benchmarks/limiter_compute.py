"""The shares of a card's time that containers get, beside the shares that they asked for, on a GPU.

    python -m benchmarks.limiter_compute [PART ...] --rounds 3 --json FILE --plot FILE --only TEXT --quick

The parts: curve and shapes, a container alone, and torch, PyTorch in it; costs, what a launch without a share costs;
tenants, several on one card; burst, two that may use what the other leaves; inference, short work beside a burner;
stall, the longest that a launch waits; arbiter, one that dies and is lied to; same, the results of PyTorch. Each figure
natively, which is the card's plain time slicing, and as often as there are rounds with us, on a node with an arbiter of
its own. With SIMGPU_STATE set it runs on the simulated driver. Ends with 1 where a goal is missed.
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
from benchmarks import provenance
from benchmarks.compute import (
    arbiter_faults,
    latency,
    launch_cost,
    plot,
    reproducibility,
    several_containers,
    single_container,
    torch_shapes,
)
from benchmarks.compute.goals import Failure, Row, Scenario, table
from benchmarks.compute.load import Feeder
from benchmarks.memory.worker import native_env

PARTS: dict[str, Callable[[float, bool], list[Scenario]]] = {
    "tenants": lambda seconds, quick: several_containers.tenants(seconds, quick=quick),
    "burst": lambda seconds, _quick: [*several_containers.halves(seconds), *latency.returns()],
    "inference": lambda seconds, _quick: latency.inference(seconds),
    "stall": lambda seconds, _quick: [*single_container.stalls(seconds), *several_containers.eight(seconds)],
    "arbiter": lambda seconds, _quick: arbiter_faults.trouble(seconds),
    "same": lambda _seconds, _quick: reproducibility.same(),
    "curve": lambda seconds, quick: single_container.curve(seconds, quick=quick),
    "shapes": lambda seconds, _quick: single_container.shapes(seconds),
    "torch": lambda seconds, _quick: torch_shapes.shapes(seconds),
    "costs": lambda _seconds, quick: launch_cost.costs(quick=quick),
}


def main() -> int:
    """Run the parts asked for, print a line for each figure, and return 1 where a goal was missed."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("parts", nargs="*", metavar="part", help=f"of {', '.join(PARTS)}; all by default")
    parser.add_argument("--only", default="", help="only scenarios whose name holds this")
    parser.add_argument("--seconds", type=float, default=2.0, help="that each is measured for, after a first one")
    parser.add_argument("--rounds", type=int, default=1, help="with us; the record takes 3")
    parser.add_argument("--json", type=Path, help="every figure, into this file")
    parser.add_argument("--plot", type=Path, help="what was got against what was asked, into this SVG file")
    parser.add_argument("--quick", action="store_true", help="shorter, and fewer shares")
    parser.add_argument("--commit", help="where the tree is no checkout")
    asked = parser.parse_args()
    if unknown := set(asked.parts) - set(PARTS):
        parser.error(f"no such part: {', '.join(sorted(unknown))}")
    limiter.arbiter_path()  # raises where it was not built: not in the middle of it all
    rows = measure(asked)
    result = provenance.of_this_machine() | {"gpu": gpu(), "rows": [asdict(row) for row in rows]}
    result["commit"] = asked.commit or result["commit"]
    result["faults"] = sum(bool(row.fault) for row in rows)
    words = f"{result['gpu']}; {result['machine']}; commit {result['commit']}"
    print(f"{words}; {result['faults']} goals missed")
    write(asked, rows, result, words)
    return 1 if result["faults"] else 0


def measure(asked: argparse.Namespace) -> list[Row | Failure]:
    """Print and return the rows."""
    seconds = 1.0 if asked.quick else asked.seconds
    every = [scenario for part in asked.parts or PARTS for scenario in PARTS[part](seconds, asked.quick)]
    chosen = {scenario.name: scenario for scenario in reversed(every) if asked.only in scenario.name}  # once each
    return list(table(list(reversed(chosen.values())), asked.rounds))


def write(asked: argparse.Namespace, rows: list[Row | Failure], result: dict[str, Any], words: str) -> None:
    """Write the files that were asked for."""
    if asked.json:
        asked.json.write_text(json.dumps(result, indent=1))
    if asked.plot:
        asked.plot.write_text(plot.picture([row for row in rows if isinstance(row, Row)], words))


def gpu() -> str:
    """Return the card's name, and that it is none where it is simulated."""
    feeder = Feeder(single_container.HALF_MS, 1, native_env())
    name = str(feeder.await_start()["gpu"])
    feeder.end()
    return f"{name}, simulated" if "SIMGPU_STATE" in os.environ else name


if __name__ == "__main__":
    sys.exit(main())
