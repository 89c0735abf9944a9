"""Which nodes a waiting pod may be on: the watch keeps it as JSON, and it is read where a question needs it."""

from functools import lru_cache
from typing import Any, Final

import msgspec

from vgpu.domain.asks import node_rules
from vgpu.domain.asks.node_rules import NodeRules
from vgpu.domain.json_types import Json

MAX_LENGTH: Final = 1 << 14  # users write these fields: more of a pod is not kept, and its rules are unknown
_FIELDS: Final = ("nodeSelector", "affinity", "tolerations")
_TOO_LONG: Final = b"?"


def kept(spec: Json) -> bytes:
    """Return what is kept of a pod's decoded `spec`."""
    found = {name: spec[name] for name in _FIELDS if spec.get(name)}
    if not found:
        return b""
    encoded = msgspec.json.encode(found)
    return encoded if len(encoded) <= MAX_LENGTH else _TOO_LONG


@lru_cache(maxsize=256)
def read(encoded: bytes) -> NodeRules:
    """Read what was kept; the pods of one controller share the rules."""
    if not encoded:
        return node_rules.ANY_NODE
    try:
        fields: dict[str, Any] = msgspec.json.decode(encoded)
    except (msgspec.DecodeError, RecursionError):
        return node_rules.UNKNOWN
    return node_rules.of_pod(fields)
