"""Writes rows: as a table for people, and in the formats that programs read. Colour only on a terminal."""

import csv
import io
import json
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final

import yaml

from vgpu.domain import printable

Row = Mapping[str, Any]

GAP: Final = "   "  # between columns, as kubectl has it
NOTHING: Final = "-"
_FORMULA: Final = ("=", "+", "-", "@")  # how a spreadsheet's formula begins
_BOLD: Final = "\x1b[1m"
_RESET: Final = "\x1b[0m"
_COLOURS: Final = {
    "Running": "32", "Starting": "33", "Pending": "33", "Terminating": "33", "Ended": "2", "ok": "32",
    "warning": "33", "error": "31", "unhealthy": "31", "cordoned": "33", "unusable": "31", "fits": "32",
}  # fmt: skip


class Format(StrEnum):
    """How rows are written."""

    TABLE = "table"
    WIDE = "wide"
    JSON = "json"
    YAML = "yaml"
    CSV = "csv"
    NAME = "name"


class DocumentFormat(StrEnum):
    """How one object is written."""

    TABLE = "table"
    WIDE = "wide"
    JSON = "json"
    YAML = "yaml"


@dataclass(frozen=True, slots=True)
class TextColumn:
    """A column.

    Attributes:
        head: its title.
        text: the text of a row, for people.
        is_wide: whether only `-o wide` and CSV show it.
        is_number: whether it is right-aligned.
        raw: field and title of the plain number that CSV has instead of the text.
    """

    head: str
    text: Callable[[Row], str]
    is_wide: bool = False
    is_number: bool = False
    raw: tuple[str, str] | None = None


@dataclass(frozen=True, slots=True)
class OutputTable:
    """How rows of one kind are written; `name` is the text of `-o name`."""

    kind: str
    columns: Sequence[TextColumn]
    name: Callable[[Row], str]
    empty: str = "nothing found"


def rows_text(rows: Sequence[Row], table: OutputTable, form: Format, *, colour: bool = False, whole: Any = None) -> str:
    """Return rows as text, with the last newline. `whole` is what JSON and YAML show instead of the list."""
    match form:
        case Format.JSON:
            return json.dumps({"items": list(rows)} if whole is None else whole, indent=2) + "\n"
        case Format.YAML:
            document = {"items": [dict(row) for row in rows]} if whole is None else whole
            return yaml_text(document)
        case Format.NAME:
            return "".join(f"{table.kind}/{printable.line(table.name(row))}\n" for row in rows)
        case Format.CSV:
            return _csv(rows, table)
    chosen = [column for column in table.columns if form is Format.WIDE or not column.is_wide]
    cells = [[column.text(row) or NOTHING for column in chosen] for row in rows]
    return lines([column.head for column in chosen], cells, [c.is_number for c in chosen], colour=colour)


def document_text(document: Any, form: Format | DocumentFormat) -> str | None:
    """Return a document in a format of documents; None for a format of rows."""
    if form in (Format.JSON, DocumentFormat.JSON):
        return json.dumps(document, indent=2) + "\n"
    return yaml_text(document) if form in (Format.YAML, DocumentFormat.YAML) else None


def yaml_text(document: Any) -> str:
    """Return YAML, with escapes where the output cannot encode every character."""
    is_unicode = (sys.stdout.encoding or "").lower().startswith("utf")
    return str(yaml.safe_dump(document, sort_keys=False, allow_unicode=is_unicode))


def lines(
    heads: Sequence[str], cells: Sequence[Sequence[str]], numbers: Sequence[bool] = (), *, colour: bool = False
) -> str:
    """Return aligned columns; numbers are right-aligned. Nothing is cut: a pager can scroll."""
    cells = [[printable.line(cell) for cell in row] for row in cells]
    right = [*numbers, *[False] * (len(heads) - len(numbers))]
    widths = [max([len(head), *(len(row[n]) for row in cells)]) for n, head in enumerate(heads)]
    made = [_line(heads, widths, right)] if any(heads) else []
    if colour and made:
        made = [f"{_BOLD}{made[0]}{_RESET}"]
    made += [_coloured(_line(row, widths, right), row, colour=colour) for row in cells]
    return "".join(f"{line}\n" for line in made)


def shown(text: str) -> str:
    """Return a text without control characters, `-` where it is empty."""
    return printable.line(text) or NOTHING


def pairs(values: Iterable[tuple[str, str]]) -> str:
    """Return `Name:  value` lines, aligned."""
    listed = list(values)
    width = max((len(name) for name, _ in listed), default=0) + 1
    return "".join(f"{f'{name}:':<{width}}  {shown(value)}\n" for name, value in listed)


def coloured(text: str, word: str, *, colour: bool) -> str:
    """Return a text in the colour of a word such as `error`."""
    return f"\x1b[{_COLOURS[word]}m{text}{_RESET}" if colour and word in _COLOURS else text


def _line(cells: Sequence[str], widths: Sequence[int], right: Sequence[bool]) -> str:
    padded = [
        cell.rjust(width) if is_right else cell.ljust(width)
        for cell, width, is_right in zip(cells, widths, right, strict=True)
    ]
    return GAP.join(padded).rstrip()


def _coloured(line: str, row: Sequence[str], *, colour: bool) -> str:
    for cell in row:
        word = cell.partition(" (")[0]  # a status may have a reason
        if colour and word in _COLOURS:
            return line.replace(cell, coloured(cell, word, colour=True), 1)
    return line


def _csv(rows: Sequence[Row], table: OutputTable) -> str:
    made = io.StringIO()
    writer = csv.writer(made, lineterminator="\n")
    writer.writerow([column.raw[1] if column.raw else column.head for column in table.columns])
    writer.writerows([_cell(column, row) for column in table.columns] for row in rows)
    return made.getvalue()


def _cell(column: TextColumn, row: Row) -> str:
    """Return a cell of CSV, which no spreadsheet takes for a formula."""
    if column.raw is not None:
        value = row[column.raw[0]]
        return "" if value is None else str(value)
    cell = column.text(row)
    cell = shown(cell) if cell else ""
    return f"'{cell}" if cell.startswith(_FORMULA) else cell
