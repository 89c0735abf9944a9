"""The policies through the extender's verbs, bytes to bytes, with an API server that accepts every Binding.

kube-scheduler's part is as in a cluster: it asks filter about every node with enough CPU and memory, prioritize about
the nodes that fit if there are several, and binds the pod to the node with the highest score. A card has 1,000 slices.
"""

import asyncio
import json
import uuid
from collections.abc import Sequence
from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any, Final

from benchmarks.placement.baselines import Baseline, Choice
from benchmarks.placement.fleet import FleetArrays
from benchmarks.placement.traces import Trace, TraceNode
from extender import assembly
from extender.clocks import Clocks
from extender.settings import ExtenderSettings
from extender.state import objects
from extender.state.objects import WatchedLease
from extender.state.pod_reader import PodReader
from vgpu.domain import names
from vgpu.domain.cards.card_status import card_status
from vgpu.domain.cards.device import Card
from vgpu.domain.identifiers import CardUuid, NodeName
from vgpu.domain.json_types import JsonObject
from vgpu.placement.models import ALL
from vgpu.placement.room import CARD, PodAsk

MODELS: Final = 8  # models of a trace


class AcceptingServer:
    """Stands for the API server: keeps the last Binding."""

    def __init__(self) -> None:
        self.bound: JsonObject = {}

    async def post(self, path: str, body: JsonObject, *, timeout: float = 30) -> bytes:  # noqa: ARG002 - as the client's
        """Accept a Binding."""
        self.bound = body
        return b"{}"


class VerbsFleet:
    """One extender and its nodes. It places pods as kube-scheduler would have it do."""

    def __init__(self, machines: Sequence[TraceNode], policy: str) -> None:
        self._server = AcceptingServer()
        settings = ExtenderSettings.model_construct(slice_mib=1, node_policy=policy, gpu_policy=policy)
        clocks = Clocks(lambda: 0.0, lambda: datetime.now(UTC))
        client: Any = self._server
        leader: Any = SimpleNamespace(refusal=lambda: "")
        self._seen = assembly.Observers(client, settings, clocks, lambda: 0.0)
        self._verbs = assembly.actors(self._seen, leader).verbs
        self._free = {machine.name: [machine.cpu_milli, machine.memory_mib] for machine in machines}
        self._pods: dict[tuple[PodAsk, str, tuple[int, ...]], list[JsonObject]] = {}
        for machine in machines:
            self._add(machine)

    async def place(self, ask: PodAsk) -> tuple[str, list[int]] | None:
        """Schedule one pod; returns the node and the indexes of the cards, or None where no node fits."""
        pod = manifest(ask)
        self._watch(pod)
        need = ask.cpu_milli, ask.memory_mib
        hosts = [name for name, free in self._free.items() if all(map(int.__ge__, free, need))]
        found = json.loads(await self._verbs.filter(_bytes({"Pod": pod, "NodeNames": hosts})))
        fitting = found["NodeNames"] or []
        node = fitting[0] if len(fitting) == 1 else await self._best(pod, fitting)
        if node is None:
            return None
        meta = pod["metadata"]
        args = {"PodName": meta["name"], "PodNamespace": meta["namespace"], "PodUID": meta["uid"], "Node": node}
        error = json.loads(await self._verbs.bind(_bytes(args)))["Error"]
        if error:
            raise RuntimeError(f"bind: {error}")
        self._free[node][0] -= ask.cpu_milli
        self._free[node][1] -= ask.memory_mib
        granted = self._server.bound["metadata"]["annotations"]
        meta["annotations"] = {**meta["annotations"], **granted}
        pod["spec"]["nodeName"] = node
        self._watch(pod)
        grants = json.loads(granted[names.ASSIGNMENT])["containers"]["main"]
        cards = sorted(int(grant["gpu"].rsplit("-", 1)[1]) for grant in grants)
        self._pods.setdefault((ask, node, tuple(cards)), []).append(pod)
        return node, cards

    def remove(self, ask: PodAsk, node: str, cards: Sequence[int]) -> None:
        """Delete a pod of a class from a node."""
        pod = self._pods[ask, node, tuple(sorted(cards))].pop()
        self._seen.watches.pods.handler.delete(PodReader().watched(_bytes(pod)))
        self._free[node][0] += ask.cpu_milli
        self._free[node][1] += ask.memory_mib

    async def _best(self, pod: JsonObject, fitting: Sequence[str]) -> str | None:
        """Return the node with the highest score."""
        if not fitting:
            return None
        scores = json.loads(await self._verbs.prioritize(_bytes({"Pod": pod, "NodeNames": list(fitting)})))
        return str(max(scores, key=lambda score: score["Score"])["Host"])

    def _watch(self, pod: JsonObject) -> None:
        self._seen.watches.pods.handler.upsert(PodReader().watched(_bytes(pod)))

    def _add(self, machine: TraceNode) -> None:
        model = f"model-{machine.model}"
        cards = [Card(CardUuid(f"GPU-{machine.name}-{n}"), n, model, CARD) for n in range(machine.cards)]
        status = {"sliceMiB": 1, "cards": [card_status(card, mig_enabled=False) for card in cards]}
        host = {"cpu": f"{machine.cpu_milli}m", "memory": f"{machine.memory_mib}Mi"}
        allocatable = {**host, names.SLICE: str(CARD * machine.cards), names.CARD: str(machine.cards)}
        watches, name = self._seen.watches, {"metadata": {"name": machine.name, "resourceVersion": "1"}}
        watches.by_name["nodes"].handler.upsert(objects.node(_bytes({**name, "status": {"allocatable": allocatable}})))
        watches.by_name["gpunodes"].handler.upsert(objects.gpunode(_bytes({**name, "status": status})))
        self._seen.cluster.leases.put(
            WatchedLease(names.node_lease(NodeName(machine.name)), machine.name, "now", 1 << 20)
        )


def manifest(ask: PodAsk) -> JsonObject:
    """Return the pod of a class, as the webhook leaves it."""
    asked = {names.GPU: ask.gpus} if ask.whole else {names.GPU_MEM: ask.gpus * ask.slices, names.GPU: ask.gpus}
    kubelet = {names.CARD: ask.gpus} if ask.whole else {names.SLICE: ask.gpus * ask.slices}
    requests = {"cpu": f"{ask.cpu_milli}m", "memory": f"{ask.memory_mib}Mi"}
    limits = {name: str(amount) for name, amount in {**asked, **kubelet}.items()}
    models = ",".join(f"model-{1 << n}" for n in range(MODELS) if ask.models >> n & 1)
    return {
        "metadata": {
            "name": "pod",
            "namespace": "default",
            "uid": str(uuid.uuid4()),
            "annotations": {} if ask.models == ALL else {names.USE_GPU_MODEL: models},
        },
        "spec": {"containers": [{"name": "main", "resources": {"requests": requests, "limits": limits}}]},
        "status": {"phase": "Pending"},
    }


def _bytes(value: JsonObject) -> bytes:
    return json.dumps(value, separators=(",", ":")).encode()


class ThroughVerbs(Baseline):
    """A policy of the extender for `simulation`, which must have no pods without cards."""

    def __init__(self, fleet: FleetArrays, trace: Trace, policy: str) -> None:
        super().__init__(fleet)
        self._names = [machine.name for machine in trace.machines]
        self._verbs = VerbsFleet(trace.machines, policy)
        self._loop = asyncio.new_event_loop()

    def choose(self, ask: PodAsk) -> Choice:
        """Schedule a pod."""
        placed = self._loop.run_until_complete(self._verbs.place(ask))
        return None if placed is None else (self._names.index(placed[0]), placed[1])

    def left(self, ask: PodAsk, node: int, cards: Sequence[int]) -> None:
        """Delete a pod."""
        self._verbs.remove(ask, self._names[node], cards)
