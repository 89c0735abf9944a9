"""Options that take a decimal number within a range. `nan` passes every range that is checked by comparisons."""

import math
from typing import Any

import typer


def option(*names: str, metavar: str, least: float, most: float | None = None, meaning: str) -> Any:
    """Return an option that takes a number from `least` to `most`; `meaning` is its help."""
    return typer.Option(*names, metavar=metavar, min=least, max=most, help=meaning, callback=_checked)


def _checked(value: float | None) -> float | None:
    if value is not None and not math.isfinite(value):
        raise typer.BadParameter(f"{value} is not a number")
    return value
