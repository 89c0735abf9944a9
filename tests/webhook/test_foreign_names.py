"""Every resource and annotation in the documentation of HAMi, gpushare and Volcano: translated, or refused by name."""

import re
from pathlib import Path

import pytest

from tests.webhook import builders
from vgpu.domain import names
from vgpu.domain.asks import aliases, foreign_annotations
from webhook import mutate, validate

RULES = builders.rules(builders.H100)
GUIDE = (Path(__file__).parents[2] / "docs" / "guide.md").read_text()
MEMORY = {"nvidia.com/gpumem": "1024"}

RESOURCES = [
    ({"aliyun.com/gpu-mem": "3"}, {names.GPU_MEM: "3072"}),
    ({"nvidia.com/gpumem": "3000"}, {names.GPU_MEM: "3000"}),
    ({"nvidia.com/gpumem": "3000", "nvidia.com/gpu": "2"}, {names.GPU_MEM: "6000", names.GPU: "2"}),
    ({"nvidia.com/gpumem-percentage": "50"}, {names.GPU_MEM: "40448"}),
    ({"nvidia.com/gpucores": "30", **MEMORY}, {names.GPU_CORES: "30", names.GPU_MEM: "1024"}),
    ({"volcano.sh/vgpu-memory": "3000"}, {names.GPU_MEM: "3000"}),
    ({"volcano.sh/vgpu-memory-percentage": "50"}, {names.GPU_MEM: "40448"}),
    ({"volcano.sh/vgpu-cores": "50", "volcano.sh/vgpu-memory": "1"}, {names.GPU_CORES: "50", names.GPU_MEM: "1"}),
    ({"volcano.sh/vgpu-number": "2"}, {names.GPU: "2"}),
    ({"volcano.sh/gpu-memory": "1024"}, {names.GPU_MEM: "1024"}),
    ({"volcano.sh/gpu-number": "1"}, {names.GPU: "1"}),
]
ANNOTATIONS = [
    ("nvidia.com/use-gputype", "Tesla V100-PCIE-32GB, NVIDIA-NVIDIA H100", names.USE_GPU_MODEL),
    ("nvidia.com/nouse-gputype", "A100,V100", names.AVOID_GPU_MODEL),
    ("nvidia.com/use-gpuuuid", "GPU-AAA,GPU-BBB", names.USE_GPU_UUID),
    ("nvidia.com/nouse-gpuuuid", "GPU-AAA", names.AVOID_GPU_UUID),
    ("hami.io/node-scheduler-policy", "spread", names.NODE_POLICY),
    ("hami.io/gpu-scheduler-policy", "binpack", names.GPU_POLICY),
]
REFUSED_VALUES = [
    ("hami.io/gpu-scheduler-policy", "topology-aware"),
    ("hami.io/gpu-scheduler-policy", "mutex"),
    ("hami.io/gpu-scheduler-policy", "fragmentation"),
    ("hami.io/node-scheduler-policy", "topology"),
    ("hami.io/node-scheduler-policy", "numa-first"),
    ("nvidia.com/use-gputype", "x" * 200_000),
    ("nvidia.com/use-gpuuuid", "a,,b"),
    ("nvidia.com/vgpu-mode", "mig"),
    ("nvidia.com/vgpu-mode", "mps"),
    ("volcano.sh/vgpu-mode", "mig"),
    ("nvidia.com/numa-bind", "true"),
]


@pytest.mark.parametrize(
    ("name", "text", "why"),
    [
        ("nvidia.com/gpumem", "3Gi", "must be a whole number of MiB, 1 to 16777216; for 3Gi write 3072"),
        ("aliyun.com/gpu-mem", "3Gi", "must be a whole number of GiB, 1 to 16384; for 3Gi write 3"),
        ("aliyun.com/gpu-mem", "512Mi", "must be a whole number of GiB, 1 to 16384"),
    ],
)
def test_a_foreign_amount_with_a_unit_is_refused_with_the_number_to_write(name: str, text: str, why: str) -> None:
    (problem,) = validate.on_create(builders.pod({name: text}), RULES)
    assert problem.why == why


@pytest.mark.parametrize(("theirs", "ours"), RESOURCES, ids=lambda value: "+".join(sorted(value)))
def test_resources_are_translated(theirs: dict[str, str], ours: dict[str, str]) -> None:
    (container,) = mutate.mutate(builders.pod(theirs), RULES).pod["spec"]["containers"]
    limits = container["resources"]["limits"]
    assert {name: value for name, value in limits.items() if name not in names.KUBELET_RESOURCES} == ours


@pytest.mark.parametrize("name", sorted(aliases.REFUSED))
@pytest.mark.parametrize("beside", [{}, MEMORY])
def test_resources_without_a_translation_are_refused_by_name(name: str, beside: dict[str, str]) -> None:
    pod = mutate.mutate(builders.pod({name: "1", **beside}), RULES).pod
    assert [problem.field for problem in validate.on_create(dict(pod), RULES)] == [
        f"spec.containers[main].resources.limits[{name}]"
    ]


@pytest.mark.parametrize(("name", "value", "ours"), ANNOTATIONS, ids=lambda value: value)
def test_annotations_are_translated(name: str, value: str, ours: str) -> None:
    pod = mutate.mutate(builders.pod(MEMORY, {name: value}), RULES).pod
    assert pod["metadata"]["annotations"][ours] == value.replace(", NVIDIA-", ",")
    assert validate.on_create(dict(pod), RULES) == []
    assert mutate.mutate(pod, RULES).pod == pod


@pytest.mark.parametrize(("name", "value"), foreign_annotations.WITHOUT_EFFECT.items())
def test_annotations_that_ask_for_what_is_done_anyway_are_admitted(name: str, value: str) -> None:
    pod = mutate.mutate(builders.pod(MEMORY, {name: value}), RULES).pod
    assert validate.on_create(dict(pod), RULES) == []


@pytest.mark.parametrize(
    ("name", "value"), [*REFUSED_VALUES, *((name, "x") for name in foreign_annotations.REFUSED)], ids=lambda v: v[:40]
)
def test_annotations_without_a_translation_are_refused_by_name(name: str, value: str) -> None:
    problems = validate.on_create(dict(mutate.mutate(builders.pod(MEMORY, {name: value}), RULES).pod), RULES)
    assert f"metadata.annotations[{name}]" in [problem.field for problem in problems]
    assert len(validate.message(problems)) < 1000


@pytest.mark.parametrize("name", sorted(foreign_annotations.STATE))
def test_what_another_products_scheduler_has_written_is_removed_from_a_copy(name: str) -> None:
    """A backup of a cluster with that product is restored, and its users keep their manifests."""
    mutated = mutate.mutate(builders.pod(MEMORY, {name: "x", "a": "b"}), RULES)
    left = dict(mutated.pod["metadata"]["annotations"])
    left.pop(names.AS_WRITTEN)
    assert left == {"a": "b"}
    assert [problem.field for problem in mutated.said] == [f"metadata.annotations[{name}]"]
    assert validate.on_create(dict(mutated.pod), RULES) == []


def test_a_foreign_annotation_beside_ours_must_say_the_same() -> None:
    theirs = {"hami.io/gpu-scheduler-policy": "spread"}
    for ours, problems in (("spread", []), ("binpack", ["metadata.annotations[hami.io/gpu-scheduler-policy]"])):
        pod = mutate.mutate(builders.pod(MEMORY, {**theirs, names.GPU_POLICY: ours}), RULES).pod
        assert [
            problem.field for problem in validate.on_create(dict(pod), RULES) if "hami" in problem.field
        ] == problems


def test_a_foreign_annotation_does_not_change_after_creation() -> None:
    old = builders.pod({names.GPU_MEM: "1"}, {"hami.io/gpu-scheduler-policy": "spread"})
    new = builders.pod({names.GPU_MEM: "1"}, {"hami.io/gpu-scheduler-policy": "binpack"})
    (problem,) = validate.on_update(old, new)
    assert problem.field == "metadata.annotations[hami.io/gpu-scheduler-policy]"


@pytest.mark.parametrize("name", [*(name for name, *_ in ANNOTATIONS), *sorted(foreign_annotations.STATE)])
def test_pods_without_a_share_keep_their_annotations(name: str) -> None:
    pod = builders.pod({"nvidia.com/gpu": "1"}, {name: "anything"})
    assert mutate.mutate(pod, RULES).pod is pod
    assert validate.on_create(pod, RULES) == []


def test_the_guide_names_every_foreign_name() -> None:
    known = foreign_annotations.NAMES | aliases.MARKER_NAMES | {"nvidia.com/gpu"}
    assert known <= set(re.findall(r"`([\w./-]+)`", GUIDE))
