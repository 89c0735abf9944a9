"""kube-scheduler's extender protocol, version 1: bytes in, bytes out.

Keys are Go's field names without tags (`PodUID`); keys are read in any case, as by Go's decoder. Source:
https://pkg.go.dev/k8s.io/kube-scheduler/extender/v1
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeVar

import msgspec

from vgpu.adapters.kubernetes import pod_json
from vgpu.domain.cards import reasons
from vgpu.domain.cards.reasons import Reason
from vgpu.domain.errors import MalformedError
from vgpu.domain.identifiers import NO_NODE, Namespace, NodeName, PodUid

T = TypeVar("T")


class _Args(msgspec.Struct, forbid_unknown_fields=True):
    """`ExtenderArgs` as kube-scheduler writes it for an extender with `nodeCacheCapable: true`."""

    pod: pod_json.PlacedPod = msgspec.field(name="Pod")
    names: list[NodeName] = msgspec.field(name="NodeNames")
    nodes: None = msgspec.field(name="Nodes", default=None)


class _Nodes(msgspec.Struct):
    items: list[msgspec.Raw] | None = None


class _NodeMetadata(msgspec.Struct):
    name: NodeName
    labels: dict[str, str] | None = None


class _NodeStatus(msgspec.Struct):
    allocatable: dict[str, str | int] | None = None


class _Node(msgspec.Struct):
    metadata: _NodeMetadata
    status: _NodeStatus = msgspec.field(default_factory=_NodeStatus)


_NULL: Final = b"null"
_TEXTS: Final = {reason: msgspec.json.encode(reasons.text(reason)) for reason in Reason}
_decode_args = msgspec.json.Decoder(_Args).decode
_decode_object = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode
_decode_names = msgspec.json.Decoder(list[NodeName]).decode
_decode_nodes = msgspec.json.Decoder(_Nodes).decode
_decode_node = msgspec.json.Decoder(_Node).decode
_decode_text = msgspec.json.Decoder(str).decode
_decode_name = msgspec.json.Decoder(NodeName).decode
_decode_victims = msgspec.json.Decoder(dict[str, dict[str, Any]] | None).decode


class MalformedCall(MalformedError):
    """A body that is no call of this protocol; the message names the field."""


@dataclass(frozen=True, slots=True)
class FullNode:
    """A whole node of a call: what is read of it, and its JSON."""

    labels: Mapping[str, str]
    allocatable: Mapping[str, str | int]
    raw: bytes


@dataclass(frozen=True, slots=True)
class Call:
    """`ExtenderArgs`: a pod, and the nodes to consider.

    Attributes:
        pod: the pod's decoded JSON.
        nodes: the names of the nodes.
        full: each node by name, where the caller sent whole nodes and expects them back; else None.
    """

    pod: Mapping[str, Any]
    nodes: list[NodeName]
    full: Mapping[NodeName, FullNode] | None = None


@dataclass(frozen=True, slots=True)
class BindArgs:
    """`ExtenderBindingArgs`."""

    pod_name: str
    pod_namespace: Namespace
    pod_uid: PodUid
    node: NodeName


@dataclass(frozen=True, slots=True)
class MetaVictims:
    """`MetaVictims`: the UIDs of the pods to evict on one node, and how many violate a PodDisruptionBudget."""

    uids: tuple[PodUid, ...] = ()
    violations: int = 0


@dataclass(frozen=True, slots=True)
class PreemptionArgs:
    """`ExtenderPreemptionArgs`: a pod, and the victims that kube-scheduler has chosen, by node."""

    pod: Mapping[str, Any]
    victims: Mapping[NodeName, MetaVictims]


def call(body: bytes) -> Call:
    """Read the arguments of filter and prioritize.

    Raises:
        RecursionError: deeper than the parser can read.
        MalformedCall: no JSON object, no pod, or neither node names nor nodes.
    """
    try:
        args = _decode_args(body)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return _any_call(body)
    return Call(_whole_pod(args.pod), args.names)


def _any_call(body: bytes) -> Call:
    """Read arguments with keys in any case, with whole nodes, or with a mistake, which the error names."""
    fields = _object(body)
    pod = _pod(fields)
    if fields.get("nodenames", _NULL) == _NULL and fields.get("nodes", _NULL) != _NULL:
        full = dict(_full_node(bytes(item)) for item in _field("Nodes", fields, _decode_nodes).items or ())
        return Call(pod, list(full), full)
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
    name, namespace, uid, node = values
    return BindArgs(name, Namespace(namespace), PodUid(uid), NodeName(node))


def preemption_args(body: bytes) -> PreemptionArgs:
    """Read the arguments of preempt.

    Raises:
        MalformedCall: no JSON object, no pod, or victims that are not named by UID.
    """
    fields = _object(body)
    pod, victims = _pod(fields), _field("NodeNameToMetaVictims", fields, _decode_victims)
    if victims is None and fields.get("nodenametovictims", _NULL) not in (_NULL, b"{}"):
        raise MalformedCall("NodeNameToMetaVictims: missing; set nodeCacheCapable: true for this extender")
    return PreemptionArgs(pod, {node: _victims(node, victim) for node, victim in (victims or {}).items()})


def preemption_result(victims: Mapping[NodeName, MetaVictims]) -> bytes:
    """Write `ExtenderPreemptionResult`."""
    result = {
        node: {"Pods": [{"UID": uid} for uid in victim.uids], "NumPDBViolations": victim.violations}
        for node, victim in victims.items()
    }
    return msgspec.json.encode({"NodeNameToMetaVictims": result})


def filter_result(
    fitting: Sequence[bytes],
    refused: Mapping[Reason, Sequence[bytes]],
    awaited_node: NodeName = NO_NODE,
    full: Mapping[NodeName, FullNode] | None = None,
) -> bytes:
    """Write `ExtenderFilterResult`, from names that are JSON already; kube-scheduler counts nodes with equal texts.

    A caller that sent whole nodes, in `full` by name, gets those that fit as whole nodes.

    A node that is asked about has all that kube-scheduler counts, so that kube-scheduler's own preemption would find no
    victim there: refusals are unresolvable. The exception is the node on which pods are leaving for this pod already:
    an unresolvable refusal would make kube-scheduler drop the nomination.
    """
    awaited = msgspec.json.encode(awaited_node) if awaited_node else b""
    waiting = b"".join(_refusals(reason, [awaited]) for reason, names in refused.items() if awaited in names)
    others = ((reason, _without(awaited, names)) for reason, names in refused.items())
    lasting = b",".join(_refusals(reason, names) for reason, names in others if names)
    named = b'"NodeNames":[%b]' % b",".join(fitting) if full is None else _whole(fitting, full)
    return b'{%b,"FailedNodes":{%b},"FailedAndUnresolvableNodes":{%b},"Error":""}' % (named, waiting, lasting)


def _whole(fitting: Sequence[bytes], full: Mapping[NodeName, FullNode]) -> bytes:
    items = b",".join(full[_decode_name(name)].raw for name in fitting)
    return b'"Nodes":{"metadata":{},"items":[%b]},"NodeNames":null' % items


def _without(awaited: bytes, names: Sequence[bytes]) -> Sequence[bytes]:
    return [name for name in names if name != awaited] if awaited else names


def _refusals(reason: Reason, names: Sequence[bytes]) -> bytes:
    """Write the members of a JSON object that give each name the text of one reason."""
    text = b":" + _TEXTS[reason]
    return (text + b",").join(names) + text


def host_priorities(scores: Mapping[int, Sequence[bytes]]) -> bytes:
    """Write `HostPriorityList`, from names that are JSON already, by score.

    The scores are integers: kube-scheduler drops all scores if one is a float.
    """
    return b"[%b]" % b",".join(_scored(score, names) for score, names in scores.items())


def _scored(score: int, names: Sequence[bytes]) -> bytes:
    end = b',"Score":%d}' % score
    return b'{"Host":' + (end + b',{"Host":').join(names) + end


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


def _full_node(raw: bytes) -> tuple[NodeName, FullNode]:
    node = _field("Nodes.items", {"nodes.items": raw}, _decode_node)
    return node.metadata.name, FullNode(node.metadata.labels or {}, node.status.allocatable or {}, raw)


def _pod(fields: Mapping[str, bytes]) -> pod_json.PlacedPod:
    return _whole_pod(_field("Pod", fields, pod_json.decode_placed))


def _whole_pod(pod: pod_json.PlacedPod) -> pod_json.PlacedPod:
    if "metadata" not in pod or "spec" not in pod:
        raise MalformedCall("Pod: must be a pod object with metadata and spec")
    return pod


def _victims(node: NodeName, value: Mapping[str, Any]) -> MetaVictims:
    fields = _lower(value)
    pods, violations = fields.get("pods") or [], fields.get("numpdbviolations") or 0
    if not isinstance(pods, list) or not isinstance(violations, int):
        raise MalformedCall(f"NodeNameToMetaVictims[{node}]: must have a list Pods, and a number NumPDBViolations")
    return MetaVictims(tuple(_uid(node, pod) for pod in pods), violations)


def _uid(node: NodeName, pod: object) -> PodUid:
    uid = _lower(pod).get("uid") if isinstance(pod, dict) else None
    if not isinstance(uid, str):
        raise MalformedCall(f"NodeNameToMetaVictims[{node}].Pods: must be objects with a UID")
    return PodUid(uid)


def _lower(value: Mapping[str, Any]) -> dict[str, Any]:
    return {key.lower(): field for key, field in value.items()}
