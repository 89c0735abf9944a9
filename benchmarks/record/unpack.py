"""Writes results that were measured on a GPU machine into benchmarks/results.

    python -m benchmarks.record.unpack FILE ...

Each FILE is a `session.json` of `benchmarks.gpu_session`, or what a script wrote with `--json FILE`. Results of
simulated cards, of --quick and of a baseline are left out. Exits with 1 when the figures of a step are not a result.
"""

import argparse
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from benchmarks.gpu_steps import BASELINE
from benchmarks.record import recorder, result
from benchmarks.record.result import Result, ResultError


def main() -> int:
    """Write a file for each result, and print its path."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("sessions", nargs="+", metavar="FILE", type=Path)
    parser.add_argument("--into", type=Path, default=recorder.RESULTS, help="the folder; benchmarks/results by default")
    asked = parser.parse_args()
    return max([unpack(path, asked.into) for path in asked.sessions])


def unpack(session: Path, folder: Path) -> int:
    """Write the results of one session and print what is left out; return the exit code."""
    code = 0
    for name, figures in steps(session):
        try:
            found = result.of_document(figures)
        except ResultError as error:
            print(f"{session}: step {name}: {error}", file=sys.stderr)
            code = 1
            continue
        print(
            _write(folder, found) if found.is_publishable else f"{name}: left out, because it was simulated or --quick"
        )
    return code


def steps(session: Path) -> Iterator[tuple[str, Any]]:
    """Yield name and figures of each step with figures, without those of a baseline. Raises SystemExit."""
    try:
        document = json.loads(session.read_text())
        if "version" in document:  # one result
            return iter([(session.stem, document)])
        outcomes = document["steps"]
        found = [(str(outcome["name"]), outcome["figures"]) for outcome in outcomes]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise SystemExit(
            f"{session}: neither a session.json of benchmarks.gpu_session nor a result: {error!r}"
        ) from error
    return ((name, figures) for name, figures in found if figures and not name.endswith(BASELINE))


def _write(folder: Path, found: Result) -> Path:
    path = folder / recorder.file_name(found)
    recorder.write(path, found)
    return path


if __name__ == "__main__":
    sys.exit(main())
