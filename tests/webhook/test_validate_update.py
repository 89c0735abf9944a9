"""Updates of pods: only changed fields are validated."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.webhook import builders
from vgpu.domain import names
from vgpu.domain.asks import request
from webhook import mutate, validate

RULES = builders.rules(builders.H100)
SHARE = {names.GPU_MEM: "8192"}
BOUND = builders.pod({names.GPU_MEM: "16Gi"}, {names.ASSIGNMENT: "{}", names.GPU_POLICY: "odd"}, nodeName="n1")


def changed(pod: dict[str, Any], **annotations: str | None) -> dict[str, Any]:
    keys = {"assignment": names.ASSIGNMENT, "gpu_policy": names.GPU_POLICY, "compute": names.COMPUTE_POLICY}
    merged = dict(pod["metadata"].get("annotations", {}))
    for key, value in annotations.items():
        merged |= {keys.get(key, key): value}
    kept = {key: value for key, value in merged.items() if value is not None}
    return {**pod, "metadata": {**pod["metadata"], "annotations": kept}}


@pytest.mark.parametrize("value", ["x", "", None])
def test_an_assignment_may_not_change(value: str | None) -> None:
    (problem,) = validate.on_update(BOUND, changed(BOUND, assignment=value))
    assert problem.field == f"metadata.annotations[{names.ASSIGNMENT}]"


@pytest.mark.parametrize("limits", [None, SHARE])
def test_an_assignment_may_not_be_added(limits: dict[str, str] | None) -> None:
    pod = builders.pod(limits)
    (problem,) = validate.on_update(pod, changed(pod, assignment="x"))
    assert problem.field == f"metadata.annotations[{names.ASSIGNMENT}]"


def test_labels_finalizers_and_status_of_an_invalid_pod_may_change() -> None:
    new = changed(BOUND, other="y")
    new["metadata"] |= {"labels": {"a": "b"}, "finalizers": ["c"], "deletionTimestamp": "now"}
    new["status"] = {"phase": "Failed"}
    assert validate.on_update(BOUND, new) == []


def test_a_resize_is_admitted() -> None:
    pod = mutate.mutate(builders.pod(SHARE | {"cpu": "1"}, nodeName="n1"), RULES).pod
    new = mutate.mutate(builders.pod(SHARE | {"cpu": "2"}, nodeName="n1"), RULES).pod
    assert validate.on_update(pod, new) == []


def test_the_annotations_of_a_bound_pod_may_not_change() -> None:
    (problem,) = validate.on_update(BOUND, changed(BOUND, compute="best-effort"))
    assert problem.field == f"metadata.annotations[{names.COMPUTE_POLICY}]"


def test_the_annotations_of_a_pending_pod_may_change_to_valid_values() -> None:
    pod = builders.pod(SHARE, {names.COMPUTE_POLICY: "odd"})
    assert validate.on_update(pod, changed(pod, gpu_policy="spread")) == []
    (problem,) = validate.on_update(pod, changed(pod, gpu_policy="tetris"))
    assert problem.field == f"metadata.annotations[{names.GPU_POLICY}]"


def test_the_gang_of_a_pending_pod_may_change_to_a_valid_one() -> None:
    pod = builders.pod({names.GPU_MEM: "256"})
    joined = builders.pod({names.GPU_MEM: "256"}, {names.GANG: "train", names.GANG_SIZE: "2"})
    assert validate.on_update(pod, joined) == []
    (problem,) = validate.on_update(pod, builders.pod({names.GPU_MEM: "256"}, {names.GANG: "t", names.GANG_SIZE: "x"}))
    assert problem.field == f"metadata.annotations[{names.GANG_SIZE}]"


def test_the_idle_annotations_of_a_bound_pod_may_change_to_valid_values() -> None:
    def changed_to(after: str) -> list[str]:
        metadata = {
            **BOUND["metadata"],
            "annotations": {**BOUND["metadata"].get("annotations", {}), names.IDLE_AFTER: after},
        }
        return [problem.field for problem in validate.on_update(BOUND, {**BOUND, "metadata": metadata})]

    assert changed_to("never") == []
    assert changed_to("soon") == [f"metadata.annotations[{names.IDLE_AFTER}]"]


def test_an_ephemeral_container_gets_no_gpu() -> None:
    def debugged(**more: Any) -> list[str]:
        new = {**BOUND, "spec": {**BOUND["spec"], "ephemeralContainers": [{"name": "d", **more}]}}
        assert validate.on_update(new, new) == []
        return [problem.field for problem in validate.on_update(BOUND, new)]

    name = "NVIDIA_VISIBLE_DEVICES"
    void = [{"name": name, "value": "void"}]
    assert debugged(env=void) == []
    assert debugged() == [f"spec.ephemeralContainers[d].env[{name}]"]
    env = [{"name": "NVIDIA_VISIBLE_DEVICES", "value": "all"}]
    assert debugged(env=env) == ["spec.ephemeralContainers[d].env[NVIDIA_VISIBLE_DEVICES]"]
    mount = [{"name": "v", "mountPath": "/etc/ld.so.preload"}]
    assert debugged(env=void, volumeMounts=mount) == ["spec.ephemeralContainers[d].volumeMounts[v].mountPath"]
    assert "spec.ephemeralContainers[d].resources" in debugged(env=void, resources={"limits": SHARE})


@given(builders.pods())
def test_an_update_without_a_change_is_never_refused(pod: dict[str, Any]) -> None:
    assert validate.on_update(pod, pod) == []


VALUES = st.sampled_from([None, "2", "5", "fixed", "burst", "binpack", "a=b", "train", "x y", ""])


@pytest.mark.parametrize(
    ("annotations", "field"),
    [
        ({names.GANG: "train"}, names.GANG_SIZE),
        ({names.GANG_SIZE: "2"}, names.GANG_SIZE),
        ({names.COMPUTE_POLICY: "fixed"}, names.COMPUTE_POLICY),
        ({names.GANG: "train", names.GANG_SIZE: "2", names.GPU_AFFINITY: "a=b"}, names.GPU_AFFINITY),
    ],
)
def test_an_annotation_that_lacks_another_or_contradicts_it_is_refused(annotations: dict[str, str], field: str) -> None:
    pod = builders.pod({names.GPU_MEM: "256"})
    (problem,) = validate.on_update(pod, changed(pod, **annotations))
    assert problem.field == f"metadata.annotations[{field}]"


@given(st.dictionaries(st.sampled_from(names.USER_ANNOTATIONS), VALUES, max_size=3))
def test_no_update_makes_a_valid_request_invalid(annotations: dict[str, str | None]) -> None:
    pod = builders.pod(SHARE, {names.GPU_POLICY: "spread"})
    new = changed(pod, **annotations)
    if not validate.on_update(pod, new):
        assert request.parse(new).problems == ()
