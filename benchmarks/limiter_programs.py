"""Real programs beside each other on a GPU: decoding, serving, training, in PyTorch and JAX, and loads in C.

    python -m benchmarks.limiter_programs [PART ...] --rounds 3 --seconds 8 --json FILE --only TEXT

decode: eager and graph decoding, and requests at random moments, beside training; training: two trainers, and one with
data loading; jax: JAX beside PyTorch; loads: short requests beside a burner, kernels of 0.7 s beside short ones, and
a graph that launches itself beside copies (skipped without nvcc).
Each pair is measured alone, natively and with shares in the same command. The parts take less than 8 minutes each, and
are separate commands. Exits with 1 when a goal is missed.
"""

import argparse
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import limiter
from benchmarks.applications import loads, pairs
from benchmarks.applications.pairs import Pair
from benchmarks.compute import scenario
from benchmarks.compute.scenario import Failure, ScenarioFigure, SkippedError
from benchmarks.record import recorder
from benchmarks.record.recorder import ResultRecorder

SOURCES = (*recorder.COMPUTE_SOURCES, "benchmarks/applications")
PAIRS: dict[str, tuple[Pair, ...]] = {"decode": pairs.DECODE, "training": pairs.TRAINING, "jax": pairs.JAX}
Rows = Iterator[ScenarioFigure | Failure]


def main() -> int:
    """Run the parts, print a line for each figure, and return 1 when a goal was missed."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("parts", nargs="*", metavar="part", help=f"of {', '.join(parts())}; all by default")
    parser.add_argument("--only", default="", help="only pairs whose name contains this text")
    parser.add_argument("--seconds", type=float, default=8.0, help="of each measurement, after 1.5 s of warm-up")
    parser.add_argument("--rounds", type=int, default=1, help="with the limiter; published figures have 3")
    parser.add_argument("--json", type=Path, help=recorder.JSON_HELP)
    asked = parser.parse_args()
    if unknown := set(asked.parts) - set(parts()):
        parser.error(f"no such part: {', '.join(sorted(unknown))}")
    limiter.arbiter_path()  # raises at once when it is not built
    record = ResultRecorder(asked.json, "limiter_programs", SOURCES)
    print(scenario.HEAD, flush=True)
    for part in asked.parts or parts():
        for row in parts()[part](asked.only, asked.seconds, asked.rounds):
            record.add(row.as_row())
    print(f"{record}; {record.result.faults} goals missed")
    return 1 if record.result.faults else 0


def parts() -> dict[str, Callable[[str, float, int], Rows]]:
    """Return the parts of the command line, in the order in which they run."""
    every: dict[str, Callable[[str, float, int], Rows]] = {
        name: lambda only, seconds, rounds, name=name: of_pairs(name, only, seconds, rounds)  # type: ignore[misc]
        for name in PAIRS
    }
    return every | {"loads": of_loads}


def of_pairs(part: str, only: str, seconds: float, rounds: int) -> Rows:
    """Measure and print the pairs of a part. A part that cannot run here is printed with its reason."""
    chosen = [pair for pair in PAIRS[part] if only in pair.name]
    try:
        for row in pairs.measure(part, chosen, seconds, rounds):
            print(row.line(), flush=True)
            yield row
    except SkippedError as reason:
        print(f"| {part} | | skipped: {reason} |" + " |" * 7, flush=True)
    except (RuntimeError, OSError) as error:
        print(f"| {part} | | FAILED: {error} |" + " |" * 7, flush=True)
        yield Failure(part, "", str(error))


def of_loads(only: str, seconds: float, rounds: int) -> Rows:
    """Measure and print the pairs of C loads."""
    return scenario.table([pair for pair in loads.scenarios(seconds) if only in pair.name], rounds, has_head=False)


if __name__ == "__main__":
    sys.exit(main())
