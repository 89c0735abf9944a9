"""The weights of the policy `fragmentation`, from a settings file in TOML. What the file does not name has its default.

[fragmentation]
tolerance = 30     # thousandths of a card
left = 50          # thousandths of a card
scarcity = 1.5
covered = 95       # percent
half-life = 4000   # pods
refresh = 64       # questions
"""

import math
from collections.abc import Mapping
from dataclasses import asdict, fields
from pathlib import Path
from typing import Any, Final

from extender import toml_file
from vgpu.errors import UnusableSetting
from vgpu.placement.weights import BOUNDS, DEFAULTS, Weights

TABLE: Final = "fragmentation"
NAMES: Final = {each.name.replace("_", "-"): each.name for each in fields(Weights)}


def read(path: Path | None) -> Weights:
    """Read the file; without a file return the defaults.

    Raises:
        UnusableSetting: the file cannot be read; the message names the field.
    """
    return DEFAULTS if path is None else _weights(path, toml_file.load(path))


def effective(weights: Weights) -> str:
    """Return all weights in the words of the file, on one line."""
    found = asdict(weights)
    return ", ".join(f"{name} = {found[field]}" for name, field in NAMES.items())


def _weights(path: Path, found: Mapping[str, Any]) -> Weights:
    table = found.get(TABLE, {})
    if not isinstance(table, dict):
        raise UnusableSetting(f"{path}: {TABLE}: must be a table")
    unknown = [*(found.keys() - {TABLE}), *(f"{TABLE}.{name}" for name in table.keys() - NAMES.keys())]
    if unknown:
        raise UnusableSetting(f"{path}: {min(unknown)[:100]!r}: unknown; {TABLE} has {', '.join(NAMES)}")
    return Weights(**{NAMES[name]: _number(path, name, value) for name, value in table.items()})


def _number(path: Path, name: str, value: object) -> Any:
    lowest, highest = BOUNDS[NAMES[name]]
    kinds = int | float if name == "scarcity" else int
    if isinstance(value, bool) or not isinstance(value, kinds) or math.isnan(value) or not lowest <= value <= highest:
        kind = "number" if name == "scarcity" else "whole number"
        raise UnusableSetting(f"{path}: {TABLE}.{name}: must be a {kind} from {lowest} to {highest}")
    return value
