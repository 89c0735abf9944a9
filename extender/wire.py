"""kube-scheduler's extender protocol, version 1: bytes in, bytes out.

Keys are Go's field names without tags (`PodUID`); keys are read in any case, as by Go's decoder. Source:
https://pkg.go.dev/k8s.io/kube-scheduler/extender/v1
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import msgspec

from extender.verdict import Verdict
from vgpu import reasons
from vgpu.errors import MalformedError


class MalformedCall(MalformedError):
    """A body that is no call of this protocol; the message names the field."""


@dataclass(frozen=True, slots=True)
class Call:
    """`ExtenderArgs`: a pod, and the names of the nodes to consider."""

    pod: Mapping[str, Any]
    nodes: list[str]


@dataclass(frozen=True, slots=True)
class BindArgs:
    """`ExtenderBindingArgs`."""

    pod_name: str
    pod_namespace: str
    pod_uid: str
    node: str


def call(body: bytes) -> Call:
    """Read the arguments of filter and prioritize.

    Raises:
        MalformedCall: no JSON object, no pod, or no node names (the extender needs `nodeCacheCapable: true`).
    """
    fields = _object(body)
    pod, nodes = fields.get("pod"), fields.get("nodenames")
    if not isinstance(pod, dict) or not isinstance(pod.get("metadata"), dict) or not isinstance(pod.get("spec"), dict):
        raise MalformedCall("Pod: must be a pod object with metadata and spec")
    if nodes is None and isinstance(fields.get("nodes"), dict):
        raise MalformedCall("NodeNames: missing; set nodeCacheCapable: true in the scheduler's extender configuration")
    if not isinstance(nodes, list) or not all(isinstance(name, str) for name in nodes):
        raise MalformedCall("NodeNames: must be a list of names")
    return Call(pod, nodes)


def bind_args(body: bytes) -> BindArgs:
    """Read the arguments of bind.

    Raises:
        MalformedCall: a field is missing or empty.
    """
    fields = _object(body)
    for name in ("PodName", "PodNamespace", "PodUID", "Node"):
        value = fields.get(name.lower())
        if not isinstance(value, str) or not value:
            raise MalformedCall(f"{name}: must be a non-empty string")
    return BindArgs(fields["podname"], fields["podnamespace"], fields["poduid"], fields["node"])


def filter_result(verdict: Verdict) -> bytes:
    """Write `ExtenderFilterResult`; kube-scheduler counts nodes with equal texts."""
    waiting = {name: reasons.text(why.reason) for name, why in verdict.refused.items() if not why.is_unresolvable}
    lasting = {name: reasons.text(why.reason) for name, why in verdict.refused.items() if why.is_unresolvable}
    return msgspec.json.encode(
        {
            "NodeNames": verdict.fitting,
            "FailedNodes": waiting,
            "FailedAndUnresolvableNodes": lasting,
            "Error": "",
        }
    )


def host_priorities(scores: Mapping[str, int]) -> bytes:
    """Write `HostPriorityList`: an array with integer scores (kube-scheduler drops all scores if one is a float)."""
    return msgspec.json.encode([{"Host": host, "Score": score} for host, score in scores.items()])


def error(message: str) -> bytes:
    """Write an `Error` only: the whole answer of bind, where an empty text means bound."""
    return msgspec.json.encode({"Error": message})


def _object(body: bytes) -> dict[str, Any]:
    try:
        value = msgspec.json.decode(body)
    except (msgspec.DecodeError, RecursionError) as failure:
        raise MalformedCall(f"not JSON: {failure}") from None
    if not isinstance(value, dict):
        raise MalformedCall("not a JSON object")
    return {key.lower(): field for key, field in value.items()}
