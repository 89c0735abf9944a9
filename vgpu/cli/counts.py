"""Options that take a large whole number, as people write it: 7000000000, 7e9, 7b, 350M."""

import math
from typing import Any, Final

import typer

_UNITS: Final = {"k": 10**3, "m": 10**6, "b": 10**9, "t": 10**12}
_LONGEST: Final = 40


def option(*, metavar: str, most: float, meaning: str) -> Any:
    """Return an option that takes a whole number from 1 to `most`."""

    def parse(text: str) -> int:
        return count(text, most)

    return typer.Option(metavar=metavar, parser=parse, help=meaning)


def count(text: str, most: float) -> int:
    """Return the number that a text says. Raises typer.BadParameter, with the text."""
    unit = _UNITS.get(text[-1:].lower(), 1)
    try:
        number = float(text[:-1] if unit > 1 else text) * unit if len(text) <= _LONGEST else math.nan
    except ValueError:
        number = math.nan
    if not 1 <= number <= most:  # nan neither
        raise typer.BadParameter(f"{text[:_LONGEST]!r} is not a number from 1 to {most:g}, such as 7e9, 7b or 350m")
    return int(number)
