"""Reads pods as the API server writes them, for the watch and the verbs.

Users write these objects: a field that cannot be read is treated as missing, and raises no error.
"""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any, Final

import msgspec
from msgspec import structs

from extender.state import objects
from extender.state.fields import controller, lifecycle, pod_rules, scheduling
from extender.state.fields.equal_pods import EqualPods
from extender.state.host_usage import HostPod
from extender.state.objects import WatchedPod
from vgpu.adapters.kubernetes import pod_json
from vgpu.domain import names
from vgpu.domain.asks import host_request, idle, scheduler_words
from vgpu.domain.asks.request import Parsed
from vgpu.domain.grants.assignment_trust import Distrust, DistrustReason
from vgpu.domain.identifiers import NO_NODE
from vgpu.domain.problem import Problem

_OURS: Final = f"{names.DOMAIN}/".encode()
_GROUP_LABEL: Final = names.POD_GROUP_LABEL.encode()
_GROUP: Final = f'"{names.SCHEDULING_GROUP}"'.encode()
UNREADABLE: Final = (
    msgspec.ValidationError,
    AttributeError,
    KeyError,
    TypeError,
    ValueError,
)  # not RecursionError
_TERMINAL: Final = frozenset({"Succeeded", "Failed"})


class PodReader:
    """Reads pods; those that ask for equal things share what was read."""

    def __init__(self) -> None:
        self._equal = EqualPods()

    def watched(self, data: bytes) -> WatchedPod | HostPod | None:
        """Read a pod from the watch; None for a pod that no node holds and that names neither our domain nor a group.

        Of other pods only what they take of their nodes' CPU and memory is read. A member of a group of pods may ask
        for no GPU and counts as a member.
        """
        if _OURS in data or _GROUP_LABEL in data or _GROUP in data:
            return self.encoded(data)
        return host_pod(data) if b'"nodeName"' in data else None

    def encoded(self, data: bytes) -> WatchedPod:
        """Read a pod's JSON as the API server writes it."""
        try:
            return self.decoded(pod_json.decode_placed(data))
        except UNREADABLE as error:
            return self._unreadable(data, str(error))

    def decoded(self, obj: Mapping[str, Any]) -> WatchedPod:
        """Read a pod's decoded JSON."""
        metadata = obj.get("metadata") or {}
        annotations = metadata.get("annotations") or {}
        status = obj.get("status") or {}
        asked = self._equal.read(obj)
        message, is_warned = _conditions(status.get("conditions") or ())
        node = (obj.get("spec") or {}).get("nodeName") or NO_NODE
        return WatchedPod(
            uid=metadata.get("uid", ""),
            namespace=metadata.get("namespace", ""),
            name=metadata.get("name", ""),
            node=node,
            is_terminal=status.get("phase") in _TERMINAL,
            asked=asked,
            assignment=self._equal.assignment(asked, annotations.get(names.ASSIGNMENT, "")),
            is_unschedulable=message is not None,
            scheduling=scheduling.decode(obj),
            version=objects.version(metadata.get("resourceVersion", "")),
            has_started=bool(status.get("containerStatuses") or status.get("initContainerStatuses")),
            lifecycle=lifecycle.decode(obj),
            idle_setting=idle.read(annotations)[0],
            is_warned=is_warned,
            scheduler_message="" if node else message or "",
            rules_json=b"" if node else pod_rules.kept(obj.get("spec") or {}),
            controller=None if asked.parsed.gang is None else controller.of(metadata),
        )

    def _unreadable(self, data: bytes, why: str) -> WatchedPod:
        """Read the identity, node and phase of a pod in which another field has a wrong type."""
        known = self.decoded({**pod_json.decode_unreadable(data)})
        problem = Problem("pod", "", f"cannot be read: {why}")
        distrust = Distrust(DistrustReason.INVALID_REQUEST, str(problem))
        asked = replace(known.asked, parsed=Parsed(None, (problem,)), number=None)
        return structs.replace(known, asked=asked, assignment=distrust, is_readable=False)


def host_pod(data: bytes) -> HostPod | None:
    """Read what a pod takes of its node's CPU and memory; None where it cannot be read."""
    try:
        obj = pod_json.decode_host(data)
        spec, is_terminal = obj.get("spec") or {}, (obj.get("status") or {}).get("phase") in _TERMINAL
        node = NO_NODE if is_terminal else spec.get("nodeName") or NO_NODE
        return HostPod(obj["metadata"]["uid"], node, host_request.of_pod(spec))
    except UNREADABLE:
        return None


def _conditions(conditions: Iterable[Mapping[str, Any]]) -> tuple[str | None, bool]:
    """Return what kube-scheduler said when it found no node, else None; and whether the pod was warned as idle."""
    message, is_warned = None, False
    for condition in conditions:
        if condition.get("type") == "PodScheduled" and condition.get("reason") == "Unschedulable":
            message = (condition.get("message") or "")[: scheduler_words.MAX_LENGTH]
        is_warned |= condition.get("type") == names.IDLE_CONDITION and condition.get("status") == "True"
    return message, is_warned
