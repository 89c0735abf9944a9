"""Numbers in a file's fields: in range, or an error that names the field."""

from collections.abc import Mapping
from typing import Final

from vgpu.domain.errors import MalformedModel
from vgpu.workloads.estimate.plan import MAX_WIDTH

MAX_ELEMENTS: Final = 10**14  # parameters of a model, or elements of a tensor
MAX_COUNT: Final = 10_000  # layers, heads, experts

Fields = Mapping[str, object]


def whole(fields: Fields, name: str, highest: int = MAX_WIDTH, *, default: int | None = None, least: int = 1) -> int:
    """Return a whole number of a field. Raises MalformedModel."""
    value = fields.get(name)
    if value is None:
        value = default
    if value is None:
        raise MalformedModel(f"{name}: missing")
    if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= highest:
        raise MalformedModel(f"{name}: {_short(value)} is not a whole number from {least} to {highest}")
    return value


def text(fields: Fields, name: str, default: str | None = None) -> str:
    """Return the text of a field. Raises MalformedModel."""
    value = fields.get(name, default)
    if not isinstance(value, str):
        raise MalformedModel(f"{name}: missing" if value is None else f"{name}: {_short(value)} is not a text")
    return value


def flag(fields: Fields, name: str, *, default: bool) -> bool:
    """Return the boolean of a field. Raises MalformedModel."""
    value = fields.get(name, default)
    if not isinstance(value, bool):
        raise MalformedModel(f"{name}: {_short(value)} is not true or false")
    return value


def wholes(fields: Fields, name: str, most: int) -> list[int]:
    """Return a list of whole numbers. Raises MalformedModel."""
    value = fields.get(name)
    if not isinstance(value, list) or not 1 <= len(value) <= most:
        raise MalformedModel(f"{name}: not a list of 1 to {most} numbers")
    return [whole({f"{name}[{index}]": number}, f"{name}[{index}]") for index, number in enumerate(value)]


def _short(value: object) -> str:
    shown = repr(value)
    return shown if len(shown) <= 40 else f"{shown[:40]}..."  # noqa: PLR2004 - characters
