"""JSON of a bounded size and depth."""

import json
from typing import Final

from vgpu.domain.errors import MalformedModel
from vgpu.domain.formats.json_depth import shallow

_DEPTH: Final = 32


def read_object(data: bytes, what: str) -> dict[str, object]:
    """Return a JSON object; what lies deeper than 32 levels is null. Raises MalformedModel."""
    try:
        found = json.loads(shallow(data, _DEPTH))
    except (ValueError, RecursionError) as error:
        raise MalformedModel(f"{what}: not JSON: {error}") from error
    if not isinstance(found, dict):
        raise MalformedModel(f"{what}: not a JSON object")
    return found
