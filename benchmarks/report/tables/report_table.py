"""What a table is, and the cells that many tables have."""

from collections.abc import Callable
from dataclasses import dataclass

from benchmarks.record.result import ResultRow

HEADLINES, DETAILS = "README.md", "benchmarks/README.md"
OPERATIONS, COMPARISONS, GUIDES = "docs/operations.md", "docs/comparison.md", "docs/guide.md"

Cell = Callable[[ResultRow], str]


@dataclass(frozen=True, slots=True)
class Line:
    """A line of a table: a label, and the figures that stand together in each of its cells."""

    label: str
    ids: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ReportTable:
    """A table.

    Attributes:
        name: in the markers.
        document: the file that has the markers.
        head: the head of the first column.
        columns: the head of each further column, and what it shows of a row.
        lines: its lines.
        largest_only: of the figures of a line only the one furthest from zero is shown.
    """

    name: str
    document: str
    head: str
    columns: dict[str, Cell]
    lines: tuple[Line, ...]
    largest_only: bool = False

    @property
    def row_ids(self) -> tuple[str, ...]:
        """The ids of all rows that the table shows."""
        return tuple(row_id for line in self.lines for row_id in line.ids)


def number(value: float | None, digits: int) -> str:
    """Return a figure with that many digits behind the point; empty for None."""
    return "" if value is None else f"{value:.{digits}f}"


def median(digits: int) -> Cell:
    """Return the cell of the median: bold when its goal is missed, "failed" without a value, "3 of 32" for counts."""

    def cell(row: ResultRow) -> str:
        if row.value is None:
            return "**failed**"
        of = f" of {row.details['of']}" if "of" in row.details else ""
        text = number(row.value, digits if row.unit != "faults" else 0) + of
        return f"**{text}**" if row.fault else text

    return cell


def native(digits: int) -> Cell:
    """Return the cell of the native figure."""
    return lambda row: number(row.native, digits)


def worst(digits: int) -> Cell:
    """Return the cell of the worst round."""
    return lambda row: number(row.worst, digits)


def goal(row: ResultRow) -> str:
    """Return the goal."""
    return row.goal


def microseconds(name: str) -> Cell:
    """Return the cell of a time in the details, given in ns."""
    return lambda row: number(row.details[name] / 1000, 2)


def quartiles(row: ResultRow) -> str:
    """Return the quartiles of the rounds' ratios."""
    low, high = row.details["quartiles"]
    return f"{low:.3f} to {high:.3f}"
