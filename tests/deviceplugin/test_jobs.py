"""PreStartContainer writes the job of a gang's member; nothing that a user writes makes a pod a member."""

import json
from typing import Any

import pytest

from tests.deviceplugin.plugin_parts import IDS, PluginParts
from tests.strategies import container
from tests.vgpu.node.builders import bound, manifest
from vgpu.domain import names
from vgpu.domain.formats import limits
from vgpu.node.containers import bound_pod
from vgpu.node.containers.bound_pod import BoundPod

OWNER = {"controller": True, "kind": "Job", "name": "train", "uid": "job-1"}
PLACED = {names.PLACED_GANG: "annotation/train"}


def member(name: str = "p", owner: dict[str, Any] | None = OWNER, **annotations: str) -> BoundPod:
    written = PLACED | {f"{names.DOMAIN}/{key.replace('_', '-')}": value for key, value in annotations.items()}
    return bound(name, container(gpu_mem=1024, gpu_cores=10), annotations=written, owner=owner)


async def written_job(parts: PluginParts, pod: BoundPod) -> bytes | None:
    parts.pods.upsert(pod)
    allocated = parts.allocate(IDS, pod)
    parts.set_holder(pod, IDS)
    assert await parts.prove() == ""
    return limits.decode(parts.files.limits(allocated.id).read_bytes()).job


async def test_a_members_limits_name_its_job(parts: PluginParts) -> None:
    pod = member()
    assert await written_job(parts, pod) == pod.job
    assert pod.job is not None


def test_members_of_one_gang_and_controller_are_of_one_job() -> None:
    assert member("p").job == member("q").job
    assert member("p").job != member("q", {**OWNER, "uid": "job-2"}).job


@pytest.mark.parametrize(
    "pod",
    [
        bound("p", annotations={names.GANG: "train", names.GANG_SIZE: "2"}, owner=OWNER),
        member(owner=None),
        member(owner={**OWNER, "controller": False}),
        member(compute_policy="space", space_group="models"),
    ],
    ids=["placed by itself", "no controller", "an owner that is none", "in space"],
)
def test_other_pods_are_of_no_job(pod: BoundPod) -> None:
    assert pod.job is None


def test_a_pod_that_names_a_gang_by_a_label_is_of_no_job() -> None:
    """A label may change while the pod runs; what counts is what the extender wrote."""
    made = manifest("p", owner=OWNER)
    made["metadata"]["labels"] = {names.POD_GROUP_LABEL: "train", names.PLACED_GANG: "annotation/train"}
    assert bound_pod.decode(json.dumps(made).encode()).job is None


def test_a_pod_of_another_namespace_is_of_another_job() -> None:
    """Even with the same gang's name and the UID of the other namespace's controller."""
    made = manifest("p", annotations=PLACED, owner=OWNER)
    made["metadata"]["namespace"] = "foreign"
    found = bound_pod.decode(json.dumps(made).encode()).job
    assert found is not None
    assert found != member().job


async def test_a_pod_by_itself_has_limits_without_a_job(parts: PluginParts) -> None:
    assert await written_job(parts, bound("p", container(gpu_mem=1024), owner=OWNER)) is None
