"""Reads the JSON that benchmarks wrote before results had a version: the baseline of a regression session.

`benchmarks.limiter_memory` wrote lists `leaks` and `costs`, and `benchmarks.limiter_compute` a list `rows`.
"""

import statistics
from collections.abc import Iterator, Mapping
from typing import Any

from benchmarks.comparison import Cost
from benchmarks.record import result
from benchmarks.record.result import ResultError, ResultRow


def rows(document: Any) -> list[ResultRow]:
    """Return the rows of such a document, with the ids of today. Raises ResultError."""
    try:
        return [*_leaks(document), *_costs(document), *map(_compute, document.get("rows", []))]
    except (KeyError, TypeError, AttributeError, ValueError) as error:
        raise ResultError(f"it is neither a result nor the JSON of an older benchmark: {error!r}") from error


def _leaks(document: Mapping[str, Any]) -> Iterator[ResultRow]:
    for leak in document.get("leaks", []):
        yield _faulty(result.slug("leaks", leak["name"]), leak["faults"])
    if "leaks" in document:
        yield _faulty("leaks", [leak["name"] for leak in document["leaks"] if leak["faults"]])


def _faulty(row_id: str, faults: list[str]) -> ResultRow:
    return ResultRow(id=row_id, value=len(faults), unit="faults", fault="; ".join(faults))


def _costs(document: Mapping[str, Any]) -> Iterator[ResultRow]:
    for part in ("costs", "twins", "crowds"):
        for figure in document.get(part, []):
            yield Cost(**figure).as_row(part)


def _compute(figure: Mapping[str, Any]) -> ResultRow:
    if "figure" not in figure:  # the scenario failed
        return ResultRow(id=result.slug(figure["part"], figure["name"]), value=None, unit="", fault=figure["fault"])
    value = statistics.median(figure["rounds"])
    row_id = result.slug(figure["part"], figure["name"], figure["figure"])
    return ResultRow(id=row_id, value=value, unit="", native=figure["native"], fault=figure["fault"])
