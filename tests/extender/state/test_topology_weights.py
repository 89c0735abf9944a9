"""The weights of connections in the settings file decide which cards filter, prioritize and bind choose."""

import json
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from extender import assembly
from extender.clocks import Clocks
from extender.settings import ExtenderSettings
from extender.state import objects
from extender.state.objects import WatchedLease
from extender.state.pod_reader import PodReader
from tests import strategies
from vgpu.domain import names
from vgpu.domain.cards.card_status import card_status
from vgpu.domain.cards.device import Card
from vgpu.domain.grants import assignment
from vgpu.domain.identifiers import CardUuid, ContainerName, NodeName

LINKED, NEAR, MIXED = (
    "linked",
    "near",
    "mixed",
)  # two cards with NVLink, on one NUMA node, and three with a pair of each


def card(node: str, index: int, numa_node: int, *linked: int) -> Card:
    peers = tuple(CardUuid(f"{node}-{n}") for n in linked)
    return Card(CardUuid(f"{node}-{index}"), index, "H100", 1024, numa_node=numa_node, nvlink_peers=peers)


NODES = {
    LINKED: [card(LINKED, 0, 0, 1), card(LINKED, 1, 1, 0)],
    NEAR: [card(NEAR, 0, 0), card(NEAR, 1, 0)],
    MIXED: [card(MIXED, 0, 0, 2), card(MIXED, 1, 0), card(MIXED, 2, 1, 0)],
}


class Server:
    """Stands for the API server: keeps the last Binding."""

    bound: dict[str, Any]

    async def post(self, path: str, body: dict[str, Any], *, timeout: float = 30) -> bytes:  # noqa: ARG002 - a client's
        self.bound = body
        return b"{}"


def encoded(value: dict[str, Any]) -> bytes:
    return json.dumps(value).encode()


def add(seen: assembly.Observers, name: str, cards: list[Card]) -> None:
    meta = {"metadata": {"name": name, "resourceVersion": "1"}}
    allocatable = {names.SLICE: str(4 * len(cards)), names.CARD: str(len(cards))}
    status = {"sliceMiB": 256, "cards": [card_status(card, mig_enabled=False) for card in cards]}
    nodes, gpunodes = (seen.watches.by_name[kind].handler for kind in ("nodes", "gpunodes"))
    nodes.upsert(objects.node(encoded({**meta, "status": {"allocatable": allocatable}})))
    gpunodes.upsert(objects.gpunode(encoded({**meta, "status": status})))
    seen.cluster.leases.put(WatchedLease(names.node_lease(NodeName(name)), name, "now", 1 << 20))


async def scheduled(text: str, folder: Path, *nodes: str) -> tuple[str, set[str]]:
    """Schedule a pod of two cards as kube-scheduler does; returns the node and the cards."""
    file = folder / "weights.toml"
    file.write_text(text)
    settings = ExtenderSettings.model_construct(packing_weights=file, node_policy="topology", gpu_policy="topology")
    server: Any = Server()
    seen = assembly.Observers(server, settings, Clocks(lambda: 0.0, lambda: datetime.now(UTC)), lambda: 0.0)
    leader: Any = SimpleNamespace(refusal=lambda: "")
    verbs = assembly.actors(seen, leader).verbs
    for name in nodes:
        add(seen, name, NODES[name])
    pod = strategies.admit(strategies.pod(strategies.container(gpu=2, gpu_mem=1024)))
    pod["metadata"] |= {"name": "p", "namespace": "default", "uid": "u"}
    pod["spec"].pop("nodeName", None)
    seen.watches.pods.handler.upsert(PodReader().watched(encoded(pod)))
    fitting = json.loads(await verbs.filter(encoded({"Pod": pod, "NodeNames": list(nodes)})))["NodeNames"]
    scores = json.loads(await verbs.prioritize(encoded({"Pod": pod, "NodeNames": fitting})))
    best = max(scores, key=lambda scored: scored["Score"])["Host"]
    args = {"PodName": "p", "PodNamespace": "default", "PodUID": "u", "Node": best}
    assert json.loads(await verbs.bind(encoded(args)))["Error"] == ""
    chosen = assignment.decode(server.bound["metadata"]["annotations"][names.ASSIGNMENT])
    return best, {grant.gpu for grant in chosen.containers[ContainerName("main")]}


@pytest.mark.parametrize(
    ("text", "node", "partner"),
    [("", LINKED, "mixed-2"), ("[topology]\nnvlink = 10\nsame-numa = 100\n", NEAR, "mixed-1")],
)
async def test_weights_choose_the_node_and_the_cards(tmp_path: Path, text: str, node: str, partner: str) -> None:
    assert (await scheduled(text, tmp_path, LINKED, NEAR))[0] == node
    assert await scheduled(text, tmp_path, MIXED) == (MIXED, {"mixed-0", partner})
