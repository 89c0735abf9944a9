"""A large cluster for benchmarks of the extender: nodes with cards and bound pods, in the simulator's API server.

The API server runs in the script's own process, the extender is a process of its own (`python -m extender`).
"""

import asyncio
import contextlib
import itertools
import json
import os
import socket
import sys
import tempfile
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Final

import httpx

from vgpu.domain import names
from vgpu.domain.grants import assignment
from vgpu.domain.grants.assignment import Assignment, Grant
from vgpu.domain.identifiers import CardUuid, ContainerName, NodeName
from vgpu.simulator.api import resources, server
from vgpu.simulator.api.cluster import InMemoryCluster

MEMORY_MIB: Final = 81_920
SLICE_MIB: Final = 256
POD_MIB: Final = 8_192
NAMESPACES: Final = 20
MODEL: Final = "NVIDIA H100 80GB HBM3"
READY_S: Final = 600.0

Document = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Extender:
    """A running extender: the URLs of its verbs and its REST, its process id, and its seconds from start to ready."""

    verbs: str
    rest: str
    pid: int
    ready_s: float


def new() -> InMemoryCluster:
    """Return an empty cluster."""
    numbers = itertools.count(1)
    return server.make_cluster(lambda: datetime.now(UTC), lambda: f"00000000-0000-4000-8000-{next(numbers):012x}")


def fill(cluster: InMemoryCluster, nodes: int, cards: int, pods: int) -> None:
    """Store nodes with cards, fresh Leases, and pods of `POD_MIB` that are spread over all cards."""
    for number in range(nodes):
        put_node(cluster, number, cards)
    for number in range(pods):
        put_pod(cluster, number, number % nodes, number // nodes % cards)


def node_name(number: int) -> str:
    """Return a node's name, as long as cloud providers make them."""
    return f"gpu-pool-a-{number:05}.cluster.internal"


def put_node(cluster: InMemoryCluster, number: int, cards: int) -> None:
    """Store a Node, its GPUNode and its Lease."""
    name, meta = node_name(number), {"creationTimestamp": "2026-01-01T00:00:00Z"}
    amounts = {names.SLICE: str(cards * MEMORY_MIB // SLICE_MIB), names.CARD: str(cards), "cpu": "64", "pods": "500"}
    node = {"metadata": meta | {"name": name}, "status": {"allocatable": amounts, "capacity": amounts}}
    cluster.store.put(resources.NODES.name, ("", name), node)
    seen = [card(number, index) for index in range(cards)]
    status = {"sliceMiB": SLICE_MIB, "pluginVersion": "0", "cards": seen}
    gpunode = {"metadata": meta | {"name": name}, "spec": {}, "status": status}
    cluster.store.put(resources.GPUNODES.name, ("", name), gpunode)
    renewed = (cluster.now() - timedelta(seconds=1)).isoformat()
    spec = {"holderIdentity": name, "leaseDurationSeconds": 86_400, "renewTime": renewed}
    lease = {"metadata": {"name": names.node_lease(NodeName(name)), "namespace": names.NAMESPACE}, "spec": spec}
    cluster.store.put(resources.LEASES.name, (names.NAMESPACE, names.node_lease(NodeName(name))), lease)


def card(node: int, index: int) -> Document:
    """Return what a device plugin reports of one card."""
    fields = {"uuid": card_uuid(node, index), "index": index, "model": MODEL, "numaNode": index // 4}
    return fields | {"memoryMiB": MEMORY_MIB, "healthy": True, "heldSlices": 0, "heldWhole": False}


def card_uuid(node: int, index: int) -> CardUuid:
    """Return a card's UUID, in NVML's form."""
    return CardUuid(f"GPU-{node:08x}-0000-4000-8000-{index:012x}")


def put_pod(cluster: InMemoryCluster, number: int, node: int, index: int) -> None:
    """Store a running pod that holds a share of one card."""
    namespace, name = f"team-{number % NAMESPACES}", f"train-{number:06}"
    grants = {ContainerName("main"): (Grant(card_uuid(node, index), POD_MIB, 10),)}
    made = pod(name, namespace)
    made["metadata"] |= {"uid": f"10000000-0000-4000-8000-{number:012x}"}
    made["metadata"]["annotations"] = {names.ASSIGNMENT: assignment.encode(Assignment(grants))}
    made["spec"]["nodeName"] = node_name(node)
    made["status"] = RUNNING
    cluster.store.put(resources.PODS.name, (namespace, name), made)


def remove_pod(cluster: InMemoryCluster, number: int) -> None:
    """End and delete a pod that `put_pod` made: the node counts what a pod held that is deleted while it runs."""
    key = (f"team-{number % NAMESPACES}", f"train-{number:06}")
    ended = cluster.store.get(resources.PODS.name, key) or {}
    cluster.store.put(resources.PODS.name, key, ended | {"status": ended.get("status", {}) | {"phase": "Succeeded"}})
    cluster.store.remove(resources.PODS.name, key)


def pod(name: str, namespace: str, memory_mib: int = POD_MIB, gpus: int = 1) -> Document:
    """Return a pod that the webhook has admitted; `memory_mib` is for each of its cards."""
    slices = gpus * -(-memory_mib // SLICE_MIB)
    amounts = {names.GPU_MEM: str(gpus * memory_mib), names.GPU_CORES: str(10 * gpus), names.GPU: str(gpus)}
    container = {
        "name": "main",
        "image": "registry.internal/team/train:2026.1",
        "env": [
            {"name": "VGPU_MEMORY_LIMIT", "value": f"{memory_mib}MiB"},
            {"name": "VGPU_CORES_LIMIT", "value": "10"},
        ],
        "resources": {"limits": amounts | {names.SLICE: str(slices)}},
    }
    metadata = {
        "name": name,
        "namespace": namespace,
        "creationTimestamp": "2026-01-01T00:00:00Z",
        "labels": {"app.kubernetes.io/name": "train", "job": name.rpartition("-")[0]},
    }
    return {"metadata": metadata, "spec": {"schedulerName": names.SCHEDULER, "containers": [container]}, "status": {}}


_TIME: Final = "2026-01-01T00:00:01Z"
RUNNING: Final[Document] = {
    "phase": "Running",
    "startTime": _TIME,
    "conditions": [
        {"type": kind, "status": "True", "lastTransitionTime": _TIME, "lastProbeTime": None}
        for kind in ("PodScheduled", "PodReadyToStartContainers", "Initialized", "ContainersReady", "Ready")
    ],
    "containerStatuses": [
        {"name": "main", "ready": True, "restartCount": 0, "state": {"running": {"startedAt": _TIME}}}
    ],
}


@asynccontextmanager
async def extender(cluster: InMemoryCluster, folder: Path | None = None, *options: str) -> AsyncIterator[Extender]:
    """Serve the cluster and run an extender over it, from the checkout `folder` (None: this one), with more options."""
    verbs, rest = free_port(), free_port()
    async with server.serving(cluster) as url:
        with tempfile.TemporaryDirectory() as settings:
            (Path(settings) / "kubeconfig").write_text(json.dumps(kubeconfig(url)))
            begun = time.monotonic()
            process = await asyncio.create_subprocess_exec(
                sys.executable, "-m", "extender", f"--kubeconfig={settings}/kubeconfig",
                f"--listen=127.0.0.1:{verbs}", f"--admin-listen=127.0.0.1:{rest}", "--log-level=warning", *options,
                cwd=folder, env=os.environ | {"PYTHONPATH": str(folder or Path.cwd())},
            )  # fmt: skip
            try:
                await ready(f"http://127.0.0.1:{verbs}/readyz")
                took = time.monotonic() - begun
                await ready(f"http://127.0.0.1:{rest}/healthz")
                yield Extender(f"http://127.0.0.1:{verbs}", f"http://127.0.0.1:{rest}/api/v1", process.pid, took)
            finally:
                process.terminate()
                await process.wait()


def kubeconfig(url: str) -> Document:
    """Return a configuration for clients of an API server without credentials."""
    return {
        "current-context": "c",
        "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}],
        "clusters": [{"name": "c", "cluster": {"server": url}}],
        "users": [{"name": "u", "user": {}}],
    }


async def ready(url: str) -> None:
    """Return when a URL answers with success."""
    async with asyncio.timeout(READY_S), httpx.AsyncClient() as http:
        while True:
            with contextlib.suppress(httpx.HTTPError):
                if (await http.get(url)).is_success:
                    return
            await asyncio.sleep(0.05)


def free_port() -> int:
    """Return a port that is free now."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port: int = listener.getsockname()[1]
        return port
