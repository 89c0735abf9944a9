"""The JSONPath that printer columns of a CustomResourceDefinition need: `.status.summary.cards`."""

from collections.abc import Callable, Mapping
from typing import Any

from vgpu.domain.json_types import JsonObject


def compiled(path: str) -> Callable[[JsonObject], Any]:
    """Return a function that finds a path's value in an object; None where there is none, or the path has filters."""
    keys = path.removeprefix(".").split(".")

    def find(obj: JsonObject) -> Any:
        found: Any = obj
        for key in keys:
            found = found.get(key) if isinstance(found, Mapping) else None
        return found

    return find
