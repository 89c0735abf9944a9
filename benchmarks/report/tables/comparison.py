"""Our figures beside those of other products, which were measured by programs that are not in this repository."""

from collections.abc import Mapping
from typing import Final

from benchmarks.record.result import ResultRow, slug
from benchmarks.report.tables.report_table import COMPARISONS, Cell, Line, ReportTable, number

# HAMi-core and MPS on an H100 80GB, driver 580, CUDA 13.0, 2026-11-20.
_ALONE: Final = {slug("curve", f"0.5 ms kernels at {cores} %", "share %"): cores for cores in (10, 30, 50, 80)}
_SHAPES: Final = tuple(
    slug("shapes", name, "share %") for name in ("23 ms kernels", "100 us kernels", "graphs of 1,000 kernels")
)
_TENANTS: Final = tuple(
    slug("tenants", "30 and 60", f"{place}: fixed {cores} %") for place, cores in enumerate((30, 60), 1)
)
_LEAKS: Final = "leaks"
_ASYNC: Final = slug("costs", "async 20 MiB")
_HAMI: Final = (
    dict(zip(_ALONE, ("23", "73", "82", "94"), strict=True))
    | dict(zip(_SHAPES, ("100", "67", "100"), strict=True))
    | dict.fromkeys(_TENANTS, "40")
    | {_LEAKS: "6 of 10", _ASYNC: "2.2"}
)
_MPS: Final = dict(zip(_ALONE, ("-", "30.3", "-", "-"), strict=True)) | dict(
    zip(_TENANTS, ("30.0", "58.9"), strict=True)
)
_DIGITS: Final = {"%": 1, "ratio": 3}  # by unit; a count has none


def _known(figures: Mapping[str, str]) -> Cell:
    return lambda row: figures.get(row.id, "")


def _ours(row: ResultRow) -> str:
    of = f" of {row.details['of']}" if "of" in row.details else ""
    return number(row.value, _DIGITS.get(row.unit, 0)) + of


COMPARISON: Final = ReportTable(
    "comparison",
    COMPARISONS,
    "asked for",
    {"HAMi-core": _known(_HAMI), "MPS": _known(_MPS), "vgpushare": _ours},
    (
        Line("10, 30, 50, 80 % alone, kernels of 0.5 ms", tuple(_ALONE)),
        Line("30 %: kernels of 23 ms; asynchronous launches; a CUDA graph", _SHAPES),
        Line("30 and 60 % on one card", _TENANTS),
        Line("ways to allocate that exceed the memory limit", (_LEAKS,)),
        Line("time of `cuMemAllocAsync`, over native", (_ASYNC,)),
    ),
)
