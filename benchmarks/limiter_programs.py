"""Real programs beside each other on a GPU: decoding, serving, training, in PyTorch and JAX, and loads in C.

    python -m benchmarks.limiter_programs [PART ...] --rounds 3 --seconds 8 --json FILE --only TEXT

decode: eager and graph decoding, and requests at random moments, beside training; training: two trainers, and one with
data loading; jax: JAX beside PyTorch; loads: short requests beside a burner, kernels of 0.7 s beside short ones, and
a graph that launches itself beside copies (skipped without nvcc).
Each pair is measured alone, natively and with shares in the same command.
delays: an autotuner's timings behind kernels that wait for their host, alone and beside a neighbour, and spin flags;
overdraft: programs that gain by such kernels what they can, for 30 s each; these two take 4 minutes together.
compile: JAX, torch.compile, Triton and cuDNN compile and tune, once each, 7 minutes; `--only Triton` for one of them.
long: kernels of 0.1, 0.7 and 3 s beside short ones, at three pairs of shares, 24 minutes; `--only "of 0.7 s"` for a
part of them. endless: kernels that spin, and one that never ends, a minute. handover: its parts, a minute.
The other parts take less than 8 minutes each, and are separate commands. Exits with 1 when a goal is missed.
"""

import argparse
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import limiter
from benchmarks.applications import compiles, loads, long_loads, pairs
from benchmarks.applications.pairs import Pair
from benchmarks.compute import handover, scenario, waiting_kernels
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
    return every | {
        "loads": of_loads,
        "delays": of_delays,
        "compile": of_compile,
        "overdraft": of_overdrafts,
        "long": of_long,
        "endless": of_endless,
        "handover": of_handovers,
    }


def of_pairs(part: str, only: str, seconds: float, rounds: int) -> Rows:
    """Measure and print the pairs of a part. A part that cannot run here is printed with its reason."""
    chosen = [pair for pair in PAIRS[part] if only in pair.name]
    return printed(part, pairs.measure(part, chosen, seconds, rounds))


def printed(part: str, rows: Iterator[ScenarioFigure]) -> Rows:
    """Print and yield the rows of a part, which are measured meanwhile. One that fails is printed with its reason."""
    try:
        for row in rows:
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


def of_delays(only: str, _seconds: float, rounds: int) -> Rows:
    """Measure and print an autotuner's timings."""
    return scenario.table([one for one in waiting_kernels.timings() if only in one.name], rounds, has_head=False)


def of_compile(only: str, _seconds: float, _rounds: int) -> Rows:
    """Measure and print programs that compile and tune themselves."""
    for program in compiles.PROGRAMS:
        if only in program.name:
            yield from printed(f"{compiles.PART}: {program.name}", compiles.measure(program))


def of_long(only: str, _seconds: float, rounds: int) -> Rows:
    """Measure and print long kernels beside short ones."""
    return scenario.table([pair for pair in long_loads.long_kernels() if only in pair.name], rounds, has_head=False)


def of_endless(only: str, _seconds: float, rounds: int) -> Rows:
    """Measure and print kernels that spin, and one that never ends."""
    return scenario.table([one for one in long_loads.endless_kernels() if only in one.name], rounds, has_head=False)


def of_handovers(only: str, _seconds: float, rounds: int) -> Rows:
    """Measure and print the parts of a handover."""
    return scenario.table([one for one in handover.scenarios() if only in one.name], rounds, has_head=False)


def of_overdrafts(only: str, _seconds: float, rounds: int) -> Rows:
    """Measure and print programs that use their overdraft as much as they can."""
    return scenario.table([one for one in waiting_kernels.overdrafts() if only in one.name], rounds, has_head=False)


if __name__ == "__main__":
    sys.exit(main())
