"""Manifests of pods that are being replaced, on disk from before a pod is deleted until the new one exists."""

import json
import shlex
import urllib.parse
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from vgpu.adapters import durable_files
from vgpu.cli.failure import WRONG_USAGE, CommandFailed

STATE_ENV: Final = "XDG_STATE_HOME"
_LONGEST: Final = 200  # characters of a name; a file system takes 255 bytes


class NothingChanged(CommandFailed):
    """A failure before anything was changed, after which no saved manifest is needed."""


def folder(environment: Mapping[str, str], home: Path, server: str) -> Path:
    """Return the folder of a cluster's manifests, which may not exist; `server` is the URL of its API server."""
    state = environment.get(STATE_ENV) or home / ".local" / "state"
    return Path(state) / "vgpu" / "readmit" / _file_name(urllib.parse.urlsplit(server).netloc)


@contextmanager
def kept(place: Path, manifest: Mapping[str, Any], uid: str, say: Callable[[str], object]) -> Iterator[None]:
    """Keep a pod's manifest on disk meanwhile, and afterwards where the statement's body fails or is interrupted.

    `uid` is that of the pod that is replaced. `say` is told the path then. Raises CommandFailed where the manifest
    cannot be written.
    """
    path = place / f"{_file_name(uid)}.json"
    try:
        place.mkdir(mode=0o700, parents=True, exist_ok=True)
        durable_files.write(path, json.dumps(manifest, indent=2).encode())
    except OSError as error:
        text = f"its manifest cannot be saved: {error}; {STATE_ENV} can name another folder; nothing was changed"
        raise CommandFailed(text, WRONG_USAGE) from error
    try:
        yield
    except NothingChanged:
        path.unlink(missing_ok=True)
        raise
    except BaseException:
        say(f"pod {_named(manifest)} may be deleted. Its manifest is kept: kubectl create -f {shlex.quote(str(path))}")
        raise
    path.unlink(missing_ok=True)


def left(place: Path, namespace: str | None) -> Iterator[tuple[Path, str]]:
    """Yield the manifests that earlier runs left, of a namespace or of all: path, and NAMESPACE/NAME."""
    for path in sorted(place.glob("*.json")):
        try:
            manifest = json.loads(path.read_bytes())
            name = _named(manifest)
        except (OSError, ValueError, LookupError, TypeError, RecursionError):
            continue
        if namespace in (None, manifest["metadata"]["namespace"]):
            yield path, name


def _named(manifest: Mapping[str, Any]) -> str:
    return f"{manifest['metadata']['namespace']}/{manifest['metadata']['name']}"


def _file_name(text: str) -> str:
    return urllib.parse.quote(text, safe=":[]")[:_LONGEST]
