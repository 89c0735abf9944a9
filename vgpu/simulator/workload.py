"""The workload: one pod of each kind first, which shows every case, then batch pods that start and end."""

import asyncio
import contextlib
from collections import deque
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass, field
from itertools import cycle, islice
from typing import Final

from vgpu.domain import names
from vgpu.domain.errors import KubernetesError
from vgpu.domain.json_types import JsonObject
from vgpu.simulator.api.cluster import InMemoryCluster
from vgpu.simulator.api.resources import PODS, Target
from vgpu.simulator.kubelet import RUNS_FOR

NAMESPACE: Final = "default"
PAUSE_S: Final = 1.0
BATCH_PAUSE_S: Final = 4.0  # between batch pods that come without end: eight run at a time, on a quarter of 12 cards
KEPT_BATCH_PODS: Final = 15  # older ones are deleted: they ended ten seconds ago or more


@dataclass(frozen=True, slots=True)
class PodTemplate:
    """A pod to create: its limits, its annotations, and for how long it runs (0: until the end)."""

    name: str
    limits: dict[str, int | str]
    annotations: dict[str, str] = field(default_factory=dict)
    runs_s: int = 0

    def manifest(self, name: str = "") -> JsonObject:
        """Return the manifest as a user would write it."""
        annotations = self.annotations | ({RUNS_FOR: str(self.runs_s)} if self.runs_s else {})
        container = {"name": "main", "image": "example/cuda", "resources": {"limits": self.limits}}
        return {
            "metadata": {"name": name or self.name, "namespace": NAMESPACE, "annotations": annotations},
            "spec": {"restartPolicy": "Never", "containers": [container]},
        }


@dataclass(frozen=True, slots=True)
class RejectedPod:
    """A pod that admission refused."""

    name: str
    why: str


FIRST_PODS: Final = (
    PodTemplate("notebook-a", {names.GPU_MEM: 8192, names.GPU_CORES: 30}),
    PodTemplate("notebook-b", {names.GPU_MEM: 8192, names.GPU_CORES: 30}),
    PodTemplate("inference", {names.GPU_MEM: 20480, names.GPU_CORES: 50}, {names.NODE_POLICY: "spread"}),
    PodTemplate("three-cards", {names.GPU_MEM: 18432, names.GPU_CORES: 240, names.GPU: 3}),
    PodTemplate("whole-card", {names.GPU: 1}),
    PodTemplate("typo", {names.GPU_MEM: "16Gi"}),
    PodTemplate(
        "from-volcano", {"volcano.sh/vgpu-memory": 10240, "volcano.sh/vgpu-number": 1, "volcano.sh/vgpu-cores": 20}
    ),
    PodTemplate("background", {names.GPU_MEM: 4096}, {names.COMPUTE_POLICY: "best-effort"}),
    PodTemplate("too-large", {names.GPU_MEM: 200_000}),
)
BATCH_PODS: Final = (
    PodTemplate("batch", {names.GPU_MEM: 16384, names.GPU_CORES: 25}, runs_s=30),
    PodTemplate("sweep", {names.GPU_MEM: 6144, names.GPU_CORES: 10}, {names.GPU_POLICY: "spread"}, runs_s=45),
    PodTemplate("eval", {names.GPU_MEM: 24576, names.GPU_CORES: 60}, runs_s=20),
)


def manifests() -> Iterator[JsonObject]:
    """Yield the manifests of one pod of each kind, then of batch pods without end."""
    yield from (wanted.manifest() for wanted in FIRST_PODS)
    for number, wanted in enumerate(cycle(BATCH_PODS), 1):
        yield wanted.manifest(f"{wanted.name}-{number}")


class SimulatedWorkload:
    """Creates pods one by one, and remembers those that were refused."""

    def __init__(self, cluster: InMemoryCluster, sleep: Callable[[float], Awaitable[None]] = asyncio.sleep) -> None:
        self._cluster = cluster
        self._sleep = sleep
        self.refused: list[RejectedPod] = []

    async def run(self, count: int, *, goes_on: bool = False) -> None:
        """Create `count` pods, one each second; with `goes_on` then a batch pod every BATCH_PAUSE_S, without end."""
        waiting = manifests()
        for manifest in islice(waiting, count):
            await self.create(manifest)
            await self._sleep(PAUSE_S)
        if goes_on:
            await self._go_on(waiting)

    async def create(self, manifest: JsonObject) -> None:
        """Create one pod through admission, as kubectl does."""
        try:
            await self._cluster.create(Target(PODS, NAMESPACE), manifest)
        except KubernetesError as error:
            self.refused.append(RejectedPod(manifest["metadata"]["name"], error.message))

    async def _go_on(self, waiting: Iterator[JsonObject]) -> None:
        created: deque[str] = deque()
        for manifest in waiting:
            await self.create(manifest)
            created.append(manifest["metadata"]["name"])
            if len(created) > KEPT_BATCH_PODS:
                with contextlib.suppress(KubernetesError):  # a user has deleted it
                    await self._cluster.delete(Target(PODS, NAMESPACE, created.popleft()), {})
            await self._sleep(BATCH_PAUSE_S)
