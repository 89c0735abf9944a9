"""JSON patch, merge patch and strategic merge patch."""

import contextlib
import copy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vgpu.domain.errors import KubernetesError
from vgpu.simulator.api import patch

JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 5) | st.text("ab~/", max_size=3),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text("ab~/", max_size=2), inner, max_size=3),
    max_leaves=8,
)
POINTER = st.text("/ab~01-", max_size=4) | JSON
OPERATION = st.fixed_dictionaries(
    {"op": st.sampled_from(["add", "remove", "replace", "move", "copy", "test", "x"]), "path": POINTER},
    optional={"from": POINTER, "value": JSON},
)

# https://www.rfc-editor.org/rfc/rfc7386#appendix-A
RFC_7386 = [
    ({"a": "b"}, {"a": "c"}, {"a": "c"}),
    ({"a": "b"}, {"b": "c"}, {"a": "b", "b": "c"}),
    ({"a": "b"}, {"a": None}, {}),
    ({"a": "b", "b": "c"}, {"a": None}, {"b": "c"}),
    ({"a": ["b"]}, {"a": "c"}, {"a": "c"}),
    ({"a": "c"}, {"a": ["b"]}, {"a": ["b"]}),
    ({"a": {"b": "c"}}, {"a": {"b": "d", "c": None}}, {"a": {"b": "d"}}),
    ({"a": [{"b": "c"}]}, {"a": [1]}, {"a": [1]}),
    (["a", "b"], ["c", "d"], ["c", "d"]),
    ({"a": "b"}, ["c"], ["c"]),
    ({"a": "foo"}, None, None),
    ({"a": "foo"}, "bar", "bar"),
    ({"e": None}, {"a": 1}, {"e": None, "a": 1}),
    ([1, 2], {"a": "b", "c": None}, {"a": "b"}),
    ({}, {"a": {"bb": {"ccc": None}}}, {"a": {"bb": {}}}),
]

# https://www.rfc-editor.org/rfc/rfc6902#appendix-A
RFC_6902: list[tuple[Any, list[dict[str, Any]], Any]] = [
    ({"foo": "bar"}, [{"op": "add", "path": "/baz", "value": "qux"}], {"baz": "qux", "foo": "bar"}),
    ({"foo": ["bar", "baz"]}, [{"op": "add", "path": "/foo/1", "value": "qux"}], {"foo": ["bar", "qux", "baz"]}),
    ({"baz": "qux", "foo": "bar"}, [{"op": "remove", "path": "/baz"}], {"foo": "bar"}),
    ({"foo": ["bar", "qux", "baz"]}, [{"op": "remove", "path": "/foo/1"}], {"foo": ["bar", "baz"]}),
    ({"baz": "qux"}, [{"op": "replace", "path": "/baz", "value": "boo"}], {"baz": "boo"}),
    (
        {"foo": {"bar": "baz", "waldo": "fred"}, "qux": {"corge": "grault"}},
        [{"op": "move", "from": "/foo/waldo", "path": "/qux/thud"}],
        {"foo": {"bar": "baz"}, "qux": {"corge": "grault", "thud": "fred"}},
    ),
    (
        {"foo": ["all", "grass", "cows", "eat"]},
        [{"op": "move", "from": "/foo/1", "path": "/foo/3"}],
        {"foo": ["all", "cows", "eat", "grass"]},
    ),
    ({"a": {"b": 1}}, [{"op": "copy", "from": "/a", "path": "/c"}], {"a": {"b": 1}, "c": {"b": 1}}),
    ({"/": 9, "~1": 10}, [{"op": "test", "path": "/~01", "value": 10}], {"/": 9, "~1": 10}),
    ({"foo": ["bar"]}, [{"op": "add", "path": "/foo/-", "value": ["abc"]}], {"foo": ["bar", ["abc"]]}),
]


@pytest.mark.parametrize(("target", "change", "expected"), RFC_7386)
def test_merge_patch_examples_of_rfc_7386(target: Any, change: Any, expected: Any) -> None:
    before = copy.deepcopy(target)
    assert patch.merge(target, change) == expected
    assert target == before


@pytest.mark.parametrize(("target", "operations", "expected"), RFC_6902)
def test_json_patch_examples_of_rfc_6902(target: Any, operations: Any, expected: Any) -> None:
    before = copy.deepcopy(target)
    assert patch.json_patch(target, operations) == expected
    assert target == before


@pytest.mark.parametrize(
    ("operations", "code"),
    [
        ([{"op": "test", "path": "/a", "value": 2}], 422),
        ([{"op": "remove", "path": "/missing"}], 422),
        ([{"op": "replace", "path": "/missing", "value": 1}], 422),
        ([{"op": "add", "path": "/l/9", "value": 1}], 422),
        ([{"op": "add", "path": "/l/-1", "value": 1}], 422),
        ([{"op": "add", "path": "/missing/a", "value": 1}], 422),
        ([{"op": "add", "path": "nopointer", "value": 1}], 422),
        ([{"op": "wave", "path": "/a"}], 400),
        ({"op": "remove", "path": "/a"}, 400),
    ],
)
def test_a_json_patch_that_does_not_fit_is_refused(operations: Any, code: int) -> None:
    with pytest.raises(KubernetesError) as refused:
        patch.json_patch({"a": 1, "l": []}, operations)
    assert refused.value.status == code


@given(JSON, JSON | st.lists(OPERATION, max_size=4))
def test_any_json_patch_is_applied_or_refused(target: Any, operations: Any) -> None:
    with contextlib.suppress(KubernetesError):
        patch.json_patch(target, operations)


@given(JSON, JSON)
def test_merging_is_idempotent(target: Any, change: Any) -> None:
    once = patch.merge(target, change)
    assert patch.merge(once, change) == once


def test_strategic_merge_merges_known_lists_by_key_and_replaces_others() -> None:
    old = {"conditions": [{"type": "A", "status": "True"}, {"type": "B"}], "args": [1, 2]}
    new = patch.strategic(old, {"conditions": [{"type": "A", "status": "False"}, {"type": "C"}], "args": [3]})
    assert new == {"conditions": [{"type": "A", "status": "False"}, {"type": "B"}, {"type": "C"}], "args": [3]}


# What kubectl sends, and what an API server makes of it:
# https://github.com/kubernetes/community/blob/main/contributors/devel/sig-api-machinery/strategic-merge-patch.md
DIRECTIVES: list[tuple[Any, Any, Any]] = [
    (
        {"containers": [{"name": "a", "image": "1"}, {"name": "b"}]},
        {"$setElementOrder/containers": [{"name": "b"}, {"name": "a"}], "containers": [{"name": "a", "image": "2"}]},
        {"containers": [{"name": "b"}, {"name": "a", "image": "2"}]},
    ),
    (
        {"containers": [{"name": "added"}, {"name": "a"}]},
        {"$setElementOrder/containers": [{"name": "a"}]},
        {"containers": [{"name": "a"}, {"name": "added"}]},
    ),
    (
        {"env": [{"name": "A", "value": "1"}, {"name": "B"}]},
        {"env": [{"name": "A", "$patch": "delete"}, {"name": "missing", "$patch": "delete"}]},
        {"env": [{"name": "B"}]},
    ),
    ({"env": [{"name": "A"}]}, {"env": [{"$patch": "replace"}, {"name": "B"}]}, {"env": [{"name": "B"}]}),
    ({"labels": {"a": "1"}}, {"labels": {"$patch": "replace", "b": "2"}}, {"labels": {"b": "2"}}),
    ({"labels": {"a": "1"}}, {"labels": {"$patch": "delete"}}, {"labels": {}}),
    (
        {"strategy": {"type": "A", "a": 1}},
        {"strategy": {"$retainKeys": ["type"], "type": "B"}},
        {"strategy": {"type": "B"}},
    ),
    (
        {"finalizers": ["a", "b"]},
        {"$deleteFromPrimitiveList/finalizers": ["a"], "$setElementOrder/finalizers": ["c", "b"], "finalizers": ["c"]},
        {"finalizers": ["c", "b"]},
    ),
    ({}, {"$setElementOrder/env": [{"name": "A"}]}, {}),
]


@pytest.mark.parametrize(("target", "change", "expected"), DIRECTIVES)
def test_strategic_merge_follows_directives(target: Any, change: Any, expected: Any) -> None:
    before = copy.deepcopy(target)
    assert patch.strategic(target, change) == expected
    assert target == before


@pytest.mark.parametrize(
    "change",
    [
        {"$patch": "add"},
        {"$patch": [1]},
        {"$retainKeys": "a"},
        {"$setElementOrder/a": {}},
        {"$other/a": []},
        {"$a": []},
    ],
)
def test_strategic_merge_refuses_what_is_no_directive(change: Any) -> None:
    with pytest.raises(KubernetesError, match=r"\$"):
        patch.strategic({}, {"spec": change})


@given(
    JSON, st.dictionaries(st.sampled_from(["$patch", "$retainKeys", "$setElementOrder/env", "env"]), JSON, max_size=3)
)
def test_any_strategic_patch_is_applied_or_refused(target: Any, change: Any) -> None:
    with contextlib.suppress(KubernetesError):
        patch.strategic({"env": target}, change)
