"""The weights of the policies, from a settings file in TOML. What the file does not name has its default.

[fragmentation]
tolerance = 10     # thousandths of a card
left = 20          # thousandths of a card
scarcity = 1.5
covered = 95       # percent
half-life = 4000   # pods
refresh = 64       # questions

[topology]
nvlink = 100
same-numa = 10
other-numa = 1
"""

import math
from collections.abc import Mapping
from dataclasses import asdict, fields
from pathlib import Path
from typing import Any, Final

from vgpu.adapters import toml_file
from vgpu.domain.cards import links
from vgpu.domain.errors import UnusableSetting
from vgpu.placement import weights
from vgpu.placement.weights import PolicyWeights

DEFAULTS: Final = PolicyWeights()
BOUNDS: Final = {"fragmentation": weights.BOUNDS, "topology": links.BOUNDS}  # by table and field
NUMBERS: Final = ("scarcity",)  # the others are whole


def read(path: Path | None) -> PolicyWeights:
    """Read the file; without a file return the defaults.

    Raises:
        UnusableSetting: the file cannot be read; the message names the field.
    """
    return DEFAULTS if path is None else _weights(path, toml_file.load(path))


def effective(chosen: PolicyWeights) -> str:
    """Return all weights in the words of the file, on one line: `TABLE: NAME = VALUE, ...; TABLE: ...`."""
    tables = asdict(chosen)
    return "; ".join(f"{table}: {_words(found)}" for table, found in tables.items())


def names(table: str) -> list[str]:
    """Return the names of a table's weights in the file."""
    return [name.replace("_", "-") for name in BOUNDS[table]]


def _words(found: Mapping[str, Any]) -> str:
    return ", ".join(f"{name.replace('_', '-')} = {value}" for name, value in found.items())


def _weights(path: Path, found: Mapping[str, Any]) -> PolicyWeights:
    unknown = found.keys() - BOUNDS.keys()
    if unknown:
        raise UnusableSetting(f"{path}: {min(unknown)[:100]!r}: unknown; there are {', '.join(BOUNDS)}")
    kinds = {field.name: type(getattr(DEFAULTS, field.name)) for field in fields(DEFAULTS)}
    return PolicyWeights(**{table: kinds[table](**_table(path, table, value)) for table, value in found.items()})


def _table(path: Path, table: str, found: object) -> dict[str, Any]:
    if not isinstance(found, dict):
        raise UnusableSetting(f"{path}: {table}: must be a table")
    unknown = found.keys() - names(table)
    if unknown:
        text = f"{table}.{min(unknown)}"[:100]
        raise UnusableSetting(f"{path}: {text!r}: unknown; {table} has {', '.join(names(table))}")
    return {name.replace("-", "_"): _number(path, table, name, value) for name, value in found.items()}


def _number(path: Path, table: str, name: str, value: object) -> Any:
    lowest, highest = BOUNDS[table][name.replace("-", "_")]
    kinds = int | float if name in NUMBERS else int
    if isinstance(value, bool) or not isinstance(value, kinds) or math.isnan(value) or not lowest <= value <= highest:
        kind = "number" if name in NUMBERS else "whole number"
        raise UnusableSetting(f"{path}: {table}.{name}: must be a {kind} from {lowest} to {highest}")
    return value
