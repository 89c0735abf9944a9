"""What the webhook changes in a pod."""

from typing import Any

import pytest
from hypothesis import event, given

from tests.webhook import builders
from vgpu.domain import names
from vgpu.domain.asks import aliases, manifest, request
from webhook import mutate, validate

RULES = builders.rules(builders.H100)
SHARE = {names.GPU_MEM: "8192", names.GPU_CORES: "30"}


def env(container: dict[str, Any]) -> dict[str, str]:
    return {variable["name"]: variable["value"] for variable in container["env"]}


def test_a_share_gets_slices_a_scheduler_and_its_limits_as_environment() -> None:
    spec = mutate.mutate(builders.pod(SHARE), RULES).pod["spec"]
    (container,) = spec["containers"]
    assert spec["schedulerName"] == names.SCHEDULER
    assert container["resources"]["limits"] == SHARE | {names.SLICE: "32"}
    assert container["resources"]["requests"] == {names.SLICE: "32"}
    assert env(container) == {"VGPU_MEMORY_LIMIT": "8192MiB", "VGPU_CORES_LIMIT": "30", "VGPU_COMPUTE_POLICY": "fixed"}


def test_several_cards_get_slices_for_all_and_limits_for_each() -> None:
    limits = {names.GPU_MEM: "18432", names.GPU_CORES: "240", names.GPU: "3"}
    (container,) = mutate.mutate(builders.pod(limits), RULES).pod["spec"]["containers"]
    assert container["resources"]["limits"][names.SLICE] == "72"
    assert env(container)["VGPU_MEMORY_LIMIT"] == "6144MiB"
    assert env(container)["VGPU_CORES_LIMIT"] == "80"


def test_the_last_slice_may_be_partial() -> None:
    (container,) = mutate.mutate(builders.pod({names.GPU_MEM: "257"}), RULES).pod["spec"]["containers"]
    assert container["resources"]["limits"][names.SLICE] == "2"


def test_whole_cards_have_no_limits_in_the_environment() -> None:
    (container,) = mutate.mutate(builders.pod({names.GPU: "2"}), RULES).pod["spec"]["containers"]
    assert container["resources"]["limits"] == {names.GPU: "2", names.CARD: "2"}
    assert "env" not in container


@pytest.mark.parametrize(
    ("annotations", "policy"),
    [({}, "burst"), ({names.COMPUTE_POLICY: "best-effort"}, "best-effort")],
)
def test_without_cores_the_default_compute_policy_is_burst(annotations: dict[str, str], policy: str) -> None:
    (container,) = mutate.mutate(builders.pod({names.GPU_MEM: "256"}, annotations), RULES).pod["spec"]["containers"]
    assert env(container)["VGPU_COMPUTE_POLICY"] == policy


def test_a_memory_policy_is_set_in_the_environment() -> None:
    (container,) = mutate.mutate(builders.pod(SHARE, {names.MEMORY_POLICY: "spill"}), RULES).pod["spec"]["containers"]
    assert env(container)["VGPU_MEMORY_POLICY"] == "spill"
    (container,) = mutate.mutate(builders.pod(SHARE), RULES).pod["spec"]["containers"]
    assert "VGPU_MEMORY_POLICY" not in env(container)


def test_an_init_container_gets_as_many_slices_as_the_app_container_after_it() -> None:
    init = [builders.container("init", {names.GPU_MEM: "512"})]
    spec = mutate.mutate(builders.pod({names.GPU_MEM: "2048"}, initContainers=init), RULES).pod["spec"]
    assert spec["initContainers"][0]["resources"]["limits"][names.SLICE] == "8"
    assert env(spec["initContainers"][0])["VGPU_MEMORY_LIMIT"] == "512MiB"


def test_containers_without_a_share_get_no_cards_whatever_their_image_sets() -> None:
    pod = builders.pod(SHARE, initContainers=[builders.container("side")])
    pod["spec"]["containers"].append(
        builders.container("chosen", env=[{"name": "NVIDIA_VISIBLE_DEVICES", "value": "none"}])
    )
    spec = mutate.mutate(pod, RULES).pod["spec"]
    assert env(spec["initContainers"][0]) == {"NVIDIA_VISIBLE_DEVICES": "void"}
    assert env(spec["containers"][1]) == {"NVIDIA_VISIBLE_DEVICES": "none"}
    assert "NVIDIA_VISIBLE_DEVICES" not in env(spec["containers"][0])


def test_the_users_fields_stay() -> None:
    variables = [{"name": "A", "value": "1"}, {"name": names.MEMORY_ENV, "value": "mine"}]
    pod = builders.pod(schedulerName="own") | {}
    pod["spec"]["containers"] = [builders.container(limits=SHARE | {"cpu": "2"}, env=variables)]
    spec = mutate.mutate(pod, RULES).pod["spec"]
    assert spec["schedulerName"] == "own"
    assert spec["containers"][0]["env"][:2] == variables
    assert env(spec["containers"][0])[names.MEMORY_ENV] == "mine"
    assert spec["containers"][0]["resources"]["limits"]["cpu"] == "2"


def test_names_of_other_projects_are_removed_from_limits_and_requests() -> None:
    foreign = {"nvidia.com/gpu": "2", "nvidia.com/gpumem": "3000", "nvidia.com/gpucores": "30"}
    pod = builders.pod()
    pod["spec"]["containers"][0]["resources"] = {"limits": {**foreign, "cpu": "1"}, "requests": foreign}
    (container,) = mutate.mutate(pod, RULES).pod["spec"]["containers"]
    ours = {names.GPU: "2", names.GPU_MEM: "6000", names.GPU_CORES: "60", names.SLICE: "24"}
    assert container["resources"] == {"limits": ours | {"cpu": "1"}, "requests": ours}


def test_the_scheduler_name_of_another_project_is_replaced() -> None:
    pod = builders.pod({"volcano.sh/vgpu-memory": "1024"}, schedulerName="volcano")
    assert mutate.mutate(pod, RULES).pod["spec"]["schedulerName"] == names.SCHEDULER


def test_a_percentage_becomes_mib_of_every_card() -> None:
    limits = {names.GPU_MEM_PERCENTAGE: "50", names.GPU: "2"}
    (container,) = mutate.mutate(builders.pod(limits), RULES).pod["spec"]["containers"]
    half = 158 * 256  # of 317 slices, the last of them a partial one
    assert container["resources"]["limits"] == {
        names.GPU: "2",
        names.GPU_MEM: str(2 * half),
        names.SLICE: str(2 * 158),
    }


@pytest.mark.parametrize("limits", [SHARE, None, {names.GPU_MEM: "16Gi"}, {"nvidia.com/gpumem": "4000"}])
def test_a_copy_of_a_bound_pod_loses_its_assignment_and_nothing_else(limits: dict[str, str] | None) -> None:
    new = builders.pod(limits, {names.GPU_POLICY: "spread", "a": "b"})
    copy = builders.pod(limits, {names.ASSIGNMENT: '{"v":1}', names.GPU_POLICY: "spread", "a": "b"})
    mutated = mutate.mutate(copy, RULES)
    assert mutated.pod == mutate.mutate(new, RULES).pod
    (said,) = mutated.said
    assert said.field == f"metadata.annotations[{names.ASSIGNMENT}]"
    assert mutate.mutate(mutated.pod, RULES).said == ()


@pytest.mark.parametrize("limits", [None, {"cpu": "1"}, {"nvidia.com/gpu": "1"}, {names.GPU_MEM: "16Gi"}])
def test_pods_without_a_share_and_invalid_pods_are_not_changed(limits: dict[str, str] | None) -> None:
    pod = builders.pod(limits)
    assert mutate.mutate(pod, RULES).pod is pod


@given(builders.pods())
def test_mutation_is_idempotent(pod: dict[str, Any]) -> None:
    once = mutate.mutate(pod, RULES).pod
    event("changed" if once != pod else "left alone")
    assert mutate.mutate(once, RULES).pod == once


@pytest.mark.heavy
@given(builders.pods())
def test_a_copy_of_an_admitted_pod_is_admitted(pod: dict[str, Any]) -> None:
    """All that admission, the scheduler and the extender add to a pod may come back with a copy of it."""
    live = mutate.mutate(pod, RULES).pod
    if validate.on_create(live, RULES):
        return
    event("admitted")
    bound = {**manifest.annotations(live), names.ASSIGNMENT: "{}"}
    copy = {**live, "metadata": {**live["metadata"], "annotations": bound}}
    assert validate.on_create(mutate.mutate(copy, RULES).pod, RULES) == []


@pytest.mark.heavy
@given(builders.pods())
def test_the_patch_makes_the_mutated_pod_and_overwrites_no_list(pod: dict[str, Any]) -> None:
    after = mutate.mutate(pod, RULES).pod
    patch = mutate.patch(pod, after)
    assert builders.apply(patch, pod) == after
    assert all(step["op"] != "replace" or step["path"] == "/spec/schedulerName" for step in patch)


@given(builders.pods())
def test_a_mutated_valid_pod_is_admitted(pod: dict[str, Any]) -> None:
    pod["spec"].pop("nodeName", None)
    pod["spec"].pop("ephemeralContainers", None)
    pod["metadata"].pop("annotations", None)
    for container in [*pod["spec"]["containers"], *pod["spec"]["initContainers"]]:
        container.pop("env", None)
        is_translated = not aliases.HAMI.marker_names().isdisjoint(request.amounts(container))
        for amounts in container.get("resources", {}).values():
            for name in (*names.KUBELET_RESOURCES, *(() if is_translated else ("nvidia.com/gpu",))):
                amounts.pop(name, None)
    after = mutate.mutate(pod, RULES).pod
    if after is pod:
        return
    event("mutated")
    assert validate.on_create(dict(after), RULES) == []
    parsed = request.parse(after)
    assert parsed.request is not None
    assert parsed.problems == ()
