"""Label selectors and field selectors of lists and watches, and selectors inside objects.

Grammar: https://kubernetes.io/docs/concepts/overview/working-with-objects/labels/#label-selectors
"""

import re
from collections.abc import Callable, Mapping
from typing import Any

from vgpu.domain.errors import KubernetesError
from vgpu.domain.json_types import JsonObject
from vgpu.simulator.api.resources import Resource

Matches = Callable[[JsonObject], bool]
_Test = Callable[[Mapping[str, str]], bool]
_SET = re.compile(r"\s*([\w./-]+)\s+(in|notin)\s+\(([^)]*)\)\s*")
_EQUALITY = re.compile(r"\s*([\w./-]+)\s*(==|!=|=)\s*([\w.:/-]*)\s*")
_EXISTENCE = re.compile(r"\s*(!?)\s*([\w./-]+)\s*")
_EVERYWHERE = frozenset({"metadata.name", "metadata.namespace"})


def everything(_: JsonObject) -> bool:
    """Match every object: the test of a list without selectors."""
    return True


def parse(resource: Resource, labels: str = "", fields: str = "") -> Matches:
    """Return a test of objects from the two query parameters.

    Raises:
        KubernetesError: 400, a selector cannot be read, or selects by a field that the resource does not support.
    """
    label_tests = [_label_test(part) for part in re.split(r",(?![^(]*\))", labels) if part.strip()]
    field_tests = [_field_test(resource, part) for part in fields.split(",") if part.strip()]
    if not label_tests and not field_tests:
        return everything

    def matches(obj: JsonObject) -> bool:
        carried = obj["metadata"].get("labels") or {}
        return all(test(carried) for test in label_tests) and all(test(obj) for test in field_tests)

    return matches


def labels_match(selector: JsonObject | None, labels: Mapping[str, str]) -> bool:
    """Whether a LabelSelector object (`matchLabels`, `matchExpressions`) selects these labels; None selects all."""
    selector = selector or {}
    return all(labels.get(key) == value for key, value in (selector.get("matchLabels") or {}).items()) and all(
        _expression(expression, labels) for expression in selector.get("matchExpressions") or ()
    )


def _expression(expression: JsonObject, labels: Mapping[str, str]) -> bool:
    key, values = expression["key"], expression.get("values") or ()
    match expression["operator"]:
        case "In":
            return labels.get(key) in values
        case "NotIn":
            return labels.get(key) not in values
        case "Exists":
            return key in labels
        case _:
            return key not in labels


def _label_test(part: str) -> _Test:
    if found := _SET.fullmatch(part):
        key, operator, words = found.groups()
        values = {word.strip() for word in words.split(",")}
        return lambda labels: (labels.get(key) in values) is (operator == "in")
    if found := _EQUALITY.fullmatch(part):
        key, operator, value = found.groups()
        return lambda labels: (labels.get(key) == value) is (operator != "!=")
    if found := _EXISTENCE.fullmatch(part):
        absent, key = found.groups()
        return lambda labels: (key in labels) is not bool(absent)
    raise KubernetesError(400, "BadRequest", f"unable to parse label selector {part!r}")


def _field_test(resource: Resource, part: str) -> Matches:
    found = _EQUALITY.fullmatch(part)
    if found is None:
        raise KubernetesError(400, "BadRequest", f"invalid field selector {part!r}")
    path, operator, value = found.groups()
    if path not in _EVERYWHERE | resource.fields:
        raise KubernetesError(400, "BadRequest", f"field label not supported: {path}")
    return lambda obj: (_at(obj, path) == value) is (operator != "!=")


def _at(obj: Any, path: str) -> str:
    for step in path.split("."):
        obj = obj.get(step) if isinstance(obj, dict) else None
    return "" if obj is None else str(obj)
