"""kube-scheduler's extender protocol, version 1: bytes in, bytes out.

Keys are Go's field names without tags (`PodUID`); keys are read in any case, as by Go's decoder. Source:
https://pkg.go.dev/k8s.io/kube-scheduler/extender/v1
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final, TypeVar

import msgspec

from extender.verdict import Verdict
from vgpu import reasons
from vgpu.adapters.kubernetes import pod_json
from vgpu.errors import MalformedError

T = TypeVar("T")

_NULL: Final = b"null"
_decode_object = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode
_decode_names = msgspec.json.Decoder(list[str]).decode
_decode_text = msgspec.json.Decoder(str).decode


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
        RecursionError: deeper than the parser can read.
        MalformedCall: no JSON object, no pod, or no node names (the extender needs `nodeCacheCapable: true`).
    """
    fields = _object(body)
    pod = _field("Pod", fields, pod_json.decode)
    if "metadata" not in pod or "spec" not in pod:
        raise MalformedCall("Pod: must be a pod object with metadata and spec")
    if fields.get("nodenames", _NULL) == _NULL and fields.get("nodes", _NULL) != _NULL:
        raise MalformedCall("NodeNames: missing; set nodeCacheCapable: true in the scheduler's extender configuration")
    return Call(pod, _field("NodeNames", fields, _decode_names))


def bind_args(body: bytes) -> BindArgs:
    """Read the arguments of bind.

    Raises:
        RecursionError: deeper than the parser can read.
        MalformedCall: a field is missing or empty.
    """
    fields = _object(body)
    names = ("PodName", "PodNamespace", "PodUID", "Node")
    values = [_field(name, fields, _decode_text) for name in names]
    for name, value in zip(names, values, strict=True):
        if not value:
            raise MalformedCall(f"{name}: must be a non-empty string")
    return BindArgs(*values)


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


def _object(body: bytes) -> dict[str, bytes]:
    try:
        value = _decode_object(body)
    except (msgspec.DecodeError, UnicodeDecodeError) as failure:
        raise MalformedCall(f"not a JSON object: {failure}") from None
    return {key.lower(): bytes(field) for key, field in value.items()}


def _field(name: str, fields: Mapping[str, bytes], decode: Callable[[bytes], T]) -> T:
    try:
        return decode(fields.get(name.lower(), _NULL))
    except (msgspec.DecodeError, UnicodeDecodeError) as failure:
        raise MalformedCall(f"{name}: {failure}") from None
