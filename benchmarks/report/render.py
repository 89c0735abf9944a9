"""Writes tables in Markdown from the newest results, with their origin and marks at figures of changed code."""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from benchmarks.record.result import Result, ResultRow
from benchmarks.report.tables.report_table import Line, ReportTable

NOT_MEASURED = "not measured"
MARK = "†"


@dataclass(frozen=True, slots=True)
class Figure:
    """A row, the run that measured it, and the source folders whose code has changed since."""

    row: ResultRow
    run: Result
    changed: tuple[str, ...] = ()

    @property
    def origin(self) -> str:
        """Return when, where and at which commit it was measured."""
        simulated = ", simulated" * self.run.simulated
        return f"{self.run.date[:10]}, commit {self.run.commit}, {self.run.machine}{simulated}"


Figures = Mapping[str, Figure]


def newest(results: Iterable[Result], today: Mapping[str, str]) -> Figures:
    """Return the newest figure of each row id. `today`: the fingerprints of the tree as it is now."""
    figures: dict[str, Figure] = {}
    for run in sorted(results, key=lambda run: run.date):
        changed = tuple(folder for folder, digest in run.fingerprints.items() if today.get(folder) != digest)
        figures |= {row.id: Figure(row, run, changed) for row in run.rows}
    return figures


def render(table: ReportTable, figures: Figures) -> str:
    """Return the table and the notes below it."""
    found = [[figures[row_id] for row_id in line.ids if row_id in figures] for line in table.lines]
    origins = list(dict.fromkeys(figure.origin for figures in found for figure in figures))
    heads = [table.head, *table.columns, *(["run"] if len(origins) > 1 else [])]
    lines = [_joined(heads), "|---" * len(heads) + "|"]
    lines += [_joined(_cells(line, table, figures, origins)) for line in table.lines]
    changed = sorted({folder for figures in found for figure in figures for folder in figure.changed})
    return "\n".join([*lines, "", *_notes(origins, changed)]).rstrip()


def _joined(cells: Iterable[str]) -> str:
    return "|" + "".join(f" {cell} |" if cell else " |" for cell in cells)


def _shown(line: Line, table: ReportTable, figures: Figures) -> list[Figure | None]:
    """Return the figures of a line; None for one that is not measured."""
    found = [figures.get(row_id) for row_id in line.ids]
    known = [figure for figure in found if figure]
    return [max(known, key=_distance)] if table.largest_only and len(known) == len(found) else found


def _distance(figure: Figure) -> float:
    """Return how far a figure is from zero: a failure is the furthest."""
    return math.inf if figure.row.value is None else abs(figure.row.value)


def _cells(line: Line, table: ReportTable, figures: Figures, origins: Sequence[str]) -> list[str]:
    columns, found = table.columns, _shown(line, table, figures)
    known = [figure for figure in found if figure]
    label = f"{line.label} {MARK}" if any(figure.changed for figure in known) else line.label
    if not known:
        cells = [NOT_MEASURED, *[""] * (len(columns) - 1)]
    else:
        cells = [
            _together([cell(figure.row) if figure else NOT_MEASURED for figure in found]) for cell in columns.values()
        ]
    runs = sorted({origins.index(figure.origin) + 1 for figure in known})
    return [label, *cells, *([", ".join(map(str, runs))] if len(origins) > 1 else [])]


def _together(texts: Sequence[str]) -> str:
    """Return the texts of a cell, once when they are equal."""
    return texts[0] if len(set(texts)) == 1 else ", ".join(texts)


def _notes(origins: Sequence[str], changed: Sequence[str]) -> list[str]:
    if len(origins) == 1:
        notes = [f"Measured {origins[0]}."]
    else:
        notes = [f"Run {place}: {origin}.\n" for place, origin in enumerate(origins, 1)]
    if changed:
        notes.append(
            f"\n{MARK} Code on which the figure depends has changed since the measurement: {', '.join(changed)}."
        )
    return notes
