"""Crowds of programs on a GPU: small models, decoders, prefill and training beside each other, in PyTorch.

    python -m benchmarks.limiter_crowds [PART ...] --rounds 3 --seconds 8 --json FILE --only TEXT --explain

closed: 2 to 16 small models, one request after the other; open: small models with requests at random moments;
decoders: two decoders, decoding beside prefill and beside training; fixed: small models that use less than half of a
fixed share; space: groups in space, beside MPS without us. Each crowd is measured natively and with shares in the same
command, and its programs alone.
Exits with 1 when a goal is missed.
"""

import argparse
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final

import limiter
from benchmarks.applications import crowds, space_crowds
from benchmarks.applications.crowds import Crowd
from benchmarks.applications.space_crowds import SpaceCrowd
from benchmarks.compute import scenario
from benchmarks.compute.scenario import Failure, ScenarioFigure, SkippedError
from benchmarks.record import recorder
from benchmarks.record.recorder import ResultRecorder

SOURCES = (*recorder.COMPUTE_SOURCES, "benchmarks/applications")
PARTS: Final[Mapping[str, Sequence[Crowd | SpaceCrowd]]] = {**crowds.PARTS, "space": space_crowds.CROWDS}


def main() -> int:
    """Run the parts, print a line for each figure, and return 1 when a goal was missed."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("parts", nargs="*", metavar="part", help=f"of {', '.join(PARTS)}; all by default")
    parser.add_argument("--only", default="", help="only crowds whose name contains this text")
    parser.add_argument("--seconds", type=float, default=8.0, help="of each measurement, after 4 s of warm-up")
    parser.add_argument("--rounds", type=int, default=1, help="published figures have 3")
    parser.add_argument("--json", type=Path, help=recorder.JSON_HELP)
    parser.add_argument("--explain", action="store_true", help="of space: print where the time of each round went")
    asked = parser.parse_args()
    if unknown := set(asked.parts) - set(PARTS):
        parser.error(f"no such part: {', '.join(sorted(unknown))}")
    limiter.arbiter_path()  # raises at once when it is not built
    record = ResultRecorder(asked.json, "limiter_crowds", SOURCES)
    print(scenario.HEAD, flush=True)
    for part in asked.parts or PARTS:
        for crowd in PARTS[part]:
            if asked.only in crowd.name:
                for row in of_crowd(part, crowd, asked.seconds, asked.rounds, is_explained=asked.explain):
                    record.add(row.as_row())
    print(f"{record}; {record.result.faults} goals missed")
    return 1 if record.result.faults else 0


def of_crowd(
    part: str, crowd: Crowd | SpaceCrowd, seconds: float, rounds: int, *, is_explained: bool = False
) -> Iterator[ScenarioFigure | Failure]:
    """Measure and print one crowd. One that cannot run here is printed with its reason."""
    try:
        for row in _measure(part, crowd, seconds, rounds, is_explained=is_explained):
            print(row.line(), flush=True)
            yield row
    except SkippedError as reason:
        print(f"| {part} | {crowd.name} | skipped: {reason} |" + " |" * 7, flush=True)
    except (RuntimeError, OSError) as error:
        print(f"| {part} | {crowd.name} | FAILED: {error} |" + " |" * 7, flush=True)
        yield Failure(part, crowd.name, str(error))


def _measure(
    part: str, crowd: Crowd | SpaceCrowd, seconds: float, rounds: int, *, is_explained: bool
) -> Iterator[ScenarioFigure]:
    if isinstance(crowd, SpaceCrowd):
        return space_crowds.measure(part, crowd, seconds, rounds, is_explained=is_explained)
    return crowds.measure(part, crowd, seconds, rounds)


if __name__ == "__main__":
    sys.exit(main())
