"""Reads the manifests that `vgpu simulate -f` places: pods, and the controllers that create pods."""

import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import yaml

from vgpu.cli.failure import WRONG_USAGE, CommandFailed
from vgpu.domain import names
from vgpu.domain.json_types import JsonObject
from vgpu.domain.problem import clipped

MAX_SIZE: Final = 4 << 20
STDIN: Final = Path("-")
_OURS: Final = frozenset((*names.USER_ANNOTATIONS, *names.LIVE_ANNOTATIONS))
_TEMPLATES: Final = {
    "Deployment": ("spec",), "StatefulSet": ("spec",), "ReplicaSet": ("spec",), "ReplicationController": ("spec",),
    "Job": ("spec",), "CronJob": ("spec", "jobTemplate", "spec"),
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class ReadManifests:
    """What manifests ask to place.

    Attributes:
        entries: of a simulation: a pod, and how many of it.
        ignored: what has no effect where it is written, with what to do: lines for people.
    """

    entries: list[JsonObject]
    ignored: list[str]


def read(paths: list[Path], namespace: str, most: int) -> ReadManifests:
    """Read the entries of a simulation of at most `most` pods.

    Pods without a namespace get `namespace`. Raises CommandFailed.
    """
    documents = [(path, document) for path in paths for document in _documents(path)]
    entries = [entry for path, document in documents for entry in _entries(document, namespace, path, most)]
    if not entries:
        raise CommandFailed(f"-f: no pod in {', '.join(map(str, paths))}", WRONG_USAGE)
    if (pods := sum(entry["count"] for entry in entries)) > most:
        raise CommandFailed(f"-f: {pods} pods in all; one simulation places at most {most}", WRONG_USAGE)
    return ReadManifests(entries, [line for path, document in documents for line in _ignored(document, path)])


def _ignored(document: JsonObject, path: Path) -> Iterator[str]:
    """Yield a line for annotations of ours on a controller: it creates pods with those of its template only."""
    kind, metadata = document.get("kind"), _object(document, "metadata", path)
    if not isinstance(kind, str) or kind not in _TEMPLATES:
        return
    found: list[str] = []
    parent, field = document, ".".join((*_TEMPLATES[kind], "template.metadata.annotations"))
    for key in (*_TEMPLATES[kind], "template"):
        found += _object(_object(parent, "metadata", path), "annotations", path)
        parent = _object(parent, key, path)
    of_pods = _object(_object(parent, "metadata", path), "annotations", path)
    if lost := sorted(name for name in {*found} - {*of_pods} if name in _OURS):
        named = f"{kind} {metadata.get('name') or ''}".rstrip()
        yield f"-f: {path}: {named}: its own {', '.join(lost)} has no effect; write it in {field}"


def _documents(path: Path) -> Iterator[JsonObject]:
    try:
        if path == STDIN:
            text: bytes = sys.stdin.buffer.read(MAX_SIZE + 1)
        else:
            with path.open("rb") as file:
                text = file.read(MAX_SIZE + 1)
        if len(text) > MAX_SIZE:
            raise CommandFailed(f"-f: {path} is longer than {MAX_SIZE >> 20} MiB", WRONG_USAGE)
        for document in yaml.safe_load_all(text):
            if isinstance(document, dict):
                yield from _listed(document)
            elif document is not None:
                raise CommandFailed(f"-f: {path}: a document is no object", WRONG_USAGE)
    except (OSError, yaml.YAMLError, UnicodeDecodeError, RecursionError) as error:
        raise CommandFailed(f"-f: {path} cannot be read: {error}", WRONG_USAGE) from error


def _listed(document: JsonObject) -> Iterator[JsonObject]:
    if document.get("kind") == "List":
        items = document.get("items")
        yield from (item for item in (items if isinstance(items, list) else ()) if isinstance(item, dict))
    else:
        yield document


def _entries(document: JsonObject, namespace: str, path: Path, most: int) -> Iterator[JsonObject]:
    kind, metadata = document.get("kind"), _object(document, "metadata", path)
    if kind == "Pod":
        yield {"pod": _pod(document, metadata, namespace, path), "count": 1}
    elif isinstance(kind, str) and kind in _TEMPLATES:
        spec = document
        for key in _TEMPLATES[kind]:
            spec = _object(spec, key, path)
        template = _object(spec, "template", path)
        yield {
            "pod": _pod(template, {**_object(template, "metadata", path), **_named(metadata)}, namespace, path),
            "count": _count(spec, f"-f: {path}: {kind} {metadata.get('name') or ''}".rstrip(), most),
        }
    elif kind == "DaemonSet":
        raise CommandFailed(f"-f: {path}: a DaemonSet has one pod on each node; simulate its pod", WRONG_USAGE)


def _object(parent: JsonObject, key: str, path: Path) -> JsonObject:
    """Return an object of an object, empty where there is none."""
    found = parent.get(key) or {}
    if not isinstance(found, dict):
        raise CommandFailed(f"-f: {path}: {key}: must be an object", WRONG_USAGE)
    return found


def _named(metadata: Mapping[str, Any]) -> JsonObject:
    return {key: metadata[key] for key in ("name", "namespace") if metadata.get(key)}


def _pod(pod: JsonObject, metadata: JsonObject, namespace: str, path: Path) -> JsonObject:
    if not all(isinstance(metadata.get(key) or "", str) for key in ("name", "namespace")):
        raise CommandFailed(f"-f: {path}: name and namespace: must be text", WRONG_USAGE)
    named = {"namespace": namespace, **{key: value for key, value in metadata.items() if value is not None}}
    return {
        "metadata": {key: named.get(key) for key in ("name", "namespace", "annotations", "labels") if named.get(key)},
        "spec": _object(pod, "spec", path),
    }


def _count(spec: Mapping[str, Any], where: str, most: int) -> int:
    """Return how many pods a controller creates at once; one where it is scaled to none, to say where that would be."""
    field = next((name for name in ("replicas", "parallelism") if spec.get(name) is not None), "")
    value = spec.get(field, 1)
    if not isinstance(value, int) or isinstance(value, bool) or value < 0:
        raise CommandFailed(f"{where}: spec.{field}: {clipped(str(value))!r} is not a whole number", WRONG_USAGE)
    if value > most:
        raise CommandFailed(f"{where}: spec.{field}: {value} pods; one simulation places at most {most}", WRONG_USAGE)
    return max(value, 1)
