"""A plugin with two cards of eight slices between a kubelet over real sockets and an in-memory API server."""

import asyncio
import contextlib
import itertools
import json
import random
import tempfile
import time
import uuid
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec
import pytest

from deviceplugin import app
from deviceplugin.app import Clocks
from deviceplugin.settings import Settings
from tests.deviceplugin.kubelet import Kubelet
from tests.vgpu.node.builders import NODE, gpu, manifest
from vgpu import limits, names
from vgpu.adapters.kubernetes import lease
from vgpu.adapters.kubernetes.client import Client
from vgpu.adapters.nvml import Gpu, Xid
from vgpu.errors import KubernetesError
from vgpu.limits import Limits
from vgpu.simulator.api import server

PODS = "/api/v1/namespaces/default/pods"


@dataclass
class Driver:
    """Cards that answer as the test says."""

    cards: list[Gpu] = field(default_factory=lambda: [gpu(0), gpu(1)])
    ill: dict[str, str] = field(default_factory=dict)
    xids: list[Xid] = field(default_factory=list)

    def gpus(self) -> tuple[Gpu, ...]:
        return tuple(self.cards)

    def fault(self, uuid: str) -> str:
        return self.ill.get(uuid, "")

    def subscribe(self, uuid: str) -> bool:
        return bool(uuid)

    def wait_for_xid(self, timeout_ms: int) -> Xid | None:
        time.sleep(min(timeout_ms, 10) / 1000)
        return self.xids.pop(0) if self.xids else None


@dataclass
class World:
    """Everything a test touches."""

    directory: Path
    client: Client
    kubelet: Kubelet
    driver: Driver
    settings: Settings
    plugins: list[asyncio.Task[None]] = field(default_factory=list)
    clock_s: float = 0.0

    @property
    def state(self) -> Path:
        return self.directory / "state"

    def start_plugin(self) -> None:
        clocks = Clocks(
            time.monotonic,
            lambda: time.time() + self.clock_s,
            lambda: datetime.now(UTC),
            lambda: str(uuid.uuid4()),
            random.random,
        )
        self.plugins.append(asyncio.create_task(app.build(self.settings, self.driver, self.client, clocks).run()))

    async def stop_plugin(self) -> None:
        plugin = self.plugins.pop()
        plugin.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await plugin
        await self.until(lambda: not self.kubelet.clients)

    async def create(self, name: str, *containers: dict[str, Any], **more: Any) -> dict[str, Any]:
        """Put a pod into the API, bound here."""
        made = manifest(name, *containers, **more)
        created: dict[str, Any] = msgspec.json.decode(await self.client.post(PODS, made))
        return created

    async def run(self, name: str, *containers: dict[str, Any], **more: Any) -> dict[str, Any]:
        """Create a pod, have it admitted and its containers started."""
        pod = await self.create(name, *containers, **more)
        await self.kubelet.admit(pod)
        for container in self.kubelet.given[pod["metadata"]["uid"]]:
            await self.kubelet.start_container(pod, container)
        await self.set_status(pod, {"phase": "Running", "startTime": "2026-01-01T00:00:00Z"})
        return pod

    async def set_status(self, pod: dict[str, Any], status: dict[str, Any]) -> None:
        await self.client.patch(f"{PODS}/{pod['metadata']['name']}/status", {"status": status})

    async def end(self, pod: dict[str, Any]) -> None:
        """The kubelet forgets the pod, then the API server does."""
        self.kubelet.end(pod["metadata"]["uid"])
        body = {"gracePeriodSeconds": 0}
        await self.client.delete(f"{PODS}/{pod['metadata']['name']}", body)

    def limits(self, pod: dict[str, Any], container: str = "main") -> Limits:
        return limits.decode(self.kubelet.mount(pod, "/run/vgpu/limits", container).read_bytes())

    async def gpunode(self) -> dict[str, Any]:
        try:
            found: dict[str, Any] = msgspec.json.decode(await self.client.get(f"{names.GPUNODES_PATH}/{NODE}"))
        except KubernetesError:
            return {}
        return found

    async def cards(self) -> list[dict[str, Any]]:
        cards: list[dict[str, Any]] = (await self.gpunode()).get("status", {}).get("cards", [])
        return cards

    async def lease(self) -> lease.Record | None:
        path = f"/apis/coordination.k8s.io/v1/namespaces/{names.NAMESPACE}/leases/{names.node_lease(NODE)}"
        try:
            return lease.decode(msgspec.json.decode(await self.client.get(path)))
        except KubernetesError:
            return None

    async def events(self) -> list[tuple[str, str]]:
        listed = msgspec.json.decode(await self.client.get("/api/v1/namespaces/default/events"))
        return [(each["involvedObject"]["name"], each["reason"]) for each in listed["items"]]

    async def until(self, condition: Callable[[], Any], within_s: float = 10) -> None:
        """Wait for a condition, or for one that must be awaited."""
        async with asyncio.timeout(within_s):
            while True:
                said = condition()
                if await said if asyncio.iscoroutine(said) else said:
                    return
                await asyncio.sleep(0.005)

    async def until_registered(self, within_s: float = 5) -> None:
        clients = self.kubelet.clients
        await self.until(lambda: len(clients) == 2 and all(each.devices for each in clients.values()), within_s)


@pytest.fixture
async def world() -> AsyncIterator[World]:
    numbers = itertools.count(1)
    api = server.make_cluster(lambda: datetime.now(UTC), lambda: f"{next(numbers):08x}-uid")
    with tempfile.TemporaryDirectory(prefix="vgpu-") as folder:  # a socket's path has 107 characters at most
        async with server.serving(api) as url, _client(Path(folder), url) as client:
            await client.post("/api/v1/nodes", {"apiVersion": "v1", "kind": "Node", "metadata": {"name": NODE}})
            made = _world(Path(folder), client)
            await made.kubelet.start()
            yield made
            await made.kubelet.stop()
            while made.plugins:
                await made.stop_plugin()


@pytest.fixture
async def running(world: World) -> World:
    """A world whose plugin is registered."""
    world.start_plugin()
    await world.until_registered()
    return world


def settings_of(**flags: Any) -> Settings:
    """Settings by field name; the keywords are untyped because mypy takes a field with a default for required."""
    return Settings(**flags)


def _world(folder: Path, client: Client) -> World:
    library = folder / "libvgpushare.so"
    library.write_bytes(b"library")
    arbiter = folder / "vgpu-arbiter"  # a stand-in; the real one is tried in tests/arbiter and on the cluster
    arbiter.write_text(f"#!/bin/sh\necho $$ >> {folder}/arbiter-pids\nexec sleep 1000\n")
    arbiter.chmod(0o755)
    settings = settings_of(
        node_name=NODE,
        kubelet_dir=folder / "kubelet",
        state_dir=folder / "state",
        library=library,
        arbiter=arbiter,
        regions_mib=0,
        health_period=0.05,
        xid_quarantine=0.3,
    )
    return World(folder, client, Kubelet(folder / "kubelet"), Driver(), settings)


@contextlib.asynccontextmanager
async def _client(folder: Path, url: str) -> AsyncIterator[Client]:
    config = {
        "current-context": "c",
        "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}],
        "clusters": [{"name": "c", "cluster": {"server": url}}],
        "users": [{"name": "u", "user": {}}],
    }
    (folder / "kubeconfig").write_text(json.dumps(config))
    async with await Client.connect(str(folder / "kubeconfig"), user_agent="test") as client:
        yield client
