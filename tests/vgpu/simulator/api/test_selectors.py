"""Label and field selectors."""

import pytest

from vgpu.domain.errors import KubernetesError
from vgpu.simulator.api import selectors
from vgpu.simulator.api.resources import NODES, PODS


def pod(**labels: str) -> dict[str, object]:
    return {"metadata": {"name": "p", "namespace": "n", "labels": labels}, "spec": {"nodeName": "node-1"}}


@pytest.mark.parametrize(
    ("selector", "expected"),
    [
        ("a=1", True),
        ("a==1,b=2", True),
        ("a=1,b=3", False),
        ("a!=1", False),
        ("c!=1", True),
        ("a in (1,2),b notin (3, 4)", True),
        ("a in (2,3)", False),
        ("c notin (1)", True),
        ("a", True),
        ("!a", False),
        ("!c", True),
    ],
)
def test_label_selectors(selector: str, *, expected: bool) -> None:
    assert selectors.parse(PODS, labels=selector)(pod(a="1", b="2")) is expected


@pytest.mark.parametrize(
    ("selector", "expected"),
    [
        ("spec.nodeName=node-1", True),
        ("spec.nodeName=", False),
        ("spec.nodeName!=node-1", False),
        ("metadata.name=p,metadata.namespace=n", True),
        ("status.phase=", True),
    ],
)
def test_field_selectors(selector: str, *, expected: bool) -> None:
    assert selectors.parse(PODS, fields=selector)(pod()) is expected


def test_an_unsupported_field_is_refused() -> None:
    with pytest.raises(KubernetesError, match="not supported"):
        selectors.parse(NODES, fields="spec.nodeName=x")


def test_a_malformed_selector_is_refused() -> None:
    with pytest.raises(KubernetesError, match="unable to parse"):
        selectors.parse(PODS, labels="a>1 or b")


@pytest.mark.parametrize(
    ("operator", "key", "expected"),
    [("In", "a", True), ("NotIn", "a", False), ("Exists", "a", True), ("DoesNotExist", "a", False), ("In", "c", False)],
)
def test_selector_objects(operator: str, key: str, *, expected: bool) -> None:
    values = ["1"] if operator in ("In", "NotIn") else []
    selector = {"matchLabels": {"b": "2"}, "matchExpressions": [{"key": key, "operator": operator, "values": values}]}
    assert selectors.labels_match(selector, {"a": "1", "b": "2"}) is expected
