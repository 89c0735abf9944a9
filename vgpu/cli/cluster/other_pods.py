"""Pods that ask vgpushare for nothing: what to say of one that somebody wants explained."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from vgpu.cli.cluster import endpoint
from vgpu.cli.cluster.endpoint import ServerChoice
from vgpu.cli.cluster.rest import Rest
from vgpu.cli.failure import CommandFailed
from vgpu.domain import names
from vgpu.domain.identifiers import Namespace

_NVIDIA: Final = "nvidia.com/"  # https://github.com/NVIDIA/k8s-device-plugin


def look_up(chosen: ServerChoice, environment: Mapping[str, str], home: Path, namespace: str, name: str) -> str:
    """Return why vgpushare does not place a pod of the API server; empty where the caller cannot read it there."""
    if endpoint.is_direct(chosen, environment):  # the kubeconfig may be of another cluster
        return ""
    try:
        api = Rest(endpoint.api_server(chosen, environment, home).endpoint)
        return words(api.get(names.pod_path(Namespace(namespace), name)))
    except CommandFailed:
        return ""


def words(pod: Mapping[str, Any]) -> str:
    """Return why vgpushare does not place a pod, and what to write for a card of its own."""
    metadata = pod.get("metadata") or {}
    name = f"pod {metadata.get('namespace')}/{metadata.get('name')}"
    asked = next(_of_nvidia(pod), None)
    if asked is None:
        return f"{name} asks for no GPU: write {names.GPU_MEM} for a share, or {names.GPU} for whole cards"
    resource, amount = asked
    return (
        f"{name} asks NVIDIA's device plugin for cards ({resource}: {amount}), and vgpushare does not place it: "
        f"write {names.GPU}: {amount} for whole cards of vgpushare, or {names.GPU_MEM} for a share"
    )


def _of_nvidia(pod: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    spec = pod.get("spec") or {}
    for container in [*(spec.get("initContainers") or ()), *(spec.get("containers") or ())]:
        resources = container.get("resources") or {}
        for resource, amount in {**(resources.get("requests") or {}), **(resources.get("limits") or {})}.items():
            if resource.startswith(_NVIDIA):
                yield resource, amount
