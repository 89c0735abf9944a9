"""Whether `vgpu diagnose --live` names the defect of running programs first, and nothing of a healthy one.

    python -m benchmarks.live_diagnosis --gpu 0 --json FILE --only TEXT

Each program of `benchmarks/diagnose/programs.py` runs under `vgpu run`, and is diagnosed meanwhile. Programs with a
cure run a second time with it: how many times as fast they are then is compared with what the finding said.
"""

import argparse
import json
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.record import recorder
from benchmarks.record.recorder import ResultRecorder
from benchmarks.record.result import ResultRow, slug
from benchmarks.started_program import StartedProgram

VGPU = (sys.executable, "-m", "vgpu.cli")
MEASURED = ("--gpu-cores", "95")  # launches are counted
WATCH_S, LEAD_S, RUN_S, CURED_S = 5.0, 0.5, 9.0, 5.0
SOURCES = ("vgpu/workloads/diagnose", "benchmarks/diagnose", "limiter/src/compute", "limiter/src/region")


@dataclass(frozen=True, slots=True)
class DiagnosisCase:
    """A program, its limits, the code that is right, whether it has a cure, and the limits of a neighbour."""

    program: str
    code: str
    limits: Sequence[str] = ()
    has_cure: bool = False
    neighbour: Sequence[str] = ()
    name: str = ""

    @property
    def id(self) -> str:
        """The beginning of the rows' ids."""
        return slug(self.name or self.program)


CASES = (
    DiagnosisCase("gpt", ""),
    DiagnosisCase("gpt", "", MEASURED, name="gpt with a share"),
    DiagnosisCase("imagenet", "data-bound", MEASURED, has_cure=True),
    DiagnosisCase("files", "data-bound", MEASURED, has_cure=True),
    DiagnosisCase("word_language_model", "launch-bound", MEASURED, has_cure=True),
    DiagnosisCase("mnist", "sync-bound", MEASURED, has_cure=True),
    DiagnosisCase("copies", "memory-copy-bound", has_cure=True),
    DiagnosisCase("one_at_a_time", "one-kernel-at-a-time", has_cure=True),
    DiagnosisCase("checkpoints", "checkpoint-dips", MEASURED, has_cure=True),
    DiagnosisCase("power", "power-limit"),
    DiagnosisCase("sleeping", "idle"),
    DiagnosisCase("gpt", "share-used-up", ("--gpu-cores", "20"), name="gpt with 20 percent"),
    DiagnosisCase(
        "gpt",
        "waits-for-turns",
        ("--gpu-cores", "20", "--compute-policy", "burst"),
        neighbour=("--gpu-cores", "60"),
        name="gpt beside another",
    ),
)


def started(case: DiagnosisCase, gpu: int, seconds: float, *, cured: bool = False) -> StartedProgram:
    """Start a case's program under the limiter."""
    return StartedProgram(case.program, gpu, seconds, limited(case.limits), cured=cured)


def limited(limits: Sequence[str]) -> tuple[str, ...]:
    """Return the beginning of a command line that runs a program with these limits."""
    return (*VGPU, "run", "--gpu-mem", "60Gi", *limits, "--")


def diagnosed(program: str) -> list[dict[str, Any]]:
    """Diagnose a program that runs."""
    name = f"benchmarks.diagnose.programs {program}"
    command = [*VGPU, "diagnose", "--live", name, "--seconds", str(WATCH_S), "-o", "json"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    found = [json.loads(line) for line in done.stdout.splitlines()]
    if not found:
        raise RuntimeError(done.stderr[-500:])
    findings: list[dict[str, Any]] = found[0]["findings"]
    return findings


def code_row(case: DiagnosisCase, findings: Sequence[dict[str, Any]]) -> ResultRow:
    """Return whether the right code came first."""
    codes = [finding["code"] for finding in findings]
    is_right = codes[:1] == [case.code] if case.code else not codes
    details = {"found": " ".join(codes), "seen": "; ".join(finding["seen"] for finding in findings)[:900]}
    fault = "" if is_right else f"found {' '.join(codes) or 'nothing'}"
    goal = case.code or "none"
    return ResultRow(id=f"{case.id}.code", value=float(is_right), unit="right", goal=goal, fault=fault, details=details)


def cure_row(case: DiagnosisCase, factor: float, findings: Sequence[dict[str, Any]]) -> ResultRow:
    """Return how many times as fast the cured program is, beside what was said."""
    bound = findings[0]["at_most_times_as_fast"] if findings else None
    ratio = factor / bound if bound else 0.0
    fault = "" if 0.5 <= ratio <= 2 else f"{ratio:.2f} of what was said"  # noqa: PLR2004 - the goal
    return ResultRow(id=f"{case.id}.cured", value=factor, unit="times", native=bound, goal="a factor of 2", fault=fault)


def watched(case: DiagnosisCase, running: StartedProgram, gpu: int) -> list[dict[str, Any]]:
    """Let a program compute, beside its neighbour, and diagnose it."""
    with ExitStack() as stack:
        if case.neighbour:
            stack.enter_context(StartedProgram("power", gpu, 60, limited(case.neighbour))).begin()
        running.begin()
        time.sleep(LEAD_S)
        return diagnosed(case.program)


def measure(cases: Sequence[DiagnosisCase], gpu: int) -> Iterator[ResultRow]:
    """Yield the figures of each case. The next program starts, up to its first call of CUDA, while one runs."""
    runs = [(case, cured) for case in cases for cured in (False, True)[: 1 + case.has_cure]]
    starts = (started(case, gpu, CURED_S if cured else RUN_S, cured=cured) for case, cured in runs)
    following, rate, findings = next(starts, None), 0.0, list[dict[str, Any]]()
    for case, cured in runs:
        current, following = following, next(starts, None)
        assert current
        with current:
            if cured:
                current.begin()
                yield cure_row(case, current.end()[0] / rate, findings)
            else:
                findings = watched(case, current, gpu)
                rate, _ = current.end()
                yield code_row(case, findings)


def main() -> int:
    """Run the programs, print a line for each figure, and return 1 when a goal was missed."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--gpu", type=int, default=0)
    parser.add_argument("--only", default="", help="only programs whose name contains this text")
    parser.add_argument("--json", type=Path, help=recorder.JSON_HELP)
    asked = parser.parse_args()
    record = ResultRecorder(asked.json, "live_diagnosis", SOURCES)
    for row in measure([case for case in CASES if asked.only in case.id], asked.gpu):
        record.add(row)
        said = "" if row.native is None else f"said at most {row.native:.1f}"
        print(f"{row.id:28} {row.value or 0:6.2f} {row.unit:6} {row.goal:22} {said} {row.fault}", flush=True)
        if row.details:
            print(f"    {row.details['seen']}", flush=True)
    print(record, flush=True)
    return 1 if record.result.faults else 0


if __name__ == "__main__":
    sys.exit(main())
