"""Which gang a pod is a member of."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests import strategies
from vgpu.domain import names
from vgpu.domain.asks import gang, request
from vgpu.domain.asks.gang import MAX_SIZE, Gang, GangSource


def member(**fields: Any) -> dict[str, Any]:
    """A pod with fields by short names: name and size (annotations), label, group (of Kubernetes)."""
    obj = strategies.pod(strategies.container(gpu_mem=256))
    keys = {"name": names.GANG, "size": names.GANG_SIZE}
    obj["metadata"]["annotations"] = {keys[key]: fields[key] for key in keys if key in fields}
    obj["metadata"]["labels"] = {names.POD_GROUP_LABEL: fields["label"]} if "label" in fields else None
    obj["spec"]["schedulingGroup"] = {"podGroupName": fields["group"]} if "group" in fields else None
    return obj


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({}, None),
        ({"name": "train", "size": "8"}, Gang("train", GangSource.ANNOTATION, 8)),
        ({"label": "train"}, Gang("train", GangSource.COSCHEDULING)),
        ({"label": ""}, None),
        ({"group": "train"}, Gang("train", GangSource.KUBERNETES)),
        ({"group": None}, None),
    ],
)
def test_a_pod_names_its_gang_in_one_of_three_ways(fields: dict[str, Any], expected: Gang | None) -> None:
    assert gang.parse(member(**fields)) == (expected, [])


@pytest.mark.parametrize(
    "size", ["0", "-1", "08", "8.0", "1e2", " 8", "\u0663", "8Gi", "", "9" * 5000, str(MAX_SIZE + 1)]
)
def test_a_size_that_cannot_be_read_is_refused_by_name(size: str) -> None:
    found, (problem,) = gang.parse(member(name="train", size=size))
    assert found is None
    assert str(problem).startswith(f"metadata.annotations[{names.GANG_SIZE}]:")
    assert len(str(problem)) < 300


@pytest.mark.parametrize(
    ("fields", "field"),
    [
        ({"name": "train"}, f"metadata.annotations[{names.GANG_SIZE}]"),
        ({"size": "8"}, f"metadata.annotations[{names.GANG_SIZE}]"),
        ({"name": "Train 1", "size": "8"}, f"metadata.annotations[{names.GANG}]"),
        ({"name": "a..b", "size": "8"}, f"metadata.annotations[{names.GANG}]"),
        ({"name": "x" * 254, "size": "8"}, f"metadata.annotations[{names.GANG}]"),
    ],
)
def test_annotations_that_are_not_clear_are_refused_by_name(fields: dict[str, Any], field: str) -> None:
    found, (problem,) = gang.parse(member(**fields))
    assert (found, problem.field) == (None, field)
    assert problem in request.parse(member(**fields)).problems


def test_a_changed_label_makes_no_problem_of_a_pod_that_may_be_bound() -> None:
    """A pod with a problem is in no account: a bound pod's cards would look free."""
    both = member(name="train", size="8", label="Other_1")
    assert gang.parse(both) == (Gang("train", GangSource.ANNOTATION, 8), [])
    assert gang.parse(member(label="Other_1")) == (Gang("Other_1", GangSource.COSCHEDULING), [])
    assert [problem.field for problem in gang.conflicts(both)] == [f"metadata.annotations[{names.GANG}]"]
    assert gang.conflicts(member(label="train")) == []


def test_a_member_without_gpus_is_known_too() -> None:
    obj = member(label="train") | {"spec": {"containers": [{"name": "launcher"}]}}
    assert request.parse(obj).gang == Gang("train", GangSource.COSCHEDULING)


@given(st.text(max_size=6), st.text(max_size=6))
def test_any_text_is_read_or_refused(name: str, size: str) -> None:
    found, problems = gang.parse(member(name=name, size=size))
    assert (found is None) == bool(problems)
