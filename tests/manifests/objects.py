"""The objects of all manifests."""

from functools import cache
from pathlib import Path
from typing import Any

import yaml

MANIFESTS = Path(__file__).parents[2] / "manifests"

Json = dict[str, Any]


@cache
def all_objects() -> tuple[Json, ...]:
    """Every object of every manifest; kustomizations have no name and are left out."""
    read = (each for path in sorted(MANIFESTS.rglob("*.yaml")) for each in yaml.safe_load_all(path.read_text()))
    return tuple(each for each in read if each and "name" in each.get("metadata", {}))


@cache
def names_of_objects() -> frozenset[str]:
    """Names of all objects that the manifests create."""
    return frozenset(each["metadata"]["name"] for each in all_objects())


@cache
def names_of_images() -> frozenset[str]:
    """Images of all containers, without their tags."""
    specs = (each.get("spec", {}).get("template", {}).get("spec", {}) for each in all_objects())
    containers = (each for spec in specs for each in spec.get("containers", ()))
    return frozenset(each["image"].rpartition(":")[0] for each in containers if "image" in each)
