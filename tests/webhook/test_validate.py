"""Which new pods the webhook refuses."""

from typing import Any

import pytest
from hypothesis import given

from tests import strategies
from tests.webhook import builders
from vgpu.domain import names, new_pods
from vgpu.domain.asks import manifest, translate
from webhook import mutate, validate

RULES = builders.rules(builders.H100)
LIMITS = "spec.containers[main].resources.limits"
SHARE = {names.GPU_MEM: "8192"}


def refused_fields(pod: dict[str, Any]) -> list[str]:
    """Mutate a new pod, and return the fields that validation refuses."""
    return [problem.field for problem in validate.on_create(dict(mutate.mutate(pod, RULES).pod), RULES)]


@pytest.mark.parametrize(
    "limits",
    [
        None,
        {"cpu": "1"},
        {"nvidia.com/gpu": "1"},
        SHARE,
        {names.GPU: "1"},
        {names.GPU_MEM: "9M"},
        {names.GPU_MEM: "18k"},
    ],
)
def test_valid_requests_are_admitted(limits: dict[str, str] | None) -> None:
    assert refused_fields(builders.pod(limits)) == []


@pytest.mark.parametrize("name", ["nvidia.com/gpu", "nvidia.com/gpu.shared", "nvidia.com/mig-1g.10gb"])
def test_a_device_of_nvidias_plugin_beside_a_share_is_refused(name: str) -> None:
    """A node has one of the two plugins: such a pod would wait for ever, or get a card that others share."""
    for ours in (SHARE, {names.GPU: "1"}):
        assert refused_fields(builders.pod({**ours, name: "1"})) == [f"{LIMITS}[{name}]"]
    assert refused_fields(builders.pod({**SHARE, "nvidia.com/hostdev": "1"})) == []


def test_no_device_of_nvidias_plugin_is_no_device() -> None:
    beside = builders.container("init", {"nvidia.com/gpu": "0"})
    assert refused_fields(builders.pod(SHARE, initContainers=[beside])) == []


@pytest.mark.parametrize("text", ["16Gi", "-1", "1500m", "1e9", "0", "x", ""])
def test_an_invalid_amount_is_refused_by_name(text: str) -> None:
    assert refused_fields(builders.pod({names.GPU_MEM: text})) == [f"{LIMITS}[{names.GPU_MEM}]"]
    assert refused_fields(builders.pod({"nvidia.com/gpumem": text})) == [f"{LIMITS}[nvidia.com/gpumem]"]


@pytest.mark.parametrize(
    ("limits", "name"),
    [
        ({names.GPU_MEM: "1", names.GPU: "0"}, names.GPU),
        ({names.GPU_MEM: "1", names.GPU_CORES: "0"}, names.GPU_CORES),
        ({names.GPU_MEM: "1", names.GPU_CORES: "101"}, names.GPU_CORES),
        ({names.GPU_MEM: "3", names.GPU_CORES: "130", names.GPU: "3"}, names.GPU_CORES),
        ({names.GPU_CORES: "10"}, names.GPU_CORES),
        ({names.SLICE: "3"}, names.SLICE),
        ({names.CARD: "1"}, names.CARD),
        ({f"{names.DOMAIN}/gpu-memory": "1"}, f"{names.DOMAIN}/gpu-memory"),
        ({names.GPU_MEM: "1024", names.SLICE: "3"}, names.SLICE),
        ({names.GPU_MEM: "1024", names.SLICE: "4", names.CARD: "1"}, names.CARD),
        ({names.GPU: "1", names.SLICE: "1"}, names.SLICE),
    ],
)
def test_contradicting_amounts_are_refused_by_name(limits: dict[str, str], name: str) -> None:
    assert refused_fields(builders.pod(limits)) == [f"{LIMITS}[{name}]"]


def test_the_right_number_of_slices_is_admitted() -> None:
    """A pod that is copied from a mutated pod has slices already."""
    assert refused_fields(builders.pod({names.GPU_MEM: "1024", names.SLICE: "4"})) == []


def test_slices_are_compared_as_amounts() -> None:
    """The API server writes 9000 as 9k."""
    pod = builders.pod({names.GPU_MEM: str(9000 * 256), names.SLICE: "9k"})
    assert refused_fields(pod) == []


def test_an_unmutated_pod_is_refused_so_that_its_controller_retries() -> None:
    problems = validate.on_create(builders.pod(SHARE), RULES)
    assert [problem.field for problem in problems] == [f"{LIMITS}[{names.SLICE}]"]


@pytest.mark.parametrize("limits", [None, SHARE])
def test_an_assignment_that_was_not_removed_is_refused(limits: dict[str, str] | None) -> None:
    """The call that removes it may fail alone."""
    mutated = mutate.mutate(builders.pod(limits), RULES).pod
    forged = {**mutated, "metadata": {"annotations": {names.ASSIGNMENT: "{}"}}}
    assert [problem.field for problem in validate.on_create(forged, RULES)] == [
        f"metadata.annotations[{names.ASSIGNMENT}]"
    ]


@pytest.mark.parametrize(
    ("name", "value"),
    [
        (names.NODE_POLICY, "tetris"),
        (names.GPU_POLICY, ""),
        (names.COMPUTE_POLICY, "always"),
        (names.MEMORY_POLICY, "Spill"),
        (names.PRIORITY, "high"),
        (names.USE_GPU_UUID, "a,,b"),
        (names.IDLE_AFTER, "30"),
        (names.IDLE_ACTION, "kill"),
        (f"{names.DOMAIN}/gpu-polcy", "binpack"),
    ],
)
def test_unknown_annotations_and_values_are_refused(name: str, value: str) -> None:
    assert refused_fields(builders.pod(SHARE, {name: value})) == [f"metadata.annotations[{name}]"]
    assert refused_fields(builders.pod(None, {name: value})) == []


@pytest.mark.parametrize(
    ("limits", "annotations", "words"),
    [
        (
            SHARE,
            {f"{names.DOMAIN}/priorty": "3"},
            "metadata.annotations[vgpu.io/priorty]: is not an annotation of vgpu.io; did you mean vgpu.io/priority?",
        ),
        (
            {**SHARE, f"{names.DOMAIN}/gpu-core": "30"},
            {},
            f"{LIMITS}[vgpu.io/gpu-core]: is not a resource of vgpu.io; did you mean vgpu.io/gpu-cores?",
        ),
    ],
    ids=["annotation", "resource"],
)
def test_a_name_that_does_not_exist_is_blamed_and_not_its_value(
    limits: dict[str, str], annotations: dict[str, str], words: str
) -> None:
    pod = dict(mutate.mutate(builders.pod(limits, annotations), RULES).pod)
    assert words in [str(problem) for problem in validate.on_create(pod, RULES)]


def test_a_node_name_is_refused() -> None:
    assert refused_fields(builders.pod(SHARE, nodeName="n1")) == ["spec.nodeName"]
    assert refused_fields(builders.pod(None, nodeName="n1")) == []


@pytest.mark.parametrize(
    ("limits", "value", "is_refused"),
    [(SHARE, "all", True), (SHARE, "void", True), (None, "all", False), (None, "void", False)],
)
def test_nvidia_visible_devices_is_refused_in_a_container_with_a_share(
    limits: dict[str, str] | None, value: str, is_refused: bool
) -> None:
    pod = builders.pod()
    variable = {"name": "NVIDIA_VISIBLE_DEVICES", "value": value}
    pod["spec"]["containers"] = [builders.container(limits=limits, env=[variable])]
    assert refused_fields(pod) == (["spec.containers[main].env[NVIDIA_VISIBLE_DEVICES]"] if is_refused else [])


def test_other_containers_of_the_pod_may_set_nvidia_visible_devices_to_void_only() -> None:
    def of_sidecar(variable: dict[str, Any]) -> list[str]:
        env = [{"name": "NVIDIA_VISIBLE_DEVICES"} | variable]
        return refused_fields(builders.pod(SHARE, initContainers=[builders.container("side", env=env)]))

    refused = ["spec.initContainers[side].env[NVIDIA_VISIBLE_DEVICES]"]
    assert of_sidecar({"value": "void"}) == []
    assert of_sidecar({"value": "GPU-a"}) == refused
    assert of_sidecar({"valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}}) == refused


def test_all_problems_are_reported_at_once() -> None:
    pod = builders.pod({names.GPU_MEM: "16Gi"}, {names.GPU_POLICY: "x"}, nodeName="n1")
    problems = validate.on_create(pod, RULES)
    text = validate.message(problems)
    assert all(part in text for part in ("16Gi", "16384", "binpack, spread", "spec.nodeName"))


@pytest.mark.parametrize("limits", [SHARE, {"nvidia.com/gpumem": "1"}, {names.GPU_MEM: "16Gi"}])
def test_at_most_32_containers_ask_for_gpus(limits: dict[str, str]) -> None:
    def refused(count: int) -> list[str]:
        pod = builders.pod()
        pod["spec"]["containers"] = [builders.container(f"c{n}", limits) for n in range(count)]
        return refused_fields(pod)

    assert "spec.containers" not in refused(32)
    assert refused(33) == ["spec.containers"]


@pytest.mark.parametrize(
    "path",
    ["/etc/ld.so.preload", "/etc/ld-nix.so.preload",
     "/run/vgpu", "/run/vgpu/limits", "/var/run/vgpu/x", "/usr/local/vgpu/",
     "/etc//./ld.so.preload", "/a/../etc/ld.so.preload", "//run/vgpu", "run/vgpu",
     "/run/nvidia-container-devices/GPU-a"],
)  # fmt: skip
def test_a_volume_over_vgpushares_files_is_refused(path: str) -> None:
    pod = builders.pod(SHARE)
    pod["spec"]["containers"][0]["volumeMounts"] = [{"name": "v", "mountPath": path}]
    assert refused_fields(pod) == ["spec.containers[main].volumeMounts[v].mountPath"]


@pytest.mark.parametrize("path", ["/etc", "/", "/run", "/run/vgpu2", "/etc/ld.so.preload.d", "/usr/local/bin", "/data"])
def test_other_volumes_are_admitted(path: str) -> None:
    pod = builders.pod(SHARE)
    pod["spec"]["containers"][0]["volumeMounts"] = [{"name": "v", "mountPath": path}]
    assert refused_fields(pod) == []


@pytest.mark.parametrize("name", [names.USE_GPU_MODEL, names.AVOID_GPU_MODEL, names.USE_GPU_UUID, names.AVOID_GPU_UUID])
@pytest.mark.parametrize("value", ["x" * 250_000, "x," * 125_000 + "x", "x" * 65, ",".join("abcdefghijk" * 6)])
def test_long_lists_are_refused_with_a_short_message(name: str, value: str) -> None:
    problems = validate.on_create(dict(mutate.mutate(builders.pod(SHARE, {name: value}), RULES).pod), RULES)
    assert f"metadata.annotations[{name}]" in {problem.field for problem in problems}
    assert len(validate.message(problems)) < 1000


def test_a_long_list_of_problems_is_cut() -> None:
    pod = builders.pod()
    pod["spec"]["containers"] = [builders.container(f"c{n}", {names.GPU_MEM: "1Gi"}) for n in range(32)]
    text = validate.message(validate.on_create(pod, RULES))
    assert text.count("\n") == 20
    assert text.endswith("and 12 more")


@given(builders.pods())
def test_a_simulation_names_what_the_webhook_refuses(pod: dict[str, Any]) -> None:
    """A simulation reads the pod before the webhook has changed it."""
    translated = translate.translate(pod, RULES.cards, RULES.gpushare_unit_mib, RULES.slice_mib)
    named = new_pods.problems(translated, RULES.slice_mib) if manifest.wants_gpu(pod) else []
    assert refused_fields(pod) == [problem.field for problem in named]


@given(builders.pods())
def test_every_refusal_names_a_field(pod: dict[str, Any]) -> None:
    for problem in validate.on_create(pod, RULES):
        assert problem.field.startswith(("spec.", "metadata.annotations["))
        assert problem.why


@pytest.mark.parametrize(
    ("annotations", "field"),
    [
        ({names.GANG: "train", names.GANG_SIZE: "8"}, None),
        ({names.GANG: "train", names.GANG_SIZE: "1000000"}, names.GANG_SIZE),
        ({names.GANG: "train"}, names.GANG_SIZE),
        ({names.GANG: "", names.GANG_SIZE: "8"}, names.GANG),
    ],
)
def test_a_gang_that_cannot_be_read_is_refused_by_its_annotation(
    annotations: dict[str, str], field: str | None
) -> None:
    expected = [f"metadata.annotations[{field}]"] if field else []
    assert refused_fields(builders.pod(SHARE, annotations)) == expected


def test_a_new_pod_names_one_gang() -> None:
    pod = builders.pod(SHARE, {names.GANG: "train", names.GANG_SIZE: "8"})
    pod["metadata"]["labels"] = {names.POD_GROUP_LABEL: "train"}
    assert refused_fields(pod) == [f"metadata.annotations[{names.GANG}]"]


def test_a_gang_has_no_affinity_to_other_pods_cards() -> None:
    pod = builders.pod(SHARE, {names.GANG: "train", names.GANG_SIZE: "8", names.GPU_ANTI_AFFINITY: "app=x"})
    assert refused_fields(pod) == [f"metadata.annotations[{names.GPU_ANTI_AFFINITY}]"]


@pytest.mark.parametrize(
    "name",
    [names.GPU_AFFINITY, names.GPU_ANTI_AFFINITY, names.PREFERRED_GPU_AFFINITY, names.PREFERRED_GPU_ANTI_AFFINITY],
)
def test_labels_that_no_pod_can_have_together_are_refused(name: str) -> None:
    def said(value: str) -> list[str]:
        pod = strategies.pod(strategies.container(gpu_mem=256), annotations={name: value})
        return [problem.why for problem in new_pods.problems(translate.translate(pod, list, 1024, 256), 256)]

    assert [why for why in said("a=b, a=c") if "two values of the label a" in why]
    assert not [why for why in said("a=b,c=b,a=b") if "two values" in why]


def test_a_rule_for_the_cards_of_a_gang_needs_a_gang_and_a_known_value() -> None:
    train = {names.GANG: "train", names.GANG_SIZE: "8"}
    assert refused_fields(builders.pod(SHARE, {**train, names.GANG_CARDS: "own"})) == []
    assert refused_fields(builders.pod(SHARE, {names.GANG_CARDS: "own"})) == [
        f"metadata.annotations[{names.GANG_CARDS}]"
    ]
    assert refused_fields(builders.pod(SHARE, {**train, names.GANG_CARDS: "one"})) == [
        f"metadata.annotations[{names.GANG_CARDS}]"
    ]
