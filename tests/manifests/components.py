"""The kustomize components of the manifests, and overlays that list several of them."""

import itertools
import os
from collections.abc import Iterator, Sequence
from pathlib import Path

import yaml

from tests.manifests.objects import MANIFESTS

FOLDER = MANIFESTS / "components"
# In the order of manifests/README.md: prometheus-operator opens the metrics of cluster-scheduler's extender.
COMPONENTS = ("cert-manager", "cluster-scheduler", "without-toolkit", "space", "prometheus-operator")
NOT_TOGETHER = {"without-toolkit", "space"}  # MPS's programs come from the toolkit


def combinations() -> Iterator[tuple[str, ...]]:
    """Every possible choice of components, from none on, in the documented order."""
    for count in range(len(COMPONENTS) + 1):
        yield from (chosen for chosen in itertools.combinations(COMPONENTS, count) if not set(chosen) >= NOT_TOGETHER)


def overlay(folder: Path, components: Sequence[str | Path], resource: str = "base") -> Path:
    """Write an overlay that lists components by name or by path; return its folder, which is made."""
    folder.mkdir()
    paths = [FOLDER / component for component in components]  # of an absolute path: that path
    written = {
        "apiVersion": "kustomize.config.k8s.io/v1beta1",
        "kind": "Kustomization",
        "resources": [os.path.relpath(MANIFESTS / resource, folder)],
        "components": [os.path.relpath(path, folder) for path in paths],
    }
    (folder / "kustomization.yaml").write_text(yaml.safe_dump(written))
    return folder
