"""Pods that ask vgpushare for nothing: what to say of one that somebody wants explained."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

from vgpu.cli.cluster import endpoint
from vgpu.cli.cluster.endpoint import ServerChoice
from vgpu.cli.cluster.rest import Rest
from vgpu.cli.failure import CommandFailed
from vgpu.domain import names
from vgpu.domain.asks import request
from vgpu.domain.identifiers import Namespace
from vgpu.domain.json_types import Json

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


def words(pod: Json) -> str:
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


def _of_nvidia(pod: Json) -> Iterator[tuple[str, str]]:
    for _, _, container in request.containers_of(pod):
        for resource, amount in request.amounts(container).items():
            if resource.startswith(_NVIDIA):
                yield resource, amount
