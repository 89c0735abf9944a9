"""The example manifests, and the pods that they make."""

from collections.abc import Iterator
from pathlib import Path

import yaml

from vgpu.domain.json_types import JsonObject

FOLDER = Path(__file__).parents[2] / "manifests" / "examples"
FILES = sorted(FOLDER.glob("*.yaml"))


def documents(path: Path) -> list[JsonObject]:
    """The objects of a file."""
    return list(yaml.safe_load_all(path.read_text()))


def pods(document: JsonObject) -> Iterator[JsonObject]:
    """The pod that an object is, or makes."""
    if document["kind"] == "Pod":
        yield document
    elif "template" in document.get("spec", {}):
        yield document["spec"]["template"]
