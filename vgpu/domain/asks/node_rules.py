"""Which nodes a pod may be on whatever is free there: its node selector, its node affinity, and what it tolerates.

kube-scheduler decides by these rules before it asks anything else; here they are judged for explanations and
simulations. Source: https://kubernetes.io/docs/concepts/scheduling-eviction/assign-pod-node/ and
https://kubernetes.io/docs/concepts/scheduling-eviction/taint-and-toleration/
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from sys import intern
from typing import Any, Final, NamedTuple

from vgpu.domain.cards.reasons import Reason
from vgpu.domain.identifiers import NodeName
from vgpu.domain.json_types import Json

UNSCHEDULABLE: Final = "node.kubernetes.io/unschedulable"
NOT_READY: Final = frozenset({"node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"})
_KEEPS_AWAY: Final = frozenset({"NoSchedule", "NoExecute"})
_NAME_FIELD: Final = "metadata.name"


class Taint(NamedTuple):
    """A taint of a node."""

    key: str
    value: str
    effect: str

    def __str__(self) -> str:
        return f"{self.key}{f'={self.value}' if self.value else ''}:{self.effect}"


class Toleration(NamedTuple):
    """What a pod tolerates: empty fields match everything."""

    key: str
    value: str
    effect: str
    is_any_value: bool

    def covers(self, taint: Taint) -> bool:
        """Whether a pod with it may be on a node with a taint."""
        if self.effect and self.effect != taint.effect:
            return False
        if not self.key:
            return self.is_any_value
        return self.key == taint.key and (self.is_any_value or self.value == taint.value)


class Expression(NamedTuple):
    """A requirement of node affinity; `is_field` where it is about the node's name instead of a label."""

    key: str
    operator: str
    values: tuple[str, ...]
    is_field: bool = False

    def holds(self, value: str | None) -> bool:
        """Whether a node with this value meets it; None where the node has no such label."""
        match self.operator:
            case "In":
                return value in self.values
            case "NotIn":
                return value not in self.values
            case "Exists":
                return value is not None
            case "DoesNotExist":
                return value is None
        return _is_beyond(value, self.operator, self.values)


@dataclass(frozen=True, slots=True)
class NodeMarks:
    """What a node says about itself.

    Attributes:
        labels: of the node.
        taints: those that keep pods away.
        is_unschedulable: whether `kubectl cordon` has closed the node.
        is_ready: whether neither the condition Ready nor a taint of the node controller says otherwise.
    """

    labels: Mapping[str, str] = field(default_factory=dict)
    taints: tuple[Taint, ...] = ()
    is_unschedulable: bool = False
    is_ready: bool = True

    @property
    def closed(self) -> Reason | None:
        """Why no pod is placed on the node now, but one that tolerates exactly this; None where nothing is wrong."""
        if not self.is_ready:
            return Reason.NODE_NOT_READY
        return Reason.NODE_UNSCHEDULABLE if self.is_unschedulable else None


@dataclass(frozen=True, slots=True)
class NodeRules:
    """A pod's rules.

    Attributes:
        selector: labels that the node must have.
        terms: of required node affinity: all expressions of one term must hold; None: the pod has no such affinity.
        tolerations: what the pod tolerates.
        is_known: whether the rules could be read; unknown rules refuse no node.
    """

    selector: tuple[tuple[str, str], ...] = ()
    terms: tuple[tuple[Expression, ...], ...] | None = None
    tolerations: tuple[Toleration, ...] = ()
    is_known: bool = True

    def refusal(self, name: NodeName, marks: NodeMarks) -> "NodeRuleRefusal | None":
        """Return why the pod may not be on a node; None where it may."""
        if not self.is_known:
            return None
        if marks.is_unschedulable and not self._tolerates(Taint(UNSCHEDULABLE, "", "NoSchedule")):
            return NodeRuleRefusal(Reason.NODE_UNSCHEDULABLE, "kubectl cordon has closed it")
        return self._mismatch(name, marks.labels) or self._intolerable(marks.taints)

    def _mismatch(self, name: NodeName, labels: Mapping[str, str]) -> "NodeRuleRefusal | None":
        lacking = [f"{key}={value}" for key, value in self.selector if labels.get(key) != value]
        if lacking:
            return NodeRuleRefusal(Reason.NODE_AFFINITY_MISMATCH, f"nodeSelector asks for {', '.join(lacking)}")
        if self.terms is None or any(_all_hold(term, name, labels) for term in self.terms):
            return None
        return NodeRuleRefusal(Reason.NODE_AFFINITY_MISMATCH, "no term of the required node affinity matches")

    def _intolerable(self, taints: Iterable[Taint]) -> "NodeRuleRefusal | None":
        listed = ", ".join(str(taint) for taint in taints if not self._tolerates(taint))
        return NodeRuleRefusal(Reason.NODE_TAINTED, f"not tolerated: {listed}") if listed else None

    def _tolerates(self, taint: Taint) -> bool:
        return any(toleration.covers(taint) for toleration in self.tolerations)


@dataclass(frozen=True, slots=True)
class NodeRuleRefusal:
    """Why a pod may not be on a node, with the details."""

    reason: Reason
    detail: str


ANY_NODE: Final = NodeRules()
UNKNOWN: Final = NodeRules(is_known=False)
NO_MARKS: Final = NodeMarks()


def of_pod(spec: Json) -> NodeRules:
    """Read a pod's `spec`; entries that the API server would refuse are left out."""
    node_affinity = _object(_object(spec.get("affinity")).get("nodeAffinity"))
    required = node_affinity.get("requiredDuringSchedulingIgnoredDuringExecution")
    terms = _terms(_list(required.get("nodeSelectorTerms"))) if isinstance(required, Mapping) else None
    selector = tuple(sorted(_texts(spec.get("nodeSelector")).items()))
    return NodeRules(selector, terms, tuple(map(_toleration, _list(spec.get("tolerations")))))


def of_node(obj: Json) -> NodeMarks:
    """Read a Node. Labels are interned: those of thousands of nodes are mostly equal."""
    spec = _object(obj.get("spec"))
    taints = tuple(map(_taint, _list(spec.get("taints"))))
    return NodeMarks(
        labels={
            intern(key): intern(value) for key, value in _texts(_object(obj.get("metadata")).get("labels")).items()
        },
        taints=tuple(taint for taint in taints if taint.effect in _KEEPS_AWAY and taint.key != UNSCHEDULABLE),
        is_unschedulable=spec.get("unschedulable") is True or any(taint.key == UNSCHEDULABLE for taint in taints),
        is_ready=_says_ready(_object(obj.get("status"))) and not any(taint.key in NOT_READY for taint in taints),
    )


def _says_ready(status: Json) -> bool:
    """Whether the condition Ready is true, or there is none yet."""
    return all(
        entry.get("status") == "True" for entry in _list(status.get("conditions")) if entry.get("type") == "Ready"
    )


def _terms(listed: Iterable[Json]) -> tuple[tuple[Expression, ...], ...]:
    """Read the terms; one without expressions matches no node, and is left out."""
    found = (tuple(_expressions(term)) for term in listed)
    return tuple(term for term in found if term)


def _expressions(term: Json) -> Iterator[Expression]:
    for name, is_field in (("matchExpressions", False), ("matchFields", True)):
        for entry in _list(term.get(name)):
            values = entry.get("values")
            listed = tuple(map(str, values)) if isinstance(values, list) else ()
            yield Expression(str(entry.get("key")), str(entry.get("operator")), listed, is_field)


def _all_hold(term: Iterable[Expression], name: NodeName, labels: Mapping[str, str]) -> bool:
    return all(expression.holds(_value(expression, name, labels)) for expression in term)


def _value(expression: Expression, name: NodeName, labels: Mapping[str, str]) -> str | None:
    if expression.is_field:
        return name if expression.key == _NAME_FIELD else None
    return labels.get(expression.key)


def _is_beyond(value: str | None, operator: str, values: tuple[str, ...]) -> bool:
    try:
        found, (bound,) = int(value or ""), map(int, values)
    except ValueError:
        return False
    return found > bound if operator == "Gt" else operator == "Lt" and found < bound


def _toleration(entry: Json) -> Toleration:
    key, value, effect = (str(entry.get(name) or "") for name in ("key", "value", "effect"))
    return Toleration(key, value, effect, entry.get("operator") == "Exists")


def _taint(entry: Json) -> Taint:
    return Taint(*(intern(str(entry.get(name) or "")) for name in ("key", "value", "effect")))


def _object(value: Any) -> Json:
    return value if isinstance(value, Mapping) else {}


def _list(value: Any) -> list[Json]:
    return [entry for entry in value if isinstance(entry, Mapping)] if isinstance(value, list) else []


def _texts(value: Any) -> dict[str, str]:
    return {key: text for key, text in _object(value).items() if isinstance(text, str)}
