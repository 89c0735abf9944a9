"""Requests of pods: parsing, division over cards, init containers and sidecars."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.strategies import container, pod
from vgpu.domain import names
from vgpu.domain.asks import request
from vgpu.domain.asks.policy import ComputePolicy, MemoryPolicy, PackingPolicy
from vgpu.domain.asks.request import ContainerKind


def problems(obj: dict[str, Any]) -> list[str]:
    return [str(problem) for problem in request.parse(obj).problems]


def test_memory_and_cores_on_one_card() -> None:
    parsed = request.parse(pod(container(gpu_mem=8192, gpu_cores=30)))
    assert parsed.problems == ()
    assert parsed.request is not None
    (main,) = parsed.request.containers
    assert (main.gpus, main.memory_mib, main.cores, main.whole) == (1, 8192, 30, False)
    assert parsed.request.kubelet_resource(main, 256) == (names.SLICE, 32)


def test_totals_are_divided_over_the_cards() -> None:
    parsed = request.parse(pod(container(gpu_mem=18432, gpu_cores=240, gpu=3)))
    assert parsed.request is not None
    (main,) = parsed.request.containers
    assert (main.gpus, main.memory_mib, main.cores) == (3, 6144, 80)
    assert parsed.request.kubelet_resource(main, 256) == (names.SLICE, 72)


def test_gpu_alone_is_whole_cards() -> None:
    parsed = request.parse(pod(container(gpu=2)))
    assert parsed.request is not None
    (main,) = parsed.request.containers
    assert main.whole
    assert parsed.request.kubelet_resource(main, 256) == (names.CARD, 2)


def test_the_policy_fixed_needs_a_share_of_the_time() -> None:
    fixed = {names.COMPUTE_POLICY: "fixed"}
    (problem,) = request.parse(pod(container(gpu_mem="1024"), annotations=fixed)).problems
    assert (problem.field, "write vgpu.io/gpu-cores too" in problem.why) == (
        f"metadata.annotations[{names.COMPUTE_POLICY}]",
        True,
    )
    for amounts in ({"gpu_mem": "1024", "gpu_cores": "30"}, {"gpu": "1"}):
        assert not request.parse(pod(container(**amounts), annotations=fixed)).problems


def test_a_pod_without_our_resources_has_no_request() -> None:
    assert request.parse(pod({"name": "main"})) == request.Parsed(None)


@pytest.mark.parametrize(
    ("amounts", "words"),
    [
        ({"gpu_mem": "16Gi"}, "for 16Gi write 16384"),
        ({"gpu_mem": "16G"}, "for 16G write 16384"),
        ({"gpu_mem": "512M"}, "for 512M write 512"),
        ({"gpu_mem": "-1"}, "1 to"),
        ({"gpu_mem": "0"}, "1 to"),
        ({"gpu_mem": "1500m"}, "plain whole number of MiB"),
        ({"gpu_mem": "1e9"}, "1 to 16777216"),
        ({"gpu": "0"}, "plain whole number of GPUs"),
        ({"gpu": "65"}, "1 to 64"),
        ({"gpu_mem": "1024", "gpu_cores": "0"}, "1 to 100"),
        ({"gpu_mem": "1024", "gpu_cores": "101"}, "1 to 100"),
        ({"gpu_mem": "18432", "gpu_cores": "130", "gpu": "3"}, "does not divide evenly over 3 GPUs; write 129 or 132"),
        ({"gpu_mem": "10k", "gpu": "3"}, "is a total of 10000 MiB, and does not divide evenly over 3 GPUs; write 9999"),
        ({"gpu_mem": "2", "gpu": "3"}, "is a total of 2 MiB, and does not divide evenly over 3 GPUs; write 3"),
        ({"gpu_mem": "900", "gpu_cores": "299", "gpu": "3"}, "does not divide evenly over 3 GPUs; write 297 or 300"),
        ({"gpu_cores": "30"}, "needs vgpu.io/gpu-mem"),
        ({"gpu": "1", "gpu_cores": "30"}, "needs vgpu.io/gpu-mem"),
        ({"gpu_mem": "1024", "gpu_mem_percentage": "50"}, "cannot be combined with"),
        ({"slice": "4"}, "is added by the webhook"),
        ({"card": "1"}, "is added by the webhook"),
    ],
)
def test_an_invalid_amount_is_refused_by_its_field(amounts: dict[str, str], words: str) -> None:
    found = problems(pod(container(**amounts)))
    assert any(text.startswith("spec.containers[main].resources.limits[vgpu.io/") and words in text for text in found)


def test_an_unknown_resource_of_the_domain_is_refused() -> None:
    obj = pod({"name": "main", "resources": {"limits": {"vgpu.io/gpu-memory": "1"}}})
    assert "vgpu.io/gpu-memory" in problems(obj)[0]


@pytest.mark.parametrize(
    "annotations",
    [
        {names.NODE_POLICY: "pack"}, {names.GPU_POLICY: ""}, {names.COMPUTE_POLICY: "Fixed"}, {names.PRIORITY: "-1"},
        {names.MEMORY_POLICY: "swap"},
        {names.PRIORITY: "101"}, {names.PRIORITY: "1" * 5000}, {names.USE_GPU_MODEL: "a,,b"}, {names.USE_GPU_UUID: ""},
    ],
)  # fmt: skip
def test_unknown_annotation_values_are_refused(annotations: dict[str, str]) -> None:
    (key,) = annotations
    (problem,) = problems(pod(container(gpu_mem=1), annotations=annotations))
    assert problem.startswith(f"metadata.annotations[{key}]")


def test_annotations_become_options() -> None:
    annotations = {names.NODE_POLICY: "spread", names.COMPUTE_POLICY: "best-effort", names.USE_GPU_MODEL: "H100, a100"}
    annotations |= {names.MEMORY_POLICY: "spill"}
    parsed = request.parse(pod(container(gpu_mem=1, gpu_cores=10), annotations=annotations))
    assert parsed.request is not None
    options = parsed.request.options
    assert options.node_policy is PackingPolicy.SPREAD
    assert options.compute_policy is ComputePolicy.BEST_EFFORT
    assert options.memory_policy is MemoryPolicy.SPILL
    assert options.selector.use_models == ("h100", "a100")
    assert parsed.request.counted_cores(parsed.request.containers[0]) == 0


def test_init_containers_share_the_slices_of_the_first_app_container() -> None:
    obj = pod(container("app", gpu_mem=512), container("other", gpu_mem=256), init=(container("init", gpu_mem=1024),))
    parsed = request.parse(obj)
    assert parsed.problems == ()
    assert parsed.request is not None
    slices = {c.name: parsed.request.slices(c, 256) for c in parsed.request.containers}
    assert slices == {"init": 4, "app": 4, "other": 1}


def test_a_sidecar_has_slices_of_its_own() -> None:
    obj = pod(container("app", gpu_mem=512), init=(container("side", gpu_mem=1024) | {"restartPolicy": "Always"},))
    parsed = request.parse(obj)
    assert parsed.request is not None
    assert parsed.request.containers[0].kind is ContainerKind.SIDECAR
    assert [parsed.request.slices(c, 256) for c in parsed.request.containers] == [4, 2]


@pytest.mark.parametrize(
    "init",
    [{"gpu": 1}, {"gpu_mem": 2048, "gpu": 2}],
    ids=["whole before a share", "two cards before one"],
)
def test_an_init_container_with_another_kind_of_request_is_refused(init: dict[str, int]) -> None:
    obj = pod(container("app", gpu_mem=1024), init=(container("init", **init),))
    assert "spec.initContainers[init]" in problems(obj)[0]


def test_an_init_container_of_another_size_over_several_cards_is_refused() -> None:
    obj = pod(container("app", gpu_mem=1024, gpu=2), init=(container("init", gpu_mem=2048, gpu=2),))
    assert "same memory" in problems(obj)[0]


def test_device_totals_count_the_slices_that_init_and_app_containers_share_once() -> None:
    side = container("side", gpu_mem=256) | {"restartPolicy": "Always"}
    apps = (container("app", gpu_mem=512), container("two", gpu_mem=256), container("whole", gpu=2))
    parsed = request.parse(pod(*apps, init=(side, container("init", gpu_mem=1024))))
    assert parsed.request is not None
    assert parsed.request.devices(256) == {names.SLICE: 1 + 4 + 1, names.CARD: 2}


def test_a_sidecar_after_an_init_container_is_refused() -> None:
    """The kubelet would give the init container's devices to the sidecar."""
    side = container("side", gpu_mem=256) | {"restartPolicy": "Always"}
    app, init = container("app", gpu_mem=1024), container("init", gpu_mem=1024)
    assert "must be placed before init container init" in problems(pod(app, init=(init, side)))[0]
    assert not problems(pod(app, init=(side, init)))


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3),
    max_leaves=5,
)


@given(
    st.dictionaries(st.sampled_from([*names.USER_RESOURCES, names.SLICE, "cpu"]), st.text(max_size=6) | st.integers())
)
def test_each_amount_is_parsed_or_reported(limits: dict[str, Any]) -> None:
    parsed = request.parse(pod({"name": "main", "resources": {"limits": limits}}))
    ours = [name for name in limits if name != "cpu"]
    if ours:
        assert parsed.request is not None or parsed.problems
    for name in set(ours) - {names.SLICE}:  # added by the webhook, and checked there against the request
        value = str(limits[name])
        understood = value.isascii() and value.isdigit() and int(value) > 0
        assert understood or parsed.problems or value.rstrip("kMGeE0123456789").lstrip("+") == ""
