"""Conditions of a GPUNode that are not true: what its device plugin says is wrong on the node.

Conditions about single cards, duplicates and the registration are left out: the extender derives these itself.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

MAX_CONDITIONS: Final = 32
DERIVED: Final = frozenset({"CardsHealthy", "NoConflicts", "Registered"})
_MAX_MESSAGE: Final = 1024
_MAX_TIME: Final = 35
_REASON: Final = re.compile(r"[A-Z][A-Za-z0-9]{0,63}")


@dataclass(frozen=True, slots=True)
class NodeProblem:
    """A condition that is not true: its reason, the message for people, and since when, as RFC 3339."""

    reason: str
    message: str
    since: str
    is_unknown: bool


def decode(status: Mapping[str, Any]) -> tuple[NodeProblem, ...]:
    """Read a GPUNode's status; conditions that cannot be read are left out."""
    listed = status.get("conditions")
    return tuple(_problems(listed[:MAX_CONDITIONS])) if isinstance(listed, list) else ()


def _problems(listed: list[Any]) -> Iterator[NodeProblem]:
    for entry in listed:
        fields = entry if isinstance(entry, dict) else {}
        texts = [fields.get(key) for key in ("type", "status", "reason", "message", "lastTransitionTime")]
        kind, state, reason, message, since = (text if isinstance(text, str) else "" for text in texts)
        if state in ("False", "Unknown") and kind not in DERIVED and _REASON.fullmatch(reason):
            yield NodeProblem(reason, message[:_MAX_MESSAGE], since[:_MAX_TIME], state == "Unknown")
