"""Warnings about pods that are admitted, and most likely not meant."""

from typing import Any

import pytest

from tests import strategies
from vgpu.domain import names, new_pods, pod_warnings
from vgpu.domain.asks import translate


def pod(metadata: dict[str, Any] | None = None, resources: dict[str, str] | None = None) -> dict[str, Any]:
    made = strategies.pod(strategies.container(gpu_mem=4096))
    made["metadata"] = {"name": "p", **(metadata or {})}
    made["spec"]["containers"][0]["resources"]["limits"] |= resources or {}
    return made


def said(made: dict[str, Any]) -> list[str]:
    return [str(warning) for warning in pod_warnings.warnings(made)]


@pytest.mark.parametrize(
    ("made", "expected"),
    [
        (
            pod({"annotations": {names.IDLE_ACTION: "evict"}}),
            f'metadata.annotations[{names.IDLE_ACTION}]: "evict" has no effect without {names.IDLE_AFTER}, on the pod',
        ),
        (
            pod({"labels": {names.COMPUTE_POLICY: "fixed"}}),
            f'metadata.labels[{names.COMPUTE_POLICY}]: "fixed" has no effect as a label; write it in metadata',
        ),
        (
            pod({"labels": {names.GPU_MEM: "4096"}}),
            f'metadata.labels[{names.GPU_MEM}]: "4096" has no effect as a label; write it in resources.limits of a',
        ),
        (
            pod({"annotations": {"vgpushare.io/compute-polcy": "fixed"}}),
            'metadata.annotations[vgpushare.io/compute-polcy]: "fixed" is not known to vgpushare; did you mean',
        ),
        (
            pod(resources={"nvidia.com/gpu-cores": "30"}),
            'spec.containers[main].resources.limits[nvidia.com/gpu-cores]: "30" is not known to vgpushare; did you',
        ),
    ],
)
def test_what_has_no_effect_is_warned_of(made: dict[str, Any], expected: str) -> None:
    (warning,) = said(made)
    assert warning.startswith(expected)


def test_an_amount_that_was_meant_in_gib_is_named_by_its_field() -> None:
    made = pod(resources={names.GPU_MEM: "4"})
    made["spec"]["initContainers"] = [strategies.container("init", gpu_mem=2)]
    field = f"resources.limits[{names.GPU_MEM}]"
    why = "is in MiB, and too little for a CUDA program; for"
    assert said(made) == [
        f'spec.initContainers[init].{field}: "2" {why} 2 GiB write 2048',
        f'spec.containers[main].{field}: "4" {why} 4 GiB write 4096',
    ]


def test_nothing_is_said_of_pods_that_mean_what_they_say() -> None:
    both = {names.IDLE_ACTION: "evict", names.IDLE_AFTER: "30m", "example.org/gpu": "x"}
    assert said(pod({"annotations": both, "labels": {names.SYNTHETIC: "true", "app": "vgpu"}})) == []
    assert said(pod(resources={"amd.com/gpu": "1", "example.org/license": "1"})) == []
    none = pod({"labels": {names.GPU_MEM: "4096"}})
    none["spec"]["containers"][0]["resources"] = {}
    assert said(none) == []  # the webhook sees no such pod: explain and simulate say it


def test_a_resource_among_the_annotations_is_told_where_it_belongs() -> None:
    made = pod({"annotations": {names.GPU_CORES: "30", f"{names.DOMAIN}/GPU-policy": "spread"}})
    problems = new_pods.problems(translate.translate(made, tuple, 1024, 256), 256)
    assert [problem.why for problem in problems] == [
        "is not an annotation of vgpu.io; it is a resource, write it in resources.limits of a container",
        "is not an annotation of vgpu.io; did you mean vgpu.io/gpu-policy?",
    ]


def test_a_name_that_is_none_of_nvidias_is_refused_with_what_was_meant() -> None:
    made = pod(resources={"nvidia.com/gpu-cores": "30", "nvidia.com/gpu": "1"})
    problems = new_pods.problems(translate.translate(made, tuple, 1024, 256), 256)
    assert [problem.why.partition(";")[0] for problem in problems] == [
        "is not known to vgpushare", "is given out by NVIDIA's device plugin, on other nodes",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("cores", "gpus", "hint"),
    [
        ("150", None, "1 to 100; 150 over 2 cards: vgpu.io/gpu: 2"),
        ("101", None, "1 to 100; 102 over 2 cards: vgpu.io/gpu: 2"),
        ("240", 2, "1 to 200; 240 over 3 cards: vgpu.io/gpu: 3"),
        ("0", None, "1 to 100"),
    ],
)
def test_more_time_than_cards_have_is_refused_with_how_many_cards_have_it(
    cores: str, gpus: int | None, hint: str
) -> None:
    made = pod(resources={names.GPU_CORES: cores, **({names.GPU: str(gpus)} if gpus else {})})
    (problem,) = new_pods.problems(translate.translate(made, tuple, 1024, 256), 256)
    assert problem.why.endswith(hint)


def test_a_gang_of_shares_is_warned_that_two_of_its_pods_may_get_one_card() -> None:
    """Two ranks of NCCL cannot use one card; who means it says so, and pods of whole cards never share one."""
    gang = {names.GANG: "train", names.GANG_SIZE: "2"}
    (warning,) = said(pod({"annotations": gang}))
    assert warning.startswith(f'metadata.annotations[{names.GANG}]: "train" two of its pods may get shares of one card')
    for value in ("own", "any"):
        assert said(pod({"annotations": {**gang, names.GANG_CARDS: value}})) == []
    whole = strategies.pod(strategies.container(gpu=1), annotations=gang)
    assert said(whole) == []
