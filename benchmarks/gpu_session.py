"""Runs a list of steps on a GPU machine, each with a time limit, and prints a table of their outcomes.

    python3 -m benchmarks.gpu_session LIST --out DIR [--seconds N] [--quick] [STEP ...]
    python3 -m benchmarks.gpu_session regression --out DIR --baseline DIR [--baseline-commit HASH] [STEP ...]

LIST is one of `benchmarks.gpu_steps.LISTS`. Without STEP, all steps of the list run but those on demand. In DIR,
`session.txt` has the output of all steps and the table, and `session.json` the table and the steps' own figures; it is
written after each step. `benchmarks.record.unpack` turns it into files of benchmarks/results, and
`benchmarks.report.regression` compares the two checkouts of the list `regression`. VGPU_COMMIT names the commit when
the folder has no git. Exits with 1 when a step found a fault or did not end.

A step is a process group, which is killed as a whole at its limit. Before a step the card's memory of the steps before
must be free, or a timeout is over. When the seconds are over, no more steps are started.
"""

import argparse
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Self, TextIO

from benchmarks.gpu_steps import LISTS, SessionStep, in_baseline
from benchmarks.record import machine

LEAST_S = 10  # a step is not started with less time
END_S = 20  # a killed process on a GPU needs time to end; after that it is ignored
SIGKILLED = -signal.SIGKILL
NOT_BEGUN = "not begun"


@dataclass(frozen=True, slots=True)
class StepOutcome:
    """The outcome of a step: a word, its seconds, the last line of its output, and its figures, if it wrote any."""

    name: str
    verdict: str
    seconds: float = 0.0
    last: str = ""
    figures: Any = None

    @property
    def is_good(self) -> bool:
        """Whether it ran to its end without a fault."""
        return self.verdict == "good"


class StepSession:
    """Runs steps, and writes their output and outcomes into a folder."""

    def __init__(self, out: Path, seconds: float, await_free_memory: Callable[[], None]) -> None:
        out.mkdir(parents=True, exist_ok=True)
        self._out = out
        self._ends = time.monotonic() + seconds
        self._await_free_memory = await_free_memory
        self._log = (out / "session.txt").open("a", encoding="utf-8")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._log.close()

    def run(self, steps: Sequence[SessionStep]) -> list[StepOutcome]:
        """Run the steps and return the outcome of each."""
        results = [StepOutcome(step.name, NOT_BEGUN) for step in steps]
        for place, step in enumerate(steps):
            left = self._ends - time.monotonic()
            if left < min(LEAST_S, step.limit_s):
                break
            results[place] = self._step(replace(step, limit_s=min(step.limit_s, left)))
            self._await_free_memory()
            self._keep(results)
        self._keep(results)
        self.say("\n" + table(results))
        return results

    def say(self, text: str) -> None:
        """Print a text and append it to the log."""
        print(text, flush=True)
        self._log.write(f"{text}\n")
        self._log.flush()

    def _step(self, step: SessionStep) -> StepOutcome:
        figures = self._out / "figures.json"
        figures.unlink(missing_ok=True)
        self.say(f"\n=== {step.name}, {step.limit_s:.0f} s at most ===")
        begun, start = time.monotonic(), self._log.tell()
        code = execute([*step.command, *(("--json", str(figures)) if step.has_figures else ())], step, self._log)
        output = _read(self._out / "session.txt", start)
        sys.stdout.write(output)
        result = StepOutcome(
            step.name,
            _verdict(code),
            round(time.monotonic() - begun, 1),
            _last_line(output),
            _load(figures, step.commit),
        )
        figures.unlink(missing_ok=True)
        self.say(f"=== {result.name}: {result.verdict}, {result.seconds} s ===")
        return result

    def _keep(self, results: Sequence[StepOutcome]) -> None:
        fresh = self._out / "session.new"
        outcomes = {"commit": machine.commit(), "date": machine.now(), "steps": [asdict(result) for result in results]}
        fresh.write_text(json.dumps(outcomes, indent=1))
        fresh.rename(self._out / "session.json")


def execute(command: Sequence[str], step: SessionStep, log: TextIO) -> int | None:
    """Run a command in a new process group and return its exit code; None when there is no such program.

    It runs in the folder of the step. The group is killed at the limit, and after the command's end.
    """
    env = {**os.environ, **step.env, "PYTHONUNBUFFERED": "1"}
    try:
        process = subprocess.Popen(
            command,
            cwd=step.folder or machine.ROOT,
            env=env,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,
        )
    except OSError as error:
        log.write(f"{error}\n")
        log.flush()
        return None
    try:
        return process.wait(step.limit_s)
    except subprocess.TimeoutExpired:
        return SIGKILLED
    finally:
        _kill_group(process)


def _kill_group(process: subprocess.Popen[bytes]) -> None:
    try:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait(END_S)
    except (ProcessLookupError, subprocess.TimeoutExpired):
        return


def _verdict(code: int | None) -> str:
    if code is None:
        return "cannot be run"
    words = {0: "good", 1: "WRONG", SIGKILLED: "KILLED at its limit"}
    return words.get(code, f"ENDED with {code}")


def _read(path: Path, start: int) -> str:
    with path.open("rb") as file:
        file.seek(start)
        return file.read().decode(errors="replace")


def _last_line(output: str) -> str:
    return (output.strip().splitlines() or [""])[-1][:100]


def _load(path: Path, commit: str) -> Any:
    """Return the figures. A commit replaces theirs, because an older benchmark without git does not know its commit."""
    try:
        figures = json.loads(path.read_text())
    except (OSError, ValueError):
        return None
    return figures | {"commit": commit} if commit and isinstance(figures, dict) else figures


def table(results: Sequence[StepOutcome]) -> str:
    """Return a line for each step, and how many are good."""
    rows = [
        f"{result.name:16} {result.verdict:20} {result.seconds:6.1f} s  {result.last}".rstrip() for result in results
    ]
    return "\n".join([*rows, f"{sum(result.is_good for result in results)} of {len(results)} steps are good"])


def free_memory_wait() -> Callable[[], None]:
    """Return a function that waits until as much of the first card is free as now; without NVML it does nothing."""
    try:
        from benchmarks.memory.nvml_watcher import Watcher  # noqa: PLC0415 - needs NVML

        return Watcher().await_free_memory
    except Exception as error:  # noqa: BLE001 - the steps must run in any case
        print(f"no wait between steps, because NVML cannot be read: {error}")
        return lambda: None


def choose(steps: Mapping[str, SessionStep], names: Sequence[str], *, quick: bool) -> list[SessionStep]:
    """Return the steps of those names, or all but those on demand. Raises KeyError."""
    chosen = [steps[name] for name in names] or [step for step in steps.values() if not step.on_demand]
    return [replace(step, command=(*step.command, *step.quick)) for step in chosen] if quick else chosen


def main() -> int:
    """Read the command line and run the steps."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("list", choices=LISTS)
    parser.add_argument("steps", nargs="*", metavar="step", help="of the list; all but those on demand by default")
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--seconds", type=float, default=570, help="after which no more steps are started")
    parser.add_argument("--quick", action="store_true", help="smaller numbers, to see whether the steps run")
    parser.add_argument("--baseline", type=Path, help="the other checkout of the list regression, with its own limiter")
    parser.add_argument("--baseline-commit", default="", help="its commit, when it has no git")
    asked = parser.parse_args()
    steps = {step.name: step for step in LISTS[asked.list]}
    if asked.baseline:
        steps = {name: in_baseline(step, asked.baseline, asked.baseline_commit) for name, step in steps.items()}
    if unknown := set(asked.steps) - set(steps):
        parser.error(f"no such step: {', '.join(sorted(unknown))}; {asked.list} has {', '.join(steps)}")
    chosen = choose(steps, asked.steps, quick=asked.quick)
    if any(step.is_baseline and not step.folder for step in chosen):
        parser.error("steps of a baseline need --baseline DIR")
    with StepSession(asked.out.resolve(), asked.seconds, free_memory_wait()) as session:
        results = session.run(chosen)
    return 0 if all(result.is_good for result in results) else 1


if __name__ == "__main__":
    sys.exit(main())
