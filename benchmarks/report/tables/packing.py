"""How well the packing policies fill a cluster."""

from typing import Final

from benchmarks.placement import traces
from benchmarks.record.result import ResultRow
from benchmarks.report.tables.report_table import DETAILS, Cell, Line, ReportTable, median, number

PACKED: Final = ("fragmentation", "fgd", "binpack", "best-fit", "first-fit", "spread")


def rejected(row: ResultRow) -> str:
    """Return the percent of the offered load that was rejected."""
    return number(row.details["rejected"], 1)


def _packing(name: str, ids: str, columns: dict[str, Cell]) -> ReportTable:
    """Return a table with a line for each mix, and a figure for each policy in a cell; `ids` begins the rows' ids."""
    lines = tuple(Line(mix, tuple(f"{ids}{mix}.{policy}" for policy in PACKED)) for mix in traces.MIXES)
    return ReportTable(name, DETAILS, "mix", columns, lines)


_ALLOCATED: Final[dict[str, Cell]] = {", ".join(PACKED): median(2)}
_STEADY: Final[dict[str, Cell]] = {f"allocated: {', '.join(PACKED)}": median(2), "rejected": rejected}
PACKING: Final = _packing("packing", "fill.", _ALLOCATED)
PACKING_STEADY: Final = _packing("packing-steady", "steady-95.", _STEADY)
PACKING_VERBS: Final = _packing("packing-verbs", "fill.verbs-", _ALLOCATED)
PACKING_VERBS_STEADY: Final = _packing("packing-verbs-steady", "steady-95.verbs-", _STEADY)
