"""Which nodes a pod may be on: taints, node selectors and node affinity, as kube-scheduler judges them."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vgpu.domain.asks import node_rules
from vgpu.domain.cards.reasons import Reason
from vgpu.domain.identifiers import NodeName

N1 = NodeName("n1")
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=3),
    lambda inner: (
        st.lists(inner, max_size=2)
        | st.dictionaries(st.sampled_from(["key", "operator", "values", "matchExpressions", "x"]), inner)
    ),
)
TAINT = {"key": "gpu", "value": "yes", "effect": "NoSchedule"}


def judged(spec: dict[str, Any], node: dict[str, Any]) -> Reason | None:
    refused = node_rules.of_pod(spec).refusal(N1, node_rules.of_node(node))
    return refused.reason if refused else None


def tolerating(**fields: str) -> dict[str, Any]:
    return {"tolerations": [fields]}


@pytest.mark.parametrize(
    ("toleration", "effect", "is_refused"),
    [
        ({}, "NoSchedule", True),
        ({"key": "gpu", "operator": "Exists"}, "NoSchedule", False),
        ({"key": "gpu", "value": "yes"}, "NoSchedule", False),
        ({"key": "gpu", "operator": "Equal", "value": "no"}, "NoSchedule", True),
        ({"key": "other", "operator": "Exists"}, "NoSchedule", True),
        ({"operator": "Exists"}, "NoExecute", False),
        ({"key": "gpu", "operator": "Exists", "effect": "NoExecute"}, "NoSchedule", True),
        ({}, "PreferNoSchedule", False),
    ],
)
def test_taints(toleration: dict[str, str], effect: str, is_refused: bool) -> None:
    node = {"spec": {"taints": [{**TAINT, "effect": effect}]}}
    assert judged(tolerating(**toleration), node) is (Reason.NODE_TAINTED if is_refused else None)


@pytest.mark.parametrize(
    ("key", "operator", "values", "is_refused"),
    [
        ("zone", "In", ["a", "b"], False), ("zone", "In", ["b"], True), ("zone", "NotIn", ["a"], True),
        ("none", "NotIn", ["a"], False), ("zone", "Exists", [], False), ("none", "Exists", [], True),
        ("zone", "DoesNotExist", [], True), ("cards", "Gt", ["3"], False), ("cards", "Gt", ["4"], True),
        ("cards", "Lt", ["5"], False), ("zone", "Gt", ["3"], True), ("cards", "Gt", ["x"], True),
        ("zone", "?", [], True),
    ],
)  # fmt: skip
def test_node_affinity(key: str, operator: str, values: list[str], is_refused: bool) -> None:
    expression = {"key": key, "operator": operator, "values": values}
    terms = {"nodeSelectorTerms": [{"matchExpressions": []}, {"matchExpressions": [expression]}]}
    spec = {"affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": terms}}}
    node = {"metadata": {"labels": {"zone": "a", "cards": "4"}}}
    assert judged(spec, node) is (Reason.NODE_AFFINITY_MISMATCH if is_refused else None)


def test_a_selector_and_a_closed_node() -> None:
    ssd = {"metadata": {"labels": {"disk": "ssd"}}}
    assert judged({"nodeSelector": {"disk": "ssd"}}, ssd) is None
    assert judged({"nodeSelector": {"disk": "ssd"}}, {}) is Reason.NODE_AFFINITY_MISMATCH
    assert judged({}, {"spec": {"unschedulable": True}}) is Reason.NODE_UNSCHEDULABLE
    assert judged(tolerating(operator="Exists"), {"spec": {"unschedulable": True}}) is None
    closed = {"spec": {"taints": [{"key": node_rules.UNSCHEDULABLE, "effect": "NoSchedule"}]}}
    assert judged({}, closed) is Reason.NODE_UNSCHEDULABLE


@pytest.mark.heavy
@given(VALUES, VALUES)
def test_fields_of_any_type_raise_nothing(value: Any, other: Any) -> None:
    terms = {"nodeSelectorTerms": [value, {"matchFields": [other]}]}
    affinity = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": terms}}
    spec = {"nodeSelector": value, "tolerations": [value, other], "affinity": affinity}
    judged(spec, {"metadata": {"labels": value}, "spec": {"taints": [other, value]}})
