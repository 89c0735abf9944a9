"""Names of other tools, by which a pod asks vgpushare for nothing."""

from typing import Any

import pytest

from vgpu.domain import names
from vgpu.domain.asks import other_names


def pod(limits: dict[str, str], annotations: dict[str, str] | None = None, **spec: Any) -> dict[str, Any]:
    container = {"name": "main", "resources": {"limits": limits}}
    return {"metadata": {"annotations": annotations or {}}, "spec": {"containers": [container], **spec}}


@pytest.mark.parametrize(
    ("written", "warned"),
    [
        (pod({"nvidia.com/gpu.shared": "1"}), "resources.limits[nvidia.com/gpu.shared]"),
        (pod({"nvidia.com/gpu-mem": "4"}), "resources.limits[nvidia.com/gpu-mem]"),
        (pod({}, {"gpu-fraction": "0.5"}), "metadata.annotations[gpu-fraction]"),
        (pod({"cpu": "1"}, {"gpu-memory": "4000"}, schedulerName=names.SCHEDULER), "metadata.annotations[gpu-memory]"),
    ],
)
def test_a_name_of_another_tool_is_warned_of_by_its_field(written: dict[str, Any], warned: str) -> None:
    (warning,) = other_names.warnings(written)
    assert (warning.field, names.GPU_MEM in warning.why) == (warned, True)


@pytest.mark.parametrize(
    "written",
    [
        pod({"cpu": "1"}),
        pod({"nvidia.com/gpu": "1"}),
        pod({}, {"gpu-fraction": "0.5"}, schedulerName="kai-scheduler"),
        pod({"nvidia.com/gpumem": "4000"}, {"gpu-fraction": "0.5"}),
        pod({names.GPU_MEM: "4000", "nvidia.com/gpu-mem": "4000"}),
    ],
)
def test_nothing_is_said_of_pods_that_another_tool_or_the_webhook_reads(written: dict[str, Any]) -> None:
    assert list(other_names.warnings(written)) == []


def test_an_explanation_says_what_to_write_instead_of_an_annotation_for_a_part_of_a_card() -> None:
    said = other_names.why_none(pod({"cpu": "1"}, {"gpu-fraction": "0.5"}))
    assert said.startswith(
        "asks for no GPU by its resources; its annotation gpu-fraction: 0.5 is read by KAI Scheduler"
    )
    assert f"{names.GPU_MEM_PERCENTAGE} in resources.limits of a container: 50 in place of 0.5" in said
