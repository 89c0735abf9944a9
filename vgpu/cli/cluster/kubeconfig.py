"""Reads kubeconfig files.

The format: https://kubernetes.io/docs/reference/config-api/kubeconfig.v1/

Several files are merged as kubectl does it: of two entries of one name the first counts.
"""

import base64
import binascii
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import yaml

from vgpu.cli.failure import NO_ANSWER, WRONG_USAGE, CommandFailed
from vgpu.domain.json_types import Json

MAX_SIZE: Final = 1 << 20


@dataclass(frozen=True, slots=True)
class Kubeconfig:
    """The chosen context: its cluster, its user and its namespace. Paths in them are absolute."""

    context: str
    namespace: str
    cluster: Json = field(default_factory=dict)
    user: Json = field(default_factory=dict)


def files(environment: Mapping[str, str], home: Path) -> list[Path]:
    """Return the kubeconfig files that exist: those of `KUBECONFIG`, else the one in the home directory."""
    named = [Path(path) for path in environment.get("KUBECONFIG", "").split(":") if path]
    return [path for path in named or [home / ".kube" / "config"] if path.is_file()]


def load(paths: Sequence[Path], context: str | None) -> Kubeconfig:
    """Read files and choose a context; None chooses the current one. Raises CommandFailed."""
    read = [_file(path) for path in paths]
    name = context or next((str(config["current-context"]) for config in read if config.get("current-context")), "")
    chosen = _entry(read, "contexts", "context", name)
    if chosen is None:
        known = ", ".join(sorted(_names(read, "contexts"))) or "none"
        raise CommandFailed(f"--context: there is no context {name!r} in {_joined(paths)}; known: {known}", WRONG_USAGE)
    cluster = _entry(read, "clusters", "cluster", str(chosen.get("cluster", "")))
    if cluster is None or not cluster.get("server"):
        raise CommandFailed(f"{_joined(paths)}: the cluster of context {name!r} has no server", WRONG_USAGE)
    user = _entry(read, "users", "user", str(chosen.get("user", ""))) or {}
    return Kubeconfig(name, str(chosen.get("namespace") or "default"), cluster, user)


def listed(entry: Json, name: str) -> list[Any]:
    """Return a list of an entry, empty where there is no list."""
    found = entry.get(name)
    return found if isinstance(found, list) else []


def data(entry: Json, name: str) -> bytes | None:
    """Return `NAME-data`, which is base64, or the content of the file `NAME`; None where there is neither."""
    try:
        if entry.get(f"{name}-data"):
            return base64.b64decode(str(entry[f"{name}-data"]), validate=True)
        return Path(str(entry[name])).read_bytes() if entry.get(name) else None
    except (binascii.Error, ValueError) as error:
        raise CommandFailed(f"kubeconfig: {name}-data is not base64: {error}", WRONG_USAGE) from error
    except OSError as error:
        raise CommandFailed(f"kubeconfig: {name}: {error}", NO_ANSWER) from error


def _file(path: Path) -> dict[str, Any]:
    try:
        with path.open("rb") as file:
            content = yaml.safe_load(file.read(MAX_SIZE))
    except (OSError, yaml.YAMLError, ValueError, RecursionError) as error:
        raise CommandFailed(f"{path} cannot be read: {error}", WRONG_USAGE) from error
    if not isinstance(content, dict):
        raise CommandFailed(f"{path} is no kubeconfig", WRONG_USAGE)
    return {**content, "folder": path.absolute().parent}


def _entry(read: Sequence[Json], plural: str, singular: str, name: str) -> dict[str, Any] | None:
    for config in read:
        for entry in _entries(config, plural):
            if entry.get("name") == name and isinstance(entry.get(singular), dict):
                return _absolute(entry[singular], config["folder"])
    return None


def _entries(config: Json, plural: str) -> list[dict[str, Any]]:
    """Return the entries of a list of a kubeconfig; what is no entry is left out."""
    return [entry for entry in listed(config, plural) if isinstance(entry, dict)]


def _absolute(entry: Json, folder: Path) -> dict[str, Any]:
    paths = ("certificate-authority", "client-certificate", "client-key", "tokenFile")
    return {
        key: str(folder / str(value)) if key in paths and value and not str(value).startswith("/") else value
        for key, value in entry.items()
    }


def _names(read: Sequence[Json], plural: str) -> set[str]:
    return {str(entry.get("name")) for config in read for entry in _entries(config, plural)}


def _joined(paths: Sequence[Path]) -> str:
    return ", ".join(map(str, paths))
