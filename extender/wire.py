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
_decode_victims = msgspec.json.Decoder(dict[str, dict[str, Any]] | None).decode


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


@dataclass(frozen=True, slots=True)
class MetaVictims:
    """`MetaVictims`: the UIDs of the pods to evict on one node, and how many violate a PodDisruptionBudget."""

    uids: tuple[str, ...] = ()
    violations: int = 0


@dataclass(frozen=True, slots=True)
class PreemptionArgs:
    """`ExtenderPreemptionArgs`: a pod, and the victims that kube-scheduler has chosen, by node."""

    pod: Mapping[str, Any]
    victims: Mapping[str, MetaVictims]


def call(body: bytes) -> Call:
    """Read the arguments of filter and prioritize.

    Raises:
        RecursionError: deeper than the parser can read.
        MalformedCall: no JSON object, no pod, or no node names (the extender needs `nodeCacheCapable: true`).
    """
    fields = _object(body)
    pod = _pod(fields)
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


def preemption_args(body: bytes) -> PreemptionArgs:
    """Read the arguments of preempt.

    Raises:
        MalformedCall: no JSON object, no pod, or victims that are not named by UID.
    """
    fields = _object(body)
    pod, victims = _pod(fields), _field("NodeNameToMetaVictims", fields, _decode_victims)
    if victims is None and fields.get("nodenametovictims", _NULL) not in (_NULL, b"{}"):
        raise MalformedCall("NodeNameToMetaVictims: missing; set nodeCacheCapable: true for this extender")
    return PreemptionArgs(pod, {node: _victims(node, each) for node, each in (victims or {}).items()})


def preemption_result(victims: Mapping[str, MetaVictims]) -> bytes:
    """Write `ExtenderPreemptionResult`."""
    result = {
        node: {"Pods": [{"UID": uid} for uid in each.uids], "NumPDBViolations": each.violations}
        for node, each in victims.items()
    }
    return msgspec.json.encode({"NodeNameToMetaVictims": result})


def filter_result(verdict: Verdict, awaited_node: str = "") -> bytes:
    """Write `ExtenderFilterResult`; kube-scheduler counts nodes with equal texts.

    A node that is asked about has all that kube-scheduler counts, so that kube-scheduler's own preemption would find no
    victim there: refusals are unresolvable. The exception is the node on which pods are leaving for this pod already:
    an unresolvable refusal would make kube-scheduler drop the nomination.
    """
    texts = {name: reasons.text(why.reason) for name, why in verdict.refused.items()}
    waiting = {name: text for name, text in texts.items() if name == awaited_node}
    lasting = {name: text for name, text in texts.items() if name != awaited_node}
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


def _pod(fields: Mapping[str, bytes]) -> pod_json.Pod:
    pod = _field("Pod", fields, pod_json.decode)
    if "metadata" not in pod or "spec" not in pod:
        raise MalformedCall("Pod: must be a pod object with metadata and spec")
    return pod


def _victims(node: str, value: Mapping[str, Any]) -> MetaVictims:
    fields = _lower(value)
    pods, violations = fields.get("pods") or [], fields.get("numpdbviolations") or 0
    if not isinstance(pods, list) or not isinstance(violations, int):
        raise MalformedCall(f"NodeNameToMetaVictims[{node}]: must have a list Pods, and a number NumPDBViolations")
    return MetaVictims(tuple(_uid(node, pod) for pod in pods), violations)


def _uid(node: str, pod: object) -> str:
    uid = _lower(pod).get("uid") if isinstance(pod, dict) else None
    if not isinstance(uid, str):
        raise MalformedCall(f"NodeNameToMetaVictims[{node}].Pods: must be objects with a UID")
    return uid


def _lower(value: Mapping[str, Any]) -> dict[str, Any]:
    return {key.lower(): field for key, field in value.items()}
