"""A plugin with two cards of eight slices between a kubelet over real sockets and an in-memory API server."""

import asyncio
import contextlib
import itertools
import random
import tempfile
import time
import uuid
from collections.abc import AsyncIterator, Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import grpc
import msgspec
import pytest

from deviceplugin import app
from deviceplugin.candidate_search import DEADLINE_S
from deviceplugin.settings import PluginSettings
from deviceplugin.surroundings import PluginClocks, PluginSurroundings
from tests import kubeconfigs
from tests.deviceplugin.kubelet import Kubelet
from tests.deviceplugin.plugin_parts import PluginParts
from tests.vgpu.node.builders import NODE, gpu, manifest, mount_of
from vgpu.adapters.kubernetes import lease
from vgpu.adapters.kubernetes.client import KubernetesClient
from vgpu.adapters.nvml.records import BusySamples, Gpu, Reading, Xid
from vgpu.adapters.procfs import FileId, HostProcess
from vgpu.domain import names
from vgpu.domain.errors import KubernetesError
from vgpu.domain.formats import limits
from vgpu.domain.formats.limits import Limits
from vgpu.domain.identifiers import CardUuid
from vgpu.simulator.api import server

PODS = "/api/v1/namespaces/default/pods"


DRIVER_VERSION = "580.159.04"


@dataclass
class Driver:
    """A driver with cards and faults that a test sets."""

    cards: list[Gpu] = field(default_factory=lambda: [gpu(0), gpu(1)])
    ill: dict[CardUuid, str] = field(default_factory=dict)
    xids: list[Xid] = field(default_factory=list)
    users: dict[CardUuid, set[int]] = field(default_factory=dict)  # pids by card
    memory: dict[int, int] = field(default_factory=dict)  # bytes by pid
    samples: dict[CardUuid, BusySamples] = field(default_factory=dict)
    silent: set[CardUuid] = field(default_factory=set)  # cards that do not name their processes
    asked: int = 0  # how often the processes were asked for

    def gpus(self) -> tuple[Gpu, ...]:
        return tuple(self.cards)

    def driver_version(self) -> str:
        return DRIVER_VERSION

    def processes(self, gpus: Iterable[CardUuid]) -> dict[CardUuid, dict[int, int | None]]:
        self.asked += 1
        users = {uuid: self.users.get(uuid, ()) for uuid in gpus if uuid not in self.silent}
        return {uuid: {pid: self.memory.get(pid) for pid in pids} for uuid, pids in users.items()}

    def readings(self, gpus: Iterable[CardUuid]) -> dict[CardUuid, Reading]:
        told = Reading(2 << 30, 1 << 30, 1 << 30, 40.0, 300.0, 12.5, 0.5)
        return {uuid: told for uuid in gpus if uuid not in self.silent}

    def busy_samples(self, since_us: Mapping[CardUuid, int]) -> dict[CardUuid, BusySamples]:
        return {uuid: self.samples.get(uuid, BusySamples()) for uuid in since_us if uuid not in self.silent}

    def faults(self, gpus: Iterable[CardUuid]) -> dict[CardUuid, str]:
        return {uuid: self.ill.get(uuid, "") for uuid in gpus}

    def subscribe(self, gpus: Iterable[CardUuid]) -> frozenset[CardUuid]:
        return frozenset(gpus)

    def wait_for_xid(self, timeout_ms: int) -> Xid | None:
        time.sleep(min(timeout_ms, 10) / 1000)
        return self.xids.pop(0) if self.xids else None


class Processes(dict[int, HostProcess]):
    """A /proc whose processes a test sets. `files` are what a process has mapped."""

    def __init__(self) -> None:
        super().__init__()
        self.files: dict[int, frozenset[FileId]] = {}
        self.using: set[str] = set()  # allocations whose limits file a process has mounted
        self.can_compare = True

    def process(self, pid: int) -> HostProcess | None:
        return self.get(pid)

    def mapped(self, pids: Collection[int]) -> dict[int, frozenset[FileId]]:
        return {pid: self.files[pid] for pid in pids if pid in self.files}

    def mountinfos(self) -> dict[int, str]:
        return dict(enumerate(map(mount_of, sorted(self.using)), start=100))

    def tells_files_apart(self, path: Path) -> bool:
        return self.can_compare and path.exists()


@dataclass
class World:
    """One device plugin, with the kubelet, the driver and the API server that it talks to."""

    directory: Path
    client: KubernetesClient
    kubelet: Kubelet
    driver: Driver
    settings: PluginSettings
    plugins: list[asyncio.Task[None]] = field(default_factory=list)
    processes: Processes = field(default_factory=Processes)
    clock_s: float = 0.0
    search_s: float = DEADLINE_S

    @property
    def state(self) -> Path:
        return self.directory / "state"

    def start_plugin(self) -> None:
        clocks = PluginClocks(
            time.monotonic,
            lambda: time.time() + self.clock_s,
            lambda: datetime.now(UTC),
            lambda: str(uuid.uuid4()),
            random.random,
        )
        surroundings = PluginSurroundings(self.driver, self.processes, self.client, clocks, {})
        plugin = app.build(self.settings, surroundings, search_s=self.search_s)
        self.plugins.append(asyncio.create_task(plugin.run()))

    async def stop_plugin(self) -> None:
        plugin = self.plugins.pop()
        plugin.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await plugin
        await self.until(lambda: not self.kubelet.clients)

    async def create(self, name: str, *containers: dict[str, Any], **more: Any) -> dict[str, Any]:
        """Create a pod in the API that is bound to this node."""
        made = manifest(name, *containers, **more)
        created: dict[str, Any] = msgspec.json.decode(await self.client.post(PODS, made))
        return created

    async def run(self, name: str, *containers: dict[str, Any], **more: Any) -> dict[str, Any]:
        """Create a pod, admit it and start its containers."""
        pod = await self.create(name, *containers, **more)
        await self.kubelet.admit(pod)
        for container in self.kubelet.allocations[pod["metadata"]["uid"]]:
            await self.kubelet.start_container(pod, container)
        await self.set_status(pod, {"phase": "Running", "startTime": "2026-01-01T00:00:00Z"})
        return pod

    async def set_status(self, pod: dict[str, Any], status: dict[str, Any]) -> None:
        await self.client.patch(f"{PODS}/{pod['metadata']['name']}/status", {"status": status})

    async def end(self, pod: dict[str, Any]) -> None:
        """End a pod as a kubelet does: its phase is terminal before it is removed from the API."""
        self.kubelet.end(pod["metadata"]["uid"])
        await self.set_status(pod, {"phase": "Succeeded"})
        await self.force_delete(pod)

    async def force_delete(self, pod: dict[str, Any]) -> None:
        """Remove a pod from the API at once, whatever its containers do."""
        body = {"gracePeriodSeconds": 0}
        await self.client.delete(f"{PODS}/{pod['metadata']['name']}", body)

    async def refusal(self, pod: dict[str, Any], container: str = "main") -> str:
        """Start a container that must be refused, and return the plugin's message."""
        with pytest.raises(grpc.aio.AioRpcError) as caught:
            await self.kubelet.start_container(pod, container)
        return caught.value.details() or ""

    async def can_start(self, pod: dict[str, Any]) -> bool:
        """Start a pod's container `main`; whether it was not refused."""
        try:
            await self.kubelet.start_container(pod)
        except grpc.aio.AioRpcError:
            return False
        return True

    def cards_of(self, pod: dict[str, Any], container: str = "main") -> set[str]:
        """UUIDs of the cards whose devices a container has."""
        allocated = self.kubelet.allocations[pod["metadata"]["uid"]][container]
        return {device_id.partition("::")[0] for ids in allocated.values() for device_id in ids}

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

    async def lease(self) -> lease.LeaseRecord | None:
        path = f"/apis/coordination.k8s.io/v1/namespaces/{names.NAMESPACE}/leases/{names.node_lease(NODE)}"
        try:
            return lease.decode(msgspec.json.decode(await self.client.get(path)))
        except KubernetesError:
            return None

    async def events(self) -> list[tuple[str, str]]:
        listed = msgspec.json.decode(await self.client.get("/api/v1/namespaces/default/events"))
        return [(item["involvedObject"]["name"], item["reason"]) for item in listed["items"]]

    async def until(self, condition: Callable[[], Any], within_s: float = 10) -> None:
        """Wait until a function, or a coroutine function, returns something true."""
        async with asyncio.timeout(within_s):
            while True:
                result = condition()
                if await result if asyncio.iscoroutine(result) else result:
                    return
                await asyncio.sleep(0.005)

    async def until_registered(self, within_s: float = 5) -> None:
        clients = self.kubelet.clients
        await self.until(lambda: len(clients) == 2 and all(client.devices for client in clients.values()), within_s)


@pytest.fixture
async def idle_world() -> AsyncIterator[World]:
    """A world whose plugin is not started yet."""
    numbers = itertools.count(1)
    api = server.make_cluster(lambda: datetime.now(UTC), lambda: f"{next(numbers):08x}-uid")
    with tempfile.TemporaryDirectory(prefix="vgpu-") as folder:  # short: a socket's path has 107 characters at most
        async with server.serving(api) as url, _client(Path(folder), url) as client:
            await client.post("/api/v1/nodes", {"apiVersion": "v1", "kind": "Node", "metadata": {"name": NODE}})
            made = _world(Path(folder), client)
            await made.kubelet.start()
            yield made
            await made.kubelet.stop()
            while made.plugins:
                await made.stop_plugin()


@pytest.fixture
async def world(idle_world: World) -> World:
    """A world whose plugin runs and is registered."""
    idle_world.start_plugin()
    await idle_world.until_registered()
    return idle_world


@pytest.fixture
async def parts(tmp_path: Path) -> PluginParts:
    return PluginParts(tmp_path)


def settings_of(**flags: Any) -> PluginSettings:
    """Settings by field name; the keywords are untyped because mypy takes a field with a default for required."""
    return PluginSettings(**flags)


def _world(folder: Path, client: KubernetesClient) -> World:
    library = folder / "libvgpushare.so"
    library.write_bytes(b"library")
    arbiter = folder / "vgpu-arbiter"  # a script; tests/arbiter and tests/e2e run the real arbiter
    arbiter.write_text(f"#!/bin/sh\necho $$ >> {folder}/arbiter-pids\nexec sleep 1000\n")
    arbiter.chmod(0o755)
    settings = settings_of(
        node_name=NODE,
        kubelet_dir=folder / "kubelet",
        state_dir=folder / "state",
        library=library,
        arbiter=arbiter,
        region_tmpfs=False,
        health_period=0.05,
        xid_quarantine=0.3,
    )
    return World(folder, client, Kubelet(folder / "kubelet"), Driver(), settings)


@contextlib.asynccontextmanager
async def _client(folder: Path, url: str) -> AsyncIterator[KubernetesClient]:
    async with await KubernetesClient.connect(str(kubeconfigs.write(folder, url)), user_agent="test") as client:
        yield client
