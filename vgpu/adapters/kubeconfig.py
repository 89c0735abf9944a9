"""Reads kubeconfig files: for the command line, and for parts that run outside of a pod.

The format: https://kubernetes.io/docs/reference/config-api/kubeconfig.v1/

Several files are merged as kubectl does it: of two entries of one name the first counts.
"""

import base64
import binascii
import os
import ssl
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import yaml

from vgpu.domain.errors import VgpuError
from vgpu.domain.json_types import Json

MAX_SIZE: Final = 1 << 20


class KubeconfigError(VgpuError):
    """A kubeconfig cannot be used as it is written."""


class UnreadableCredentials(KubeconfigError):
    """A file that a kubeconfig names cannot be read."""


@dataclass(frozen=True, slots=True)
class Kubeconfig:
    """The chosen context: its cluster, its user and its namespace. Paths in them are absolute."""

    context: str
    namespace: str
    cluster: Json = field(default_factory=dict)
    user: Json = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Credentials:
    """What a client shows to the API server. Everything may be empty."""

    token: str = ""
    certificate: bytes = b""
    key: bytes = b""


def files(environment: Mapping[str, str], home: Path) -> list[Path]:
    """Return the kubeconfig files that exist: those of `KUBECONFIG`, else the one in the home directory.

    Where none of those that `KUBECONFIG` names exists, all of them are returned, which `load` refuses by name.
    """
    named = [Path(path) for path in environment.get("KUBECONFIG", "").split(":") if path]
    return [path for path in named or [home / ".kube" / "config"] if path.is_file()] or named


def load(paths: Sequence[Path], context: str | None) -> Kubeconfig:
    """Read files and choose a context; None chooses the current one. Raises KubeconfigError."""
    read = [_file(path) for path in paths]
    name = context or next((str(config["current-context"]) for config in read if config.get("current-context")), "")
    chosen = _entry(read, "contexts", "context", name)
    if chosen is None:
        known = ", ".join(sorted(_names(read, "contexts"))) or "none"
        raise KubeconfigError(f"--context: there is no context {name!r} in {_joined(paths)}; known: {known}")
    cluster = _entry(read, "clusters", "cluster", str(chosen.get("cluster", "")))
    if cluster is None or not cluster.get("server"):
        raise KubeconfigError(f"{_joined(paths)}: the cluster of context {name!r} has no server")
    user = _entry(read, "users", "user", str(chosen.get("user", ""))) or {}
    return Kubeconfig(name, str(chosen.get("namespace") or "default"), cluster, user)


def listed(entry: Json, name: str) -> list[Any]:
    """Return a list of an entry, empty where there is no list."""
    found = entry.get(name)
    return found if isinstance(found, list) else []


def data(entry: Json, name: str) -> bytes | None:
    """Return `NAME-data`, which is base64, or the content of the file `NAME`; None where there is neither.

    Raises KubeconfigError.
    """
    try:
        if entry.get(f"{name}-data"):
            return base64.b64decode(str(entry[f"{name}-data"]), validate=True)
        return Path(str(entry[name])).read_bytes() if entry.get(name) else None
    except (binascii.Error, ValueError) as error:
        raise KubeconfigError(f"kubeconfig: {name}-data is not base64: {error}") from error
    except OSError as error:
        raise UnreadableCredentials(f"kubeconfig: {name}: {error}") from error


def written_credentials(user: Json) -> Credentials:
    """Return the credentials that a user entry contains or names by files. Raises KubeconfigError."""
    token = str(user.get("token") or "")
    if not token and user.get("tokenFile"):
        token = (data({"token": user["tokenFile"]}, "token") or b"").decode(errors="replace").strip()
    certificate, key = (data(user, name) or b"" for name in ("client-certificate", "client-key"))
    return Credentials(token, certificate, key)


def tls_context(cluster: Json, shown: Credentials) -> ssl.SSLContext:
    """Return a TLS context that trusts what a cluster entry says, with a client certificate. Raises KubeconfigError."""
    authority = data(cluster, "certificate-authority")
    try:
        context = ssl.create_default_context(cadata=authority.decode() if authority else None)
    except (ssl.SSLError, ValueError) as error:
        raise KubeconfigError(f"kubeconfig: the certificate authority cannot be used: {error}") from error
    if cluster.get("insecure-skip-tls-verify") is True:
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    _add_certificate(context, shown)
    return context


def _add_certificate(context: ssl.SSLContext, shown: Credentials) -> None:
    """Load a client certificate into a TLS context, through a file in memory: Python loads certificates from files."""
    if not shown.certificate:
        return
    handle = os.memfd_create("client-certificate")
    try:
        os.write(handle, shown.certificate + b"\n" + shown.key)
        context.load_cert_chain(f"/proc/self/fd/{handle}")
    except (ssl.SSLError, ValueError) as error:
        raise KubeconfigError(f"kubeconfig: the client certificate cannot be used: {error}") from error
    finally:
        os.close(handle)


def _file(path: Path) -> dict[str, Any]:
    try:
        with path.open("rb") as file:
            content = yaml.safe_load(file.read(MAX_SIZE))
    except (OSError, yaml.YAMLError, ValueError, RecursionError) as error:
        raise KubeconfigError(f"{path} cannot be read: {error}") from error
    if not isinstance(content, dict):
        raise KubeconfigError(f"{path} is no kubeconfig")
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
