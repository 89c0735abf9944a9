"""JSON of any depth: what is nested deeper than a decoder can read is replaced by null."""

import json
import re
from typing import Any, Final

_TOKEN: Final = re.compile(rb'"(?:[^"\\]|\\.)*"|[\[\]{}]')


def loads(data: bytes, limit: int = 100) -> Any:
    """Decode JSON; where it is too deep for the decoder, with null for what is nested deeper than `limit`."""
    try:
        return json.loads(data)
    except RecursionError:
        return json.loads(shallow(data, limit))


def shallow(data: bytes, limit: int) -> bytes:
    """Return JSON in which every array and object nested deeper than `limit` is null."""
    kept: list[bytes] = []
    depth = start = 0
    for match in _TOKEN.finditer(data):
        token = match[0]
        if token in b"[{":
            depth += 1
            if depth == limit + 1:
                kept.append(data[start : match.start()])
        elif token in b"]}":
            if depth == limit + 1:
                kept.append(b"null")
                start = match.end()
            depth -= 1
    return b"".join([*kept, data[start:]])
