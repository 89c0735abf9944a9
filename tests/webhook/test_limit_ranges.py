"""Defaults of a LimitRange for gpu-cores."""

from typing import Any

import pytest

from tests.webhook import builders
from vgpu.domain import names
from webhook import mutate, validate

RULES = builders.rules(builders.H100)
CORES = {names.GPU_CORES: "30"}


def defaulted(limits: dict[str, str], set_by_limit_ranger: str) -> dict[str, Any]:
    pod = builders.pod(limits, {"kubernetes.io/limit-ranger": f"LimitRanger plugin set: {set_by_limit_ranger}"})
    pod["spec"]["containers"][0]["resources"]["requests"] = dict(limits)
    return pod


@pytest.mark.parametrize(
    "set_by_limit_ranger",
    [
        "vgpu.io/gpu-cores limit for container main",
        "cpu, vgpu.io/gpu-cores request for container main; vgpu.io/gpu-cores limit for container main",
        "cpu request for init container x; vgpu.io/gpu-cores limit for container main",
    ],
)
def test_a_container_without_a_gpu_loses_the_default(set_by_limit_ranger: str) -> None:
    pod = mutate.mutate(defaulted({"cpu": "1"} | CORES, set_by_limit_ranger), RULES).pod
    resources = pod["spec"]["containers"][0]["resources"]
    assert resources == {"limits": {"cpu": "1"}, "requests": {"cpu": "1"}}
    assert "schedulerName" not in pod["spec"]
    assert validate.on_create(pod, RULES) == []


def test_a_whole_card_loses_the_default_and_a_share_keeps_it() -> None:
    said = "vgpu.io/gpu-cores limit for container main"
    whole = mutate.mutate(defaulted({names.GPU: "1"} | CORES, said), RULES).pod
    assert names.GPU_CORES not in whole["spec"]["containers"][0]["resources"]["limits"]
    assert validate.on_create(whole, RULES) == []
    share = mutate.mutate(defaulted({names.GPU_MEM: "1024"} | CORES, said), RULES).pod
    assert share["spec"]["containers"][0]["resources"]["limits"][names.GPU_CORES] == "30"


@pytest.mark.parametrize("said", ["cpu limit for container main", "vgpu.io/gpu-cores limit for container another"])
def test_cores_that_a_user_wrote_alone_are_still_refused(said: str) -> None:
    pod = defaulted(CORES, said)
    assert mutate.mutate(pod, RULES).pod is pod
    assert "needs vgpu.io/gpu-mem" in str(validate.on_create(pod, RULES)[0])
