"""Documented commands for administrators find their objects with either kube-scheduler: the second, or the cluster's."""

import re
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest
import yaml

from tests.manifests import chart
from tests.manifests.objects import MANIFESTS
from tests.manifests.test_base import ROOT
from tests.webhook.builders import rules
from vgpu.domain import names
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
