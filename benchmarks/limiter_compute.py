"""The share of a card's time that a container gets, beside the share that it asked for, on a GPU.

    python -m benchmarks.limiter_compute [curve|shapes|costs] ... --json FILE --quick

Kernels spin for a fixed time of the card's own clock, so what is got is told without the limiter: what they take
together over the time, natively and with a share, in one run. Ends with 1 where a share is further from what was asked
than the goal allows, or a launch without a share costs more.
"""

import argparse
import json
import os
import statistics
import sys
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from benchmarks import provenance
from benchmarks.compute.load import Container, Fed, Feeder, Load, feed
from benchmarks.limiter.worker import native_env

PARTS = ("curve", "shapes", "costs")
LAUNCH_GOAL = 1.03
STALL_MS = 20.0  # kernels of at most 1 ms, 10 % and more
SHORT_US = 1000
HALF_MS = Load("kernel", 500)
ASKED = (5, 10, 20, 30, 50, 80, 95)


@dataclass(frozen=True, slots=True)
class Case:
    """A load under a share, and how many points what it gets may be away from what it asks."""

    name: str
    load: Load
    cores: int = 30
    processes: int = 1
    points: float = 2.0
    long: bool = False
    paced: bool = False  # the load itself asks for less than the whole card


CURVE = tuple(Case(f"0.5 ms kernels at {cores} %", HALF_MS, cores, points=1.5) for cores in ASKED)
SHAPES = (
    Case("10 us kernels", Load("kernel", 10)),
    Case("100 us kernels", Load("kernel", 100)),
    Case("5 ms kernels", Load("kernel", 5000)),
    Case("23 ms kernels", Load("kernel", 23000)),
    Case("100 ms kernels", Load("kernel", 100000), long=True),
    Case("16 streams", Load("kernel", 500, 16)),
    Case("cooperative", Load("cooperative", 500)),
    Case("graphs of 1,000 kernels", Load("graph", 10000)),
    Case("per-thread stream", Load("thread", 500)),
    Case("each waited for", Load("sync", 500)),
    Case("8 processes", HALF_MS, processes=8),
    Case("at leisure, half of 60 %", Load("sync", 500, idle_us=1000), cores=60, paced=True),
)


@dataclass(frozen=True, slots=True)
class Row:
    """One line of the table: shares of the card's time, the limiter's own count of it, the longest launch."""

    name: str
    asked: float
    native: float
    got: float
    counted: float
    longest_ms: float
    fault: str


def main() -> int:
    """Run the parts asked for, print a table of each, and return 1 where a goal was missed."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("parts", nargs="*", metavar="part", help=f"of {', '.join(PARTS)}; all by default")
    parser.add_argument("--only", default="", help="only cases whose name holds this")
    parser.add_argument("--seconds", type=float, default=2.0, help="that each is measured for, after a first one")
    parser.add_argument("--json", type=Path, help="every figure, into this file")
    parser.add_argument("--quick", action="store_true", help="shorter, and fewer shares")
    parser.add_argument("--commit", help="where the tree is no checkout")
    asked = parser.parse_args()
    result = provenance.of_this_machine() | run(asked)
    result["commit"] = asked.commit or result["commit"]
    print(f"{result['gpu']}; {result['machine']}; commit {result['commit']}; {result['faults']} goals missed")
    if asked.json:
        asked.json.write_text(json.dumps(result, indent=1))
    return 1 if result["faults"] else 0


def run(asked: argparse.Namespace) -> dict[str, Any]:
    """Measure and print; return every figure, and how many goals were missed."""
    parts = asked.parts or PARTS
    seconds = 1.0 if asked.quick else asked.seconds
    curve = CURVE[1::3] if asked.quick else CURVE
    cases = [*(curve if "curve" in parts else ()), *(SHAPES if "shapes" in parts else ())]
    rows = list(table([case for case in cases if asked.only in case.name], seconds))
    ratio = launch_cost(10 if asked.quick else 60) if "costs" in parts else None
    faults = sum(bool(row.fault) for row in rows) + (ratio is not None and ratio > LAUNCH_GOAL)
    return {"gpu": gpu(), "rows": [asdict(row) for row in rows], "launch_ratio": ratio, "faults": faults}


def table(cases: Sequence[Case], seconds: float) -> Iterator[Row]:
    """Print and yield a line for each case as it is measured; each load is fed natively once."""
    print("| load | asked % | native % | got % | counted % | longest launch ms | fault |\n|" + "---|" * 7)
    natives: dict[Load, Fed] = {}
    for case in cases:
        span = max(seconds, 5.0) if case.long else seconds
        if case.load not in natives:
            natives[case.load] = feed(case.load, span, native_env())
        row = measure(case, natives[case.load], span)
        shares = " | ".join(f"{100 * share:.1f}" for share in (row.asked, row.native, row.got, row.counted))
        print(f"| {row.name} | {shares} | {row.longest_ms:.1f} | {row.fault or 'none'} |", flush=True)
        yield row


def measure(case: Case, native: Fed, seconds: float) -> Row:
    """Feed the card under the case's share."""
    with Container(case.cores) as container:
        fed = feed(case.load, seconds, container.env, case.processes)
        counted = container.gpu_seconds() / fed.seconds
    asked = native.share if case.paced else case.cores / 100
    fault = _fault(case, asked, native, fed)
    return Row(case.name, asked, native.share, fed.share, counted, fed.longest_ms, fault)


def _fault(case: Case, asked: float, native: Fed, fed: Fed) -> str:
    whole = 1.0 if case.paced else native.share
    off = abs(fed.share / whole - asked) * 100
    if off > case.points:
        return f"{off:.1f} points off"
    is_stall_bound = case.load.us <= SHORT_US and case.processes == 1 and case.cores > SHORT_US // 100
    return "stalls too long" if is_stall_bound and fed.longest_ms > STALL_MS else ""


def launch_cost(rounds: int) -> float:
    """Print what a launch costs the host with the limiter and without a share, over native; return the ratio."""
    load = Load("launch", 1)
    processors = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {min(processors)})  # both on the same one: they take turns
    with Container(None) as container:
        feeders = [Feeder(load, 1, env) for env in (native_env(), container.env)]
        turns = [[_launch_ns(feeder) for feeder in feeders] for _ in range(rounds + 1)][1:]
        for feeder in feeders:
            feeder.end()
    os.sched_setaffinity(0, processors)
    native, ours = (statistics.median(side) for side in zip(*turns, strict=True))
    print(f"a launch without a share: {native:.0f} ns natively, {ours:.0f} ns with us, ratio {ours / native:.3f}")
    return ours / native


def _launch_ns(feeder: Feeder) -> float:
    feeder.go()
    answer = feeder.answer()
    return float(answer["ns"] / answer["count"])


def gpu() -> str:
    """Return the card's name."""
    feeder = Feeder(HALF_MS, 1, native_env())
    feeder.end()
    return str(feeder.started["gpu"])


if __name__ == "__main__":
    sys.exit(main())
