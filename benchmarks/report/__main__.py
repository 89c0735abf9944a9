"""Rewrites the generated tables of README.md and benchmarks/README.md from benchmarks/results.

    python -m benchmarks.report [--check] [--simulated]

A table stands between the comments `<!-- table NAME -->` and `<!-- end of table NAME -->`. Results of simulated cards
and of --quick are left out, unless --simulated is given. With --check nothing is written: exits with 1 when a table is
not up to date.
Names the results that no table cites.
"""

import argparse
import re
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from benchmarks.record import fingerprint, machine, recorder, result
from benchmarks.record.result import Result, ResultError
from benchmarks.report import render
from benchmarks.report.render import Figures
from benchmarks.report.tables.every_table import TABLES
from benchmarks.report.tables.report_table import ReportTable

COMMAND = "python -m benchmarks.report"


def main() -> int:
    """Rewrite the documents, or check them."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--check", action="store_true", help="write nothing; fail when a table is not up to date")
    parser.add_argument("--simulated", action="store_true", help="use results of simulated cards and --quick too")
    parser.add_argument("--results", type=Path, default=recorder.RESULTS, help="the folder of the results")
    parser.add_argument("--documents", type=Path, default=machine.ROOT, help="the folder that has README.md")
    asked = parser.parse_args()
    results = {path: run for path, run in load(asked.results).items() if run.is_publishable or asked.simulated}
    folders = {folder for run in results.values() for folder in run.fingerprints}
    figures = render.newest(results.values(), fingerprint.of_folders(machine.ROOT, sorted(folders)))
    for file in uncited(results, figures):
        print(f"{file}: no table cites this result", file=sys.stderr)
    stale = [path for path in sorted({table.document for table in TABLES}) if not _update(asked, path, figures)]
    for path in stale:
        print(f"{path}: its tables are not up to date with benchmarks/results; run `{COMMAND}`", file=sys.stderr)
    return 1 if stale else 0


def load(folder: Path) -> dict[Path, Result]:
    """Return the results of a folder and of the folders in it. Raises ResultError, with the file's name."""
    return {path: _read(path) for path in sorted(folder.rglob("*.json"))}


def uncited(results: Mapping[Path, Result], figures: Figures) -> list[Path]:
    """Return the files of which no table shows a figure."""
    shown = [figures[row_id].run for table in TABLES for row_id in table.row_ids if row_id in figures]
    return [path for path, run in results.items() if not any(run is cited for cited in shown)]


def fill(document: str, tables: Sequence[ReportTable], figures: Figures) -> str:
    """Return the document with the tables between their markers. Raises ResultError without their markers."""
    for table in tables:
        begin, end = f"<!-- table {table.name} -->", f"<!-- end of table {table.name} -->"
        between = re.compile(f"{re.escape(begin)}.*?{re.escape(end)}", re.DOTALL)
        text = f"{begin}\n{render.render(table, figures)}\n{end}"
        if (count := len(between.findall(document))) != 1:
            raise ResultError(f"{table.document}: must have `{begin}` and `{end}` once, has them {count} times")
        document = between.sub(text.replace("\\", r"\\"), document)
    return document


def _update(asked: argparse.Namespace, name: str, figures: Figures) -> bool:
    """Rewrite a document; with --check return whether it is up to date."""
    path = asked.documents / name
    before = path.read_text(encoding="utf-8")
    after = fill(before, [table for table in TABLES if table.document == name], figures)
    if not asked.check:
        path.write_text(after, encoding="utf-8")
    return before == after or not asked.check


def _read(path: Path) -> Result:
    try:
        return result.decode(path.read_text(encoding="utf-8"))
    except (ResultError, ValueError) as error:
        raise ResultError(f"{path}: {error}") from error


if __name__ == "__main__":
    try:
        sys.exit(main())
    except ResultError as problem:
        sys.exit(str(problem))
