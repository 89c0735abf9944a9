"""What every witness says about devices at one quiet moment: the API server, the kubelets, the nodes' files.

Taken only while no pod is being started: a List of pod-resources during an Allocate makes the kubelet forget devices.
"""

import asyncio
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cluster import nodes
from cluster.cluster import GpuCluster
from deviceplugin.kubelet.messages import Listing
from deviceplugin.kubelet.pod_resources_client import PodResourcesClient
from tests.e2e.monitor import json_depth
from tests.e2e.monitor.part_processes import root
from vgpu.domain import names
from vgpu.domain.errors import MalformedError
from vgpu.node.containers import allocations
from vgpu.node.containers.allocations import Allocation

Document = dict[str, Any]


@dataclass(frozen=True, slots=True)
class RunningContainer:
    """A container as the runtime was told to start it."""

    namespace: str
    pod: str
    container: str
    cards: tuple[str, ...]
    mounts: tuple[tuple[str, str], ...]  # destination and source, in the order in which they are mounted


@dataclass(frozen=True, slots=True)
class OnNode:
    """What the kubelet and the files of one node say."""

    listing: Listing
    records: tuple[Allocation, ...]
    running: tuple[RunningContainer, ...]


@dataclass(frozen=True, slots=True)
class Snapshot:
    """Everything at one moment."""

    pods: tuple[Document, ...]
    gpunodes: tuple[Document, ...]
    nodes: Mapping[str, OnNode]


def take(cluster: GpuCluster) -> Snapshot:
    """Ask every witness."""
    pods = json_depth.loads(cluster.api.text("/api/v1/pods").encode())["items"]
    gpunodes = cluster.api.get(names.GPUNODES_PATH)["items"]
    return Snapshot(tuple(pods), tuple(gpunodes), {node.name: _on(node) for node in cluster.nodes})


def _on(node: nodes.ClusterNode) -> OnNode:
    folder = root(node) / "var/lib/vgpu/allocations"
    records = tuple(record for path in folder.glob("*/record.json") if (record := _record(path)) is not None)
    listing = asyncio.run(_listing(node.work / "lib/kubelet/pod-resources/kubelet.sock"))
    return OnNode(listing, records, tuple(_running(node.work / "containerd")))


async def _listing(socket: Path) -> Listing:
    client = PodResourcesClient(socket)
    try:
        return await client.list()
    finally:
        await client.close()


def _record(path: Path) -> Allocation | None:
    try:
        return allocations.decode(path.read_bytes())
    except (OSError, MalformedError):
        return None


def _running(containerd: Path) -> Iterator[RunningContainer]:
    for path in containerd.glob("state/io.containerd.runtime.v2.task/k8s.io/*/config.json"):
        try:
            spec = json.loads(path.read_bytes())
        except (OSError, ValueError):
            continue  # the container has just ended
        if spec.get("annotations", {}).get("io.kubernetes.cri.container-type") == "container":
            yield _container(spec, path.parent)


def _container(spec: Document, bundle: Path) -> RunningContainer:
    told = spec["annotations"]
    mounts = tuple((mount["destination"], mount["source"]) for mount in spec.get("mounts", []))
    listing = bundle / "simgpu-visible"
    cards = tuple(listing.read_text().split()) if listing.exists() else ()
    return RunningContainer(
        told["io.kubernetes.cri.sandbox-namespace"],
        told["io.kubernetes.cri.sandbox-name"],
        told["io.kubernetes.cri.container-name"],
        cards,
        mounts,
    )
