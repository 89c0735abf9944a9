"""Renders the Helm chart and kustomizations, by the real programs."""

import subprocess
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import yaml

from cluster.programs import binaries, helm
from tests.manifests.objects import MANIFESTS
from vgpu.domain.json_types import JsonObject

CHART = MANIFESTS / "helm" / "vgpushare"

Key = tuple[str, str, str]


class ChartRefused(Exception):
    """Helm does not render these values; the text says why."""


def program() -> Path:
    """Path of Helm; a test is skipped where it is not built."""
    if not helm.PROGRAMS.is_built():
        pytest.skip("needs Helm: python -m cluster.programs.helm builds it")
    return helm.ensure()


def rendered(values: Mapping[str, Any] | None = None, *options: str, namespace: str = "vgpu-system") -> str:
    """Return what Helm renders, as text."""
    command: list[str | Path] = [
        program(),
        "template",
        "vgpushare",
        CHART,
        "--namespace",
        namespace,
        "-f",
        "-",
        *options,
    ]
    done = subprocess.run(
        command, input=yaml.safe_dump(dict(values or {})), capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise ChartRefused(done.stderr)
    return done.stdout


def objects(text: str) -> dict[Key, JsonObject]:
    """Return the objects of a rendering by kind, namespace and name."""
    found = [document for document in yaml.safe_load_all(text) if document]
    keyed = {key(document): document for document in found}
    assert len(keyed) == len(found), "an object stands twice"
    return keyed


def key(document: JsonObject) -> Key:
    metadata = document["metadata"]
    return document["kind"], metadata.get("namespace", ""), metadata["name"]


@cache
def kustomized(folder: Path) -> str:
    """Return what kubectl makes of a kustomization."""
    if not binaries.is_built():
        pytest.skip("needs kubectl: python -m cluster.programs.binaries builds it")
    command: list[str | Path] = [binaries.ensure() / "kubectl", "kustomize", folder]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def refused(values: Mapping[str, Any]) -> Sequence[str]:
    """Return the lines with which Helm refuses values."""
    with pytest.raises(ChartRefused) as error:
        rendered(values)
    return str(error.value).splitlines()
