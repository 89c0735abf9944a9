"""Writes the result of a run while it goes on: a run that is killed leaves the rows measured before."""

import os
import sys
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Final

from benchmarks.record import fingerprint, machine, result
from benchmarks.record.result import Result, ResultRow

RESULTS = machine.ROOT / "benchmarks" / "results"
MEMORY_SOURCES = ("limiter/src", "benchmarks/memory", "benchmarks/programs")
COMPUTE_SOURCES = ("limiter/src", "limiter/arbiter", "benchmarks/compute", "benchmarks/programs")
ARBITER_SOURCES = ("limiter/arbiter", "limiter/src/common", "benchmarks/programs")
SCHEDULE_SOURCES = ("extender", "vgpu/placement")
HISTORY_SOURCES = ("extender/history",)


JSON_HELP = "write the figures into this file; by default into benchmarks/results, if measured in full on a real card"

_OF_OUTPUT: Final = ("--json", "--logs")


class ResultRecorder:
    """Collects the rows of one run and rewrites the file after each addition.

    Args:
        path: the file; None = a file in benchmarks/results, or no file when the run is not publishable.
        script: module below `benchmarks`.
        sources: folders on which the figures depend.
        arguments: of the script; by default those of the command line.
    """

    def __init__(
        self, path: Path | None, script: str, sources: Iterable[str], arguments: Sequence[str] | None = None
    ) -> None:
        self.result = Result(
            script=script,
            arguments=of_measurement(sys.argv[1:]) if arguments is None else tuple(arguments),
            machine=machine.read(),
            commit=machine.commit(),
            date=machine.now(),
            simulated=machine.is_simulated(),
            fingerprints=fingerprint.of_folders(machine.ROOT, sources),
        )
        self._path = path or (RESULTS / file_name(self.result) if self.result.is_publishable else None)
        if path:  # also when every part is skipped
            self._keep()

    def add(self, *rows: ResultRow) -> None:
        """Append rows."""
        self.replace(*self.result.rows, *rows)

    def replace(self, *rows: ResultRow) -> None:
        """Keep these rows instead of all before."""
        self.result = replace(self.result, rows=rows)
        self._keep()

    def __str__(self) -> str:
        found = self.result
        return f"{found.machine}{', simulated' * found.simulated}; commit {found.commit}; {found.date}"

    def _keep(self) -> None:
        if self._path:
            write(self._path, self.result)


def write(path: Path, found: Result) -> None:
    """Replace a file by a result, in one step; a device such as /dev/null is written to."""
    if path.exists() and not path.is_file():
        path.write_text(result.encode(found), encoding="utf-8")
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    fresh = path.with_suffix(f".new{os.getpid()}")
    fresh.write_text(result.encode(found), encoding="utf-8")
    fresh.rename(path)


def file_name(found: Result) -> str:
    """Return the path of a result below the folder of results: the script's folder; date, arguments and commit."""
    script, *names = (result.slug(name) for name in (found.script.replace(".", "_"), *found.arguments, found.commit))
    return f"{script}/{'-'.join([found.date[:10], *names])}.json"


def of_measurement(arguments: Sequence[str]) -> tuple[str, ...]:
    """Return the arguments on which figures depend: those without `--json FILE` and `--logs FOLDER`."""
    return tuple(
        argument
        for last, argument in zip(["", *arguments], arguments, strict=False)
        if argument not in _OF_OUTPUT and last not in _OF_OUTPUT
    )
