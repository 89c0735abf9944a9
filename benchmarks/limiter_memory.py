"""The limiter's memory limit on a GPU: a leak table of every class of allocation, and the cost of each call.

    python -m benchmarks.limiter_memory [leaks|pairs|costs|twins|crowds] ... --json FILE --quick --space

leaks: each class of allocation under a limit; pairs: each ordered pair of classes; costs: each call, limited compared
with native; twins: the cost table with native on both sides, which shows the noise of a ratio; crowds: many programs
that start at the same time. With --space leaks run as members of a group in space, and their native figures below
MPS without us; unified memory must be refused there (ADR 174). Exits with 1 when a class exceeds the limit, is refused
below it, or cannot go on.
"""

import argparse
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks.comparison import Cost
from benchmarks.memory import costs, leaks, native_costs, pairs
from benchmarks.memory.native_costs import NativeCost
from benchmarks.memory.nvml_watcher import Watcher
from benchmarks.memory.trial import Findings
from benchmarks.memory.worker import MIB
from benchmarks.record import recorder, result
from benchmarks.record.recorder import ResultRecorder
from benchmarks.space import daemon

PARTS = ("leaks", "pairs", "costs", "twins", "crowds")
COSTS = {"costs": costs.measure, "twins": costs.measure_twins, "crowds": costs.measure_crowds}
QUICK_PAIRS = 4


def main() -> int:
    """Run the parts, print a table of each, and return 1 when there was a fault."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("parts", nargs="*", metavar="part", help=f"one of {', '.join(PARTS)}; all by default")
    parser.add_argument("--limit-mib", type=int, default=2048, help="the memory limit of leaks and pairs")
    parser.add_argument("--json", type=Path, help=recorder.JSON_HELP)
    parser.add_argument("--quick", action="store_true", help="fewer rounds and a few pairs, to see whether it runs")
    parser.add_argument("--space", action="store_true", help="leaks only, as members of a group in space")
    asked = parser.parse_args()
    if set(asked.parts) - set(PARTS):
        parser.error(f"parts are {', '.join(PARTS)}")
    parts = asked.parts or (("leaks",) if asked.space else PARTS)
    if asked.space and set(parts) != {"leaks"}:
        parser.error("--space is for leaks")
    record = ResultRecorder(asked.json, "limiter_memory", recorder.MEMORY_SOURCES)
    print(record, flush=True)
    if not set(parts) <= set(COSTS):
        with daemon.pipe_of_group(is_wanted=asked.space) as pipe, Watcher() as watcher:
            hold(watcher, parts, asked.limit_mib * MIB, record, quick=asked.quick, pipe=pipe)
    faults = record.result.faults
    for part in [part for part in COSTS if part in parts]:  # without the watcher, whose queries take the driver's locks
        cost_table(part, COSTS[part](quick=asked.quick), record)
    return 1 if faults else 0


def hold(
    watcher: Watcher,
    parts: Sequence[str],
    limit: int,
    record: ResultRecorder,
    *,
    quick: bool,
    pipe: Path | None = None,
) -> None:
    """Measure, print and record leaks and pairs; with the pipe directory of a daemon, leaks of members of its group."""
    start, natives = native_costs.measure(watcher, pipe)
    if "leaks" in parts:
        rows = leak_table(watcher, natives, limit, start, pipe)
        details = {"of": len(rows), "limit_mib": limit // MIB, "start_mib": start // MIB}
        every = [row.as_row() for row in rows]
        every.append(faulty("leaks", [row.name for row in rows if row.faults], details))
        record.add(*(result.in_space(row) if pipe else row for row in every))
    if "pairs" in parts:
        found = pair_table(watcher, natives, limit, start, quick=quick)
        wrong = [(a, b, fault) for a, second in found.items() for b, fault in second.items() if fault]
        record.add(faulty("pairs", wrong, {"of": len(found) ** 2, "limit_mib": limit // MIB}))


def faulty(row_id: str, wrong: Sequence[Any], details: Mapping[str, Any]) -> result.ResultRow:
    """Return the row that counts what has a fault, and names it."""
    words = "; ".join(map(str, wrong))[:1000]
    faults = {"faulty": list(wrong)}
    return result.ResultRow(
        id=row_id, value=len(wrong), unit="faults", goal="<= 0", fault=words, details={**details, **faults}
    )


def leak_table(
    watcher: Watcher, natives: Sequence[NativeCost], limit: int, start: int, pipe: Path | None = None
) -> list[Findings]:
    """Print a row for each class as soon as it is measured."""
    print(f"limit {limit // MIB} MiB; a started process costs {start // MIB} MiB natively; sizes in MiB")
    print("| class | a step costs | free at start | fits | left | stopped by | NVML peak | faults |\n|" + "---|" * 8)
    rows = []
    for native in natives:
        if not native.is_available:
            print(f"| {native.name} | | | | | | | {native.reason} |")
            continue
        rows.append(leaks.measure(watcher, native, limit, start, pipe))
        print(_line(native, rows[-1]), flush=True)
    print(f"{sum(not row.faults for row in rows)} of {len(rows)} classes without a fault\n")
    return rows


def _line(of: NativeCost, row: Findings) -> str:
    sizes = [size // MIB for size in (of.cost, row.start_free, row.fitted, row.left)]
    cells = [row.name, *sizes, row.refusal, row.peak // MIB, "; ".join(row.faults) or "none"]
    return f"| {' | '.join(map(str, cells))} |"


def pair_table(
    watcher: Watcher, natives: Sequence[NativeCost], limit: int, start: int, *, quick: bool
) -> dict[str, dict[str, str]]:
    """Print the pairs with faults, and how many have none."""
    names = pairs.pairable(natives)
    names = names[:QUICK_PAIRS] if quick else names
    found = {first: pairs.measure(watcher, first, names, limit, start) for first in names}
    wrong = [(a, b, fault) for a, second in found.items() for b, fault in second.items() if fault]
    for first, second, fault in wrong:
        print(f"{first}, then {second}: {fault}")
    print(f"{len(names) ** 2 - len(wrong)} of {len(names) ** 2} pairs without a fault\n")
    return found


def cost_table(part: str, found: Iterable[Cost], record: ResultRecorder) -> None:
    """Print and record each figure as soon as it is measured, with the quartiles of its rounds."""
    print("| call | native us | limited us | more us | ratio | rounds' middle half | goal | failed |\n|" + "---|" * 8)
    for cost in found:
        native, limited = cost.native_ns / 1000, cost.limited_ns / 1000
        times = f"{native:.2f} | {limited:.2f} | {limited - native:.2f} | {cost.ratio:.3f}"
        spread = f"{cost.middle[0]:.3f} to {cost.middle[1]:.3f}"
        failed = cost.failed if any(cost.failed) else ""
        print(f"| {cost.name} | {times} | {spread} | {cost.goal or ''} | {failed} |", flush=True)
        record.add(cost.as_row(part))


if __name__ == "__main__":
    sys.exit(main())
