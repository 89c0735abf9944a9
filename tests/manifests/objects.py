"""The objects of all manifests."""

from functools import cache
from pathlib import Path

import yaml

from vgpu.domain.json_types import JsonObject

MANIFESTS = Path(__file__).parents[2] / "manifests"


@cache
def all_objects() -> tuple[JsonObject, ...]:
    """Every object of every manifest; kustomizations have no name and are left out, as are the chart's templates."""
    paths = sorted(path for path in MANIFESTS.rglob("*.yaml") if "helm" not in path.parts)
    read = (document for path in paths for document in yaml.safe_load_all(path.read_text()))
    return tuple(document for document in read if document and "name" in document.get("metadata", {}))


@cache
def names_of_objects() -> frozenset[str]:
    """Names of all objects that the manifests create."""
    return frozenset(obj["metadata"]["name"] for obj in all_objects())


@cache
def names_of_images() -> frozenset[str]:
    """Images of all containers, without their tags."""
    specs = (obj.get("spec", {}).get("template", {}).get("spec", {}) for obj in all_objects())
    containers = (container for spec in specs for container in spec.get("containers", ()))
    return frozenset(container["image"].rpartition(":")[0] for container in containers if "image" in container)
