"""JSON of any depth: what is nested deeper than a decoder can read is replaced by null."""

import json
from typing import Any

from vgpu.domain.formats.json_depth import shallow


def loads(data: bytes) -> Any:
    """Decode JSON; where it is too deep for the decoder, with null for what is nested deeper than 100 levels."""
    try:
        return json.loads(data)
    except RecursionError:
        return json.loads(shallow(data))
