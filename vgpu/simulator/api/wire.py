"""The JSON of the API: Status objects, lists with their continue tokens, discovery."""

import base64
import binascii
from bisect import bisect_right
from collections.abc import Iterable
from typing import Any

import msgspec

from vgpu.domain import printable
from vgpu.domain.errors import KubernetesError
from vgpu.domain.json_types import JsonObject
from vgpu.simulator.api.resources import BUILTIN, Resource, Target

_ALL = frozenset({"pods", "services", "deployments", "daemonsets"})  # `kubectl get all`
_VERBS = ["create", "delete", "get", "list", "patch", "update", "watch"]


def failure(error: KubernetesError) -> JsonObject:
    """Return the Status object of an error."""
    status = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure"}
    return {**status, "message": error.message, "reason": error.reason, "code": error.status}


def warning(text: str) -> str:
    """Return a value of the header Warning, which kubectl prints (RFC 7234, section 5.5)."""
    ascii_only = printable.line(text.encode("ascii", "replace").decode())
    quoted = ascii_only.replace("\\", "\\\\").replace('"', '\\"')
    return f'299 - "{quoted}"'


def success(target: Target) -> JsonObject:
    """Return the Status object of a verb that returns no object."""
    details = {"name": target.name, "kind": target.resource.plural}
    return {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "details": details}


def after(items: list[JsonObject], last: tuple[str, str] | None) -> list[JsonObject]:
    """Return the objects of a list ordered by key that come after the last one of the page before."""
    return items if last is None else items[bisect_right(items, last, key=_key) :]


def page(target: Target, rest: list[JsonObject], version: int, limit: int) -> JsonObject:
    """Return one page of a list: the first `limit` objects of the rest (0: all)."""
    shown = rest[:limit] if limit else rest
    metadata: JsonObject = {"resourceVersion": str(version)}
    if len(shown) < len(rest):
        metadata |= {"continue": _token(version, _key(shown[-1])), "remainingItemCount": len(rest) - len(shown)}
    resource = target.resource
    return {"kind": f"{resource.kind}List", "apiVersion": resource.api_version, "metadata": metadata, "items": shown}


def read_token(token: str) -> tuple[int, tuple[str, str]]:
    """Read a continue token: the list's version, and the last key of the page before.

    Raises:
        KubernetesError: 400, the token is not valid.
    """
    try:
        version, namespace, name = msgspec.json.decode(base64.urlsafe_b64decode(token), type=tuple[int, str, str])
    except (binascii.Error, msgspec.DecodeError, ValueError):
        raise KubernetesError(400, "BadRequest", "continue key is not valid") from None
    return version, (namespace, name)


def api_versions() -> JsonObject:
    """Return the answer to `/api`."""
    return {"kind": "APIVersions", "versions": ["v1"]}


def api_groups(custom: Iterable[Resource]) -> JsonObject:
    """Return the answer to `/apis`."""
    groups: dict[str, list[str]] = {}
    for resource in (*BUILTIN, *custom):
        if resource.group and resource.version not in groups.setdefault(resource.group, []):
            groups[resource.group].append(resource.version)
    return {
        "kind": "APIGroupList",
        "apiVersion": "v1",
        "groups": [_group(name, versions) for name, versions in sorted(groups.items())],
    }


def api_resources(group: str, version: str, custom: Iterable[Resource]) -> JsonObject:
    """Return the answer to `/api/v1` and `/apis/GROUP/VERSION`.

    Raises:
        KubernetesError: 404, the group has no such version.
    """
    found = {r.plural: r for r in (*BUILTIN, *custom) if (r.group, r.version) == (group, version)}
    if not found:
        raise KubernetesError(404, "NotFound", "the server could not find the requested resource")
    return {
        "kind": "APIResourceList",
        "apiVersion": "v1",
        "groupVersion": f"{group}/{version}" if group else version,
        "resources": [_described(resource) for resource in found.values()],
    }


def _group(name: str, versions: list[str]) -> JsonObject:
    known: list[dict[str, Any]] = [{"groupVersion": f"{name}/{v}", "version": v} for v in versions]
    return {"name": name, "versions": known, "preferredVersion": known[0]}


def _described(resource: Resource) -> JsonObject:
    return {
        "name": resource.plural,
        "singularName": resource.kind.lower(),
        "namespaced": resource.namespaced,
        "kind": resource.kind,
        "verbs": _VERBS,
        "shortNames": [resource.short] if resource.short else [],
        "categories": ["all"] if resource.plural in _ALL else [],
    }


def _key(item: JsonObject) -> tuple[str, str]:
    return item["metadata"].get("namespace", ""), item["metadata"]["name"]


def _token(version: int, key: tuple[str, str]) -> str:
    return base64.urlsafe_b64encode(msgspec.json.encode((version, *key))).decode()
