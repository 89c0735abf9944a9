"""Documented commands of administrators name what exists with either kube-scheduler."""

import re
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest
import yaml

from extender.lead import leadership
from tests.manifests import chart
from tests.manifests.objects import MANIFESTS
from tests.manifests.test_base import ROOT
from tests.webhook.builders import rules
from vgpu.domain import names
from vgpu.domain.identifiers import NodeName
from vgpu.domain.json_types import Json, JsonObject
from webhook import mutate

OPERATIONS = (ROOT / "docs" / "operations.md").read_text()
TEXTS = {path: path.read_text() for path in [*(ROOT / "docs").glob("*.md"), MANIFESTS / "README.md"]}
SELECTORS = {
    (path, found[1], found[2]) for path, text in TEXTS.items() for found in re.finditer(r"-l ([\w./-]+)=([\w-]+)", text)
}


def labels_of_pods(folder: str) -> list[Mapping[str, str]]:
    found = chart.objects(chart.kustomized(MANIFESTS / folder)).values()
    return [
        document["spec"]["template"]["metadata"]["labels"]
        for document in found
        if document["kind"] in ("Deployment", "DaemonSet")
    ]


@pytest.mark.parametrize("folder", ["base", "overlays/cluster-scheduler"])
def test_a_documented_selector_finds_pods_in_both_modes(folder: str) -> None:
    labels = labels_of_pods(folder)
    ours = {selector for selector in SELECTORS if selector[1].startswith("app.kubernetes.io/")}
    assert len(ours) >= 4
    assert [selector for selector in ours if not any(own.get(selector[1]) == selector[2] for own in labels)] == []


def test_the_log_of_the_extender_is_asked_of_pods_that_both_modes_have() -> None:
    """The Deployment exists with the second kube-scheduler only, the DaemonSet with the cluster's own only."""
    one_mode = re.compile(r"logs (?:deployment/vgpu-scheduler|daemonset/vgpu-extender)(?! -c scheduler)")
    assert {path: one_mode.findall(text) for path, text in TEXTS.items() if one_mode.search(text)} == {}


@pytest.mark.parametrize("scheduler", [names.SCHEDULER, "default-scheduler"])
def test_the_check_of_the_webhook_tells_a_changed_pod_from_one_as_written(scheduler: str) -> None:
    command = re.compile(r"-f (manifests/\S+) --dry-run=server -o jsonpath='\{(\S+)\}' +# (\S+)")
    (found,) = command.finditer(OPERATIONS)
    path, place, answer = found.groups()
    written: JsonObject = yaml.safe_load((Path(ROOT) / path).read_text())
    admitted = mutate.mutate(written, replace(rules(), scheduler=scheduler)).pod
    assert (at(admitted, place), at(written, place)) == (answer, "")


def at(value: Json | list[Json] | str | None, place: str) -> str:
    """What kubectl prints for a JSONPath of names and indices; a dot in a name is written with a backslash."""
    for step in re.findall(r"\.((?:[\w/-]|\\\.)+)|\[(\d+)\]", place):
        name, index = step[0].replace("\\.", "."), step[1]
        if isinstance(value, list):
            value = value[int(index)]
        elif isinstance(value, Mapping):
            value = value.get(name)
    return "" if value is None else str(value)


CHANGED = re.split(r"^## ", TEXTS[MANIFESTS / "README.md"], flags=re.MULTILINE)
KINDS = {
    "deployment": "Deployment", "daemonset": "DaemonSet", "poddisruptionbudget": "PodDisruptionBudget",
    "networkpolicy": "NetworkPolicy", "serviceaccount": "ServiceAccount", "secret": "Secret", "role": "Role",
    "rolebinding": "RoleBinding", "clusterrolebinding": "ClusterRoleBinding",
}  # fmt: skip
CONFIG = ("ConfigMap", "vgpu-system", "vgpu-scheduler-config-")


@pytest.mark.parametrize(
    ("before", "after", "block"),
    [
        ("base", "overlays/cluster-scheduler", 0),
        ("overlays/cluster-scheduler", "base", 1),
        ("base", "overlays/cert-manager", 2),
    ],
)
def test_what_apply_leaves_behind_is_deleted_by_the_documented_commands(before: str, after: str, block: int) -> None:
    """`kubectl apply` prunes nothing. Leases are no objects of the manifests: kube-scheduler makes its own."""
    left = keys(before) - keys(after)
    (section,) = [text for text in CHANGED if text.startswith("Change a choice later\n")]
    commands = re.findall(r"```sh\n(.*?)```", section, re.DOTALL)[block]
    assert {deleted for line in commands.splitlines() for deleted in deleted_by(line) if deleted[0] != "lease"} == left


def keys(folder: str) -> set[chart.Key]:
    """The objects of a kustomization; the hash in the name of the scheduler's configuration is left out."""
    found = chart.objects(chart.kustomized(MANIFESTS / folder))
    return {(kind, namespace, re.sub(r"(-config-)\w{10}$", r"\1", name)) for kind, namespace, name in found}


def deleted_by(line: str) -> list[chart.Key]:
    """The objects that a command deletes."""
    if (
        line
        == f"kubectl delete -n {CONFIG[1]} $(kubectl get -n {CONFIG[1]} configmaps -o name | grep scheduler-config-)"
    ):
        return [CONFIG]
    words = line.partition(" #")[0].split()
    assert words[:2] == ["kubectl", "delete"], line
    words = [word for word in words[2:] if not word.startswith("--")]
    namespace = words[1] if words[0] == "-n" else ""
    kinds, *named = words[2:] if namespace else words
    return [(KINDS.get(kind, kind), namespace, name) for kind in kinds.split(",") for name in named]


def test_what_helm_leaves_behind_is_deleted_by_the_documented_commands() -> None:
    """The chart's objects go; the rest is the CRD, the namespace, and what the parts have made in it."""
    (section,) = [text for text in CHANGED if text.startswith("8 Uninstall\n")]
    _, away, staying = re.findall(r"```sh\n(.*?)```", section, re.DOTALL)
    kept = [key for key, found in chart.objects(chart.rendered()).items() if is_kept(found)]
    assert kept == [("CustomResourceDefinition", "", "gpunodes.vgpu.io")]
    assert [line.split(" --")[0].split(" #")[0] for line in away.splitlines()] == [
        "helm uninstall vgpushare -n vgpu-system",
        "kubectl delete namespace vgpu-system",
        f"kubectl delete crd {kept[0][2]}",
    ]
    leases = [leadership.LEASE, names.SCHEDULER, names.node_lease(NodeName("")).removeprefix("v")]
    assert [name for name in leases if name not in staying] == []


def is_kept(document: JsonObject) -> bool:
    annotations: Mapping[str, str] = document["metadata"].get("annotations", {})
    return annotations.get("helm.sh/resource-policy") == "keep"


def test_a_take_over_gives_helm_the_fields_of_kubectl_first() -> None:
    """Or each later command that changes a field fails with a conflict, and a removed field stays."""
    commands = [found for text in TEXTS.values() for found in re.findall(r"`((?:helm|kubectl apply)[^`]*)`", text)]
    assert [command for command in commands if command.startswith("helm") and "--force-conflicts" in command] == []
    (at,) = [place for place, command in enumerate(commands) if "--take-ownership" in command and "CHART" in command]
    assert commands[at - 1].endswith("--server-side --force-conflicts --field-manager=helm")


def test_a_documented_upgrade_keeps_the_earlier_values() -> None:
    """Helm drops the earlier values where one is set; --reuse-values would lack the defaults of a newer chart."""
    upgrades = [found for text in TEXTS.values() for found in re.findall(r"`(helm upgrade[^`]*)`", text)]
    assert len(upgrades) >= 3
    for command in upgrades:
        assert "vgpushare CHART -n vgpu-system" in command
        assert ("--set" in command) == ("--reset-then-reuse-values" in command), command
