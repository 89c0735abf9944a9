"""Pods that a device plugin refused to start, or found without a share or without limits, as its GPUNode lists them.

A device plugin may write its own GPUNode only; the extender posts the Events and evicts the pods.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from vgpu.domain import object_names
from vgpu.domain.identifiers import NO_NAMESPACE, Namespace, PodUid

# 32 refused pods, and 16 each without a share, without limits, with a kernel that does not end, and on an ill card.
MAX_REFUSALS: Final = 96
_MAX_MESSAGE: Final = 1024
_REASON: Final = re.compile(r"[A-Z][A-Za-z0-9]{0,63}")


@dataclass(frozen=True, slots=True)
class RefusedPod:
    """A refused pod.

    Attributes:
        uid: of the pod.
        reason: a code.
        message: details for people.
        evict: whether the device plugin asks for an eviction.
        namespace: of the pod; empty where the report does not name the pod by a valid name.
        name: of the pod, or empty.
    """

    uid: PodUid
    reason: str
    message: str
    evict: bool
    namespace: Namespace = NO_NAMESPACE
    name: str = ""


def decode(status: Mapping[str, Any]) -> tuple[RefusedPod, ...]:
    """Read a GPUNode's status; entries that cannot be read are left out."""
    listed = status.get("refusals")
    if not isinstance(listed, list):
        return ()
    return tuple(read for entry in listed[:MAX_REFUSALS] if (read := _entry(entry)) is not None)


def _entry(entry: object) -> RefusedPod | None:
    fields = entry if isinstance(entry, dict) else {}
    uid, reason, message = fields.get("podUID"), fields.get("reason"), fields.get("message")
    if not isinstance(uid, str) or not isinstance(message, str):
        return None
    if not isinstance(reason, str) or not _REASON.fullmatch(reason):
        return None
    return RefusedPod(
        PodUid(uid), reason, message[:_MAX_MESSAGE], fields.get("evict") is True, *_named(fields.get("pod"))
    )


def _named(pod: object) -> tuple[Namespace, str]:
    """Return the namespace and the name of NAMESPACE/NAME; both are empty where one is invalid: they become a path."""
    namespace, _, name = str(pod).partition("/")
    is_valid = object_names.is_label(namespace) and object_names.is_subdomain(name)
    return (Namespace(namespace), name) if is_valid else (NO_NAMESPACE, "")
