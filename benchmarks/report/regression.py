"""Compares the two checkouts of regression sessions: `python -m benchmarks.report.regression SESSION.json ...`.

Prints a table with a line for each figure: baseline, now, and now divided by baseline. A figure that only one side has
is shown with an empty cell. The mark `!` is at a fault of now that the baseline does not have.
"""

import argparse
import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks.gpu_steps import BASELINE
from benchmarks.record import result
from benchmarks.record.result import ResultError, ResultRow
from benchmarks.report import baseline

Rows = Mapping[str, ResultRow]
HEAD = "| figure | native | baseline | now | now / baseline | goal | fault now |\n" + "|---" * 7 + "|"


def main() -> int:
    """Read the command line and print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("sessions", nargs="+", metavar="SESSION.json", type=Path)
    return compare(parser.parse_args().sessions)


def compare(sessions: Sequence[Path]) -> int:
    """Print the table of all sessions together; return 1 when a figure has a fault that its baseline does not have."""
    figures = [step for path in sessions for step in _steps(path)]
    before, now = (_side(figures, is_baseline=is_baseline) for is_baseline in (True, False))
    print("\n".join(table(before, now)))
    for name, document in figures:
        print(f"\n{name}: {_origin(document)}")
    return 1 if any(is_worse(before.get(row_id), row) for row_id, row in now.items()) else 0


def table(before: Rows, now: Rows) -> Iterator[str]:
    """Yield the lines of the table, in the order of now; figures of the baseline alone come last."""
    yield HEAD
    for row_id in {**now, **before}:
        yield _line(row_id, before.get(row_id), now.get(row_id))


def is_worse(before: ResultRow | None, now: ResultRow) -> bool:
    """Whether now has a fault, and the baseline has the figure without a fault."""
    return bool(now.fault) and before is not None and not before.fault


def rows_of(document: Any) -> list[ResultRow]:
    """Return the rows of a result, or of the JSON of an older benchmark. Raises ResultError."""
    if isinstance(document, dict) and "version" in document:
        return list(result.of_document(document).rows)
    return baseline.rows(document)


def _side(figures: Sequence[tuple[str, Any]], *, is_baseline: bool) -> Rows:
    documents = [document for name, document in figures if name.endswith(BASELINE) == is_baseline]
    return {row.id: row for document in documents for row in rows_of(document)}


def _steps(session: Path) -> Iterator[tuple[str, Any]]:
    for step in json.loads(session.read_text())["steps"]:
        if step["figures"]:
            yield step["name"], step["figures"]


def _line(row_id: str, before: ResultRow | None, now: ResultRow | None) -> str:
    cells = [_number(now.native if now else None), _number(_value(before)), _number(_value(now)), _ratio(before, now)]
    mark = "!" if now and is_worse(before, now) else ""
    words = f"{mark} {now.fault}".strip() if now else ""
    return "|" + "".join(f" {cell} |" if cell else " |" for cell in (row_id, *cells, now.goal if now else "", words))


def _value(row: ResultRow | None) -> float | None:
    return row.value if row else None


def _number(value: float | None) -> str:
    return "" if value is None else f"{value:.3f}".rstrip("0").rstrip(".")


def _ratio(before: ResultRow | None, now: ResultRow | None) -> str:
    if not before or not now or not before.value or now.value is None:
        return ""
    return f"{now.value / before.value:.3f}"


def _origin(document: Mapping[str, Any]) -> str:
    gpu = document.get("gpu") or document.get("machine", {}).get("gpu", "")
    return f"{gpu}, commit {document.get('commit')}, {document.get('date')}"


if __name__ == "__main__":
    try:
        sys.exit(main())
    except (ResultError, OSError, ValueError, KeyError) as problem:
        sys.exit(f"these files cannot be compared: {problem}")
