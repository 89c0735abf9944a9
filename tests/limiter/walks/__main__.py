"""`python -m tests.limiter.walks --minutes 120 --seed 1`: random programs with and without the library, for that time.

Prints a line for each program that behaves otherwise under the library, with the command that runs it again, and ends
with exit code 1 if there was any. `--only` runs one seed. Needs gcc and about 200 MiB of shared memory.
"""

import argparse
import sys
import tempfile
import time
from itertools import count
from pathlib import Path

from limiter import build
from simgpu import build as simgpu_build
from tests.limiter.walks.plan import plan
from tests.limiter.walks.programs import Build
from tests.limiter.walks.trial import faults_of

_MOST_LINES = 60


def main() -> int:
    """Run the programs of the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=1)
    parser.add_argument("--seed", type=int, default=1, help="of the first program; the next ones count up")
    parser.add_argument("--only", type=int, help="run the program of this seed, and no other")
    parser.add_argument("--build", type=Build, choices=tuple(Build), help="instead of the one that a seed chooses")
    parser.add_argument("--until-fault", action="store_true", help="end at the first program that fails")
    asked = parser.parse_args()
    build.ensure()
    simgpu_build.ensure()
    with tempfile.TemporaryDirectory() as programs:
        return _run(asked, Path(programs))


def _run(asked: argparse.Namespace, programs: Path) -> int:
    end = time.monotonic() + asked.minutes * 60
    failed, calls = [], 0
    for number, seed in enumerate(count(asked.seed) if asked.only is None else [asked.only], 1):
        chosen = plan(seed, asked.build)
        found, made = faults_of(chosen, programs)
        calls += made
        if found:
            failed.append(seed)
            _report(seed, asked.build, found)
            _say(str(chosen))
        if number % 20 == 0 or asked.only is not None:
            _say(f"{number} programs, {calls} calls under the library, {len(failed)} failed")
        if time.monotonic() > end or (failed and asked.until_fault):
            break
    _say(f"ended: {number} programs, {calls} calls under the library, failed: {failed}")
    return bool(failed)


def _report(seed: int, build_asked: Build | None, found: list[str]) -> None:
    again = f"python -m tests.limiter.walks --only {seed}" + (f" --build {build_asked}" if build_asked else "")
    _say(f"seed {seed} failed; run it again: {again}")
    for line in found[:_MOST_LINES]:
        _say(f"  {line}")


def _say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
