"""Pods that a device plugin refused to start, as the status of its GPUNode reports them.

A device plugin may write its own GPUNode only; the extender posts the Events and evicts the pods.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

MAX_REFUSALS: Final = 32
_MAX_MESSAGE: Final = 1024
_REASON: Final = re.compile(r"[A-Z][A-Za-z0-9]{0,63}")


@dataclass(frozen=True, slots=True)
class Refused:
    """A refused pod. `evict`: only another pod helps, and a controller would create it."""

    uid: str
    reason: str
    message: str
    evict: bool


def decode(status: Mapping[str, Any]) -> tuple[Refused, ...]:
    """Read a GPUNode's status; entries that cannot be read are left out."""
    listed = status.get("refusals")
    if not isinstance(listed, list):
        return ()
    return tuple(read for entry in listed[:MAX_REFUSALS] if (read := _entry(entry)) is not None)


def _entry(entry: object) -> Refused | None:
    fields = entry if isinstance(entry, dict) else {}
    uid, reason, message = fields.get("podUID"), fields.get("reason"), fields.get("message")
    if not isinstance(uid, str) or not isinstance(message, str):
        return None
    if not isinstance(reason, str) or not _REASON.fullmatch(reason):
        return None
    return Refused(uid, reason, message[:_MAX_MESSAGE], fields.get("evict") is True)
