"""Pods that ask vgpushare for nothing by its own names: what `vgpu explain` and `vgpu doctor` say of them.

The admin REST does not know these pods, so the API server is asked, with the caller's own rights.
"""

from collections.abc import Callable, Mapping
from functools import cache
from itertools import islice
from pathlib import Path
from typing import Any, Final

from vgpu.cli.cluster import object_pages
from vgpu.cli.cluster.connection import endpoint
from vgpu.cli.cluster.connection.endpoint import ServerChoice
from vgpu.cli.cluster.connection.rest import Rest
from vgpu.cli.cluster.object_pages import ListingApi
from vgpu.cli.cluster.readmit import readmission
from vgpu.cli.failure import CommandFailed
from vgpu.domain import names
from vgpu.domain.asks import other_names, request
from vgpu.domain.cards.reasons import Reason
from vgpu.domain.identifiers import Namespace
from vgpu.domain.json_types import Json

ASKS_NVIDIA: Final = "AsksOtherPlugin"
MAX_FINDINGS: Final = 50

_PREFIX: Final = f"{names.DOMAIN}/"

Finding = dict[str, Any]


def look_up(chosen: ServerChoice, environment: Mapping[str, str], home: Path, namespace: str, name: str) -> str:
    """Return why vgpushare does not place a pod of the API server; empty where the caller cannot read it there."""
    if endpoint.is_direct(chosen, environment):  # the kubeconfig may be of another cluster
        return ""
    try:
        api = Rest(endpoint.api_server(chosen, environment, home).endpoint)
        return f"pod {namespace}/{name} {words(api.get(names.pod_path(Namespace(namespace), name)))}"
    except CommandFailed:
        return ""


def waiting(chosen: ServerChoice, environment: Mapping[str, str], home: Path) -> list[Finding]:
    """Return findings, as the admin REST writes them, about pods of the API server that wait for ever.

    Of all namespaces, or where the caller may not list those, of the kubeconfig's; empty where neither can be read.
    """
    if endpoint.is_direct(chosen, environment):  # the kubeconfig may be of another cluster
        return []
    try:
        found = endpoint.api_server(chosen, environment, home)
    except CommandFailed:
        return []
    api = Rest(found.endpoint)
    for path in ("/api/v1/pods", f"/api/v1/namespaces/{found.namespace}/pods"):
        try:
            return findings(api, path)
        except CommandFailed:
            continue
    return []


def findings(api: ListingApi, path: str) -> list[Finding]:
    """Return findings about the pods of a list that wait for ever, at most MAX_FINDINGS. Raises CommandFailed."""
    pods = object_pages.items(api, path, {"fieldSelector": "spec.nodeName=,status.phase=Pending"})
    others = (pod for pod in pods if not _asks_ours(pod))
    offered = cache(lambda: _offered(api))  # a long list, and few clusters have such pods
    found = (finding for pod in others if (finding := _of(pod, offered)))
    return list(islice(found, MAX_FINDINGS))


def words(pod: Json) -> str:
    """Return why vgpushare does not place a pod, and what to do for a card of its own: a sentence about the pod."""
    if asked := _ours(pod):
        written = ", ".join(f"{name}: {amount}" for name, amount in asked.items())
        return (
            f"asks vgpushare for GPUs ({written}), and the extender does not know it yet: ask again; "
            "where this stays so, see vgpu doctor"
        )
    if readmission.is_unadmitted(pod):
        return (
            "asks for GPUs by names that the webhook translates, and the webhook did not run when the pod was created: "
            "vgpu readmit"
        )
    return other_names.why_none(pod)


def _of(pod: Json, offered: Callable[[], frozenset[str]]) -> Finding | None:
    if readmission.is_unadmitted(pod):
        return _finding("error", pod, Reason.NOT_ADMITTED)
    asked = {resource for resource, _ in other_names.of_others(pod)}
    return _finding("warning", pod, ASKS_NVIDIA) if asked and not asked <= offered() else None


def _finding(severity: str, pod: Json, reason: str) -> Finding:
    metadata = pod["metadata"]
    about, since = f"pod {metadata['namespace']}/{metadata['name']}", metadata.get("creationTimestamp", "")
    return {"severity": severity, "about": about, "reason": str(reason), "detail": words(pod), "since": since}


def _asks_ours(pod: Json) -> bool:
    """Whether a pod asks for GPUs by our own names: the admin REST has the findings about it."""
    return bool(_ours(pod))


def _ours(pod: Json) -> dict[str, str]:
    """Return the amounts by our own names of the first container that has any."""
    containers = (request.amounts(container) for _, _, container in request.containers_of(pod))
    named = ({name: amount for name, amount in asked.items() if name.startswith(_PREFIX)} for asked in containers)
    return next(filter(None, named), {})


def _offered(api: ListingApi) -> frozenset[str]:
    """Return the resources that the nodes offer; none where the caller may not list nodes."""
    offered = set[str]()
    try:
        for node in object_pages.items(api, "/api/v1/nodes", {}):
            allocatable = (node.get("status") or {}).get("allocatable") or {}
            offered |= {name for name, amount in allocatable.items() if amount != "0"}
    except CommandFailed:
        return frozenset()
    return frozenset(offered)
