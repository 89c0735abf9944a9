"""The extender's verbs and watches over an in-memory API server: three nodes, each with two cards of eight slices."""

import asyncio
import itertools
import json
import random
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec
import pytest

from extender import assembly
from extender.app import SchedulerVerbs
from extender.assembly import Observers
from extender.clocks import Clocks
from extender.effects.node_refusals import NodeRefusals
from extender.history.recording.events import Record
from extender.settings import ExtenderSettings
from extender.state.cluster import Cluster
from extender.watch.watches import Watches
from tests import kubeconfigs, strategies
from vgpu.adapters.kubernetes import lease
from vgpu.adapters.kubernetes.client import KubernetesClient, PatchKind
from vgpu.domain import names, slices
from vgpu.domain.errors import KubernetesError
from vgpu.domain.identifiers import NodeName
from vgpu.simulator.api import server

PODS = "/api/v1/namespaces/default/pods"


class Clock:
    """Monotonic seconds that a test advances."""

    def __init__(self) -> None:
        self.seconds = 1000.0

    def __call__(self) -> float:
        return self.seconds

    async def sleep(self, seconds: float) -> None:
        until = self.seconds + seconds
        while self.seconds < until:
            await asyncio.sleep(0.005)


class FlakyClient(KubernetesClient):
    """A client whose next requests fail.

    Bindings fail before or after the server carried them out, as `faults` says. Changes of a pod's status by the
    extender fail with `status_faults`.
    """

    faults: list[tuple[str, KubernetesError]]
    status_faults: list[KubernetesError]
    lost: list[tuple[str, Any]]
    posts: int
    reads_fail: bool

    async def post(self, path: str, body: Any, *, timeout: float = 30) -> bytes:
        if not path.endswith("/binding"):
            return await super().post(path, body, timeout=timeout)
        self.posts += 1
        await asyncio.sleep(0)
        when, error = self.faults.pop(0) if self.faults else ("", KubernetesError(0, "", ""))
        if when == "before":
            self.lost.append((path, body))
            raise error
        response = await super().post(path, body, timeout=timeout)
        if when == "after":
            raise error
        return response

    async def patch(self, path: str, body: Any, *, kind: PatchKind = PatchKind.MERGE, timeout: float = 30) -> bytes:
        if self.status_faults and kind is PatchKind.STRATEGIC:
            raise self.status_faults.pop(0)
        return await super().patch(path, body, kind=kind, timeout=timeout)

    async def get(self, path: str, params: Any = None, *, timeout: float = 30) -> bytes:
        if self.reads_fail and path.startswith(PODS + "/"):
            raise KubernetesError(0, "TimeoutError", path)
        return await super().get(path, params, timeout=timeout)


@dataclass
class Leader:
    """A leadership whose refusal a test sets."""

    refusal_text: str = ""

    def refusal(self) -> str:
        return self.refusal_text


@dataclass
class ListRecorder:
    """Keeps every record of the history."""

    records: list[Record] = field(default_factory=list)

    def record(self, record: Record) -> None:
        self.records.append(record)

    def kinds(self) -> list[str]:
        return [type(record).__name__ for record in self.records]


@dataclass
class World:
    """One extender, with the clock, the leadership and the API client that a test controls."""

    client: FlakyClient
    cluster: Cluster
    clock: Clock
    watches: Watches
    leader: Leader
    verbs: SchedulerVerbs
    watching: asyncio.Task[None]
    refusals: NodeRefusals
    seen: Observers
    history: ListRecorder
    numbers: Any = field(default_factory=lambda: itertools.count(1))

    async def create_pod(
        self, *, admitted: bool = True, metadata: dict[str, Any] | None = None, **amounts: int | str
    ) -> dict[str, Any]:
        obj = strategies.pod(strategies.container(**(amounts or {"gpu_mem": 1024})))
        obj["metadata"] = {"name": f"pod-{next(self.numbers)}", "namespace": "default", **(metadata or {})}
        del obj["spec"]["nodeName"]
        created: dict[str, Any] = msgspec.json.decode(
            await self.client.post(PODS, strategies.admit(obj) if admitted else obj)
        )
        await self.until(lambda: created["metadata"]["uid"] in self.cluster.objects.pods)
        return created

    async def serve_space(self, *nodes: str) -> None:
        """Have the device plugins of these nodes report that a supervisor of MPS daemons runs."""
        for node in nodes:
            path = f"{names.GPUNODES_PATH}/{node}"
            cards = msgspec.json.decode(await self.client.get(path))["status"]["cards"]
            served = [card | {"servesSpace": True} for card in cards]
            await self.client.patch(f"{path}/status", {"status": {"cards": served}})
        gpunodes = self.cluster.objects.gpunodes
        await self.until(lambda: all(c.serves_space for node in nodes for c in gpunodes[NodeName(node)].node.cards))

    async def filter(self, pod: dict[str, Any], *nodes: str) -> dict[str, Any]:
        body = {"Pod": pod, "NodeNames": list(nodes or ("n1", "n2", "n3"))}
        result: dict[str, Any] = json.loads(await self.verbs.filter(json.dumps(body).encode()))
        return result

    async def prioritize(self, pod: dict[str, Any], *nodes: str) -> list[dict[str, Any]]:
        body = {"Pod": pod, "NodeNames": list(nodes)}
        scores: list[dict[str, Any]] = json.loads(await self.verbs.prioritize(json.dumps(body).encode()))
        return scores

    async def bind(self, pod: dict[str, Any], node: str = "n1") -> str:
        meta = pod["metadata"]
        body = {"PodName": meta["name"], "PodNamespace": "default", "PodUID": meta["uid"], "Node": node}
        error: str = json.loads(await self.verbs.bind(json.dumps(body).encode()))["Error"]
        return error

    async def end_pod(self, pod: dict[str, Any]) -> None:
        """End a pod as its kubelet does: its phase is terminal before it is removed."""
        path = f"{PODS}/{pod['metadata']['name']}/status"
        await self.client.patch(path, {"status": {"phase": "Failed"}})
        await self.delete_pod(pod)

    async def delete_pod(self, pod: dict[str, Any]) -> None:
        """Delete a pod by force."""
        await self.client.delete(f"{PODS}/{pod['metadata']['name']}", {"gracePeriodSeconds": 0})
        await self.until(lambda: pod["metadata"]["uid"] not in self.cluster.objects.pods)

    def stop_watching(self) -> None:
        """Stop every watch: the extender sees no later change."""
        self.watching.cancel()

    async def read(self, pod: dict[str, Any]) -> dict[str, Any]:
        found: dict[str, Any] = msgspec.json.decode(await self.client.get(f"{PODS}/{pod['metadata']['name']}"))
        return found

    async def until(self, condition: Any) -> None:
        async with asyncio.timeout(10):
            while not condition():
                await asyncio.sleep(0.005)

    async def until_bound_is_watched(self, pod: dict[str, Any]) -> None:
        uid = pod["metadata"]["uid"]
        await self.until(lambda: bool(self.cluster.objects.pods[uid].node))

    async def events(self, *, count: int = 1) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = []
        async with asyncio.timeout(5):
            while len(found) < count:
                await asyncio.sleep(0.01)
                found = json.loads(await self.client.get("/api/v1/namespaces/default/events"))["items"]
        return found

    def used_slices(self, node: str = "n1") -> list[int]:
        return [state.usage.slices for state in self.cluster.states.of(NodeName(node)).cards]


def gpu_node(name: str, *, slice_mib: int = 256, cards: int = 2, memory_mib: int = 2048) -> dict[str, Any]:
    card_statuses = [
        {"uuid": f"GPU-{name}-{n}", "index": n, "model": "NVIDIA H100", "memoryMiB": memory_mib, "healthy": True}
        for n in range(cards)
    ]
    return {
        "apiVersion": names.API_VERSION,
        "kind": "GPUNode",
        "metadata": {"name": name},
        "status": {"sliceMiB": slice_mib, "pluginVersion": "0", "cards": card_statuses},
    }


async def add_node(client: KubernetesClient, name: str, memory_mib: int = 2048) -> None:
    node = {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name},
        "status": {"allocatable": {names.SLICE: str(2 * slices.holding(memory_mib, 256)), names.CARD: "2"}},
    }
    await client.post("/api/v1/nodes", node)
    gpunode = gpu_node(name, memory_mib=memory_mib)
    await client.post(names.GPUNODES_PATH, gpunode)
    await client.patch(f"{names.GPUNODES_PATH}/{name}/status", {"status": gpunode["status"]})
    await lease.renew(client, names.NAMESPACE, names.node_lease(NodeName(name)), name, 3, datetime.now(UTC))


async def add_duplicate(client: KubernetesClient) -> None:
    """Add the node n4, whose plugin lives and reports a card of n1 as its first one."""
    await client.post("/api/v1/nodes", {
        "apiVersion": "v1", "kind": "Node", "metadata": {"name": "n4"},
        "status": {"allocatable": {names.SLICE: "16", names.CARD: "2"}},
    })  # fmt: skip
    duplicate = gpu_node("n4")
    duplicate["status"]["cards"][0]["uuid"] = "GPU-n1-0"
    await client.post(names.GPUNODES_PATH, duplicate)
    await client.patch(f"{names.GPUNODES_PATH}/n4/status", {"status": duplicate["status"]})
    await lease.renew(client, names.NAMESPACE, names.node_lease(NodeName("n4")), "n4", 3, datetime.now(UTC))


@asynccontextmanager
async def world_over(url: str, tmp_path: Path, clock: Clock) -> AsyncIterator[World]:
    kubeconfig = kubeconfigs.write(tmp_path, url)
    async with await FlakyClient.connect(str(kubeconfig), user_agent="test") as client:
        client.faults, client.status_faults, client.lost, client.posts, client.reads_fail = [], [], [], 0, False
        for name in ("n1", "n2", "n3"):
            await add_node(client, name)
        leader = Leader()
        settings = ExtenderSettings.model_construct()
        clocks = Clocks(clock, lambda: datetime.now(UTC), clock.sleep)
        history = ListRecorder()
        seen = assembly.Observers(client, settings, clocks, random.random, history, "replica")
        acting = assembly.actors(seen, leader)
        watching = asyncio.create_task(seen.watches.run())
        runs = (seen.recorder.run, seen.unschedulable.run, seen.cluster.rows.run, *acting.tasks)
        tasks = [watching, *(asyncio.create_task(run()) for run in runs)]
        await seen.watches.wait()
        seen.history.begin(seen.cluster.objects.pods.values())
        parts = seen.watches, leader, acting.verbs, watching, seen.refusals, seen, history
        yield World(client, seen.cluster, clock, *parts)
        await acting.verbs.binder.drain(0)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[World]:
    numbers = itertools.count(1)
    api = server.make_cluster(lambda: datetime.now(UTC), lambda: f"{next(numbers):08x}-uid")
    async with server.serving(api) as url, world_over(url, tmp_path, Clock()) as made:
        yield made
