"""What is displayed: the cards with their pods, and the pods with their cards or why they wait."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from vgpu.domain.asks import request, request_text
from vgpu.domain.asks.request import ContainerRequest
from vgpu.domain.cards.device import Node
from vgpu.domain.identifiers import NodeName
from vgpu.domain.json_types import JsonObject
from vgpu.simulator import card_usage, scheduling_status
from vgpu.simulator.api.pods import TERMINAL
from vgpu.simulator.api.resources import EVENTS, PODS
from vgpu.simulator.api.store import Store
from vgpu.simulator.workload import RejectedPod

WEBHOOK_PREFIX: Final = "denied the request: "


@dataclass(frozen=True, slots=True)
class CardLine:
    """One card: the MiB and percent taken of it, and the pods on it."""

    node: str
    index: int
    memory_mib: int
    used_mib: int
    cores: int
    is_whole: bool
    tenants: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class PodLine:
    """One pod: what it asks for, its phase, its cards, or why it has none."""

    name: str
    asks: str
    phase: str
    where: str
    note: str


@dataclass(frozen=True, slots=True)
class View:
    """All cards and pods at one time."""

    cards: tuple[CardLine, ...]
    pods: tuple[PodLine, ...]


def view_of(store: Store, fleet: Iterable[Node], refused: Iterable[RejectedPod]) -> View:
    """Return the view of a cluster: pods in the order of their creation, then the refused ones."""
    nodes = {node.name: node for node in fleet}
    pods = sorted(store.objects(PODS.name), key=lambda pod: (pod["metadata"]["creationTimestamp"], _name(pod)))
    details = _details(store)
    rows = [_pod(pod, nodes, details) for pod in pods]
    rejected = [PodLine(pod.name, "", "Refused", "", pod.why.rpartition(WEBHOOK_PREFIX)[2]) for pod in refused]
    cards = [row for node in nodes.values() for row in _cards(node, pods)]
    return View(tuple(cards), (*rows, *rejected))


def describe_request(pod: JsonObject) -> str:
    """Describe what a pod asks for: `8 GiB, 30 %`, `3 x 6 GiB, 80 %`, `1 whole card`."""
    wanted = request.parse(pod).request
    return "; ".join(map(_container, wanted.containers)) if wanted else ""


def _container(asked: ContainerRequest) -> str:
    if asked.whole:
        return f"{asked.gpus} whole card{'s' if asked.gpus > 1 else ''}"
    times = f"{asked.gpus} x " if asked.gpus > 1 else ""
    cores = "" if asked.cores is None else f", {asked.cores} %"
    return f"{times}{request_text.memory(asked)}{cores}"


def _pod(pod: JsonObject, nodes: Mapping[NodeName, Node], details: Mapping[str, str]) -> PodLine:
    phase = "Ending" if "deletionTimestamp" in pod["metadata"] else pod["status"]["phase"]
    waits = phase == "Pending" and not pod["spec"].get("nodeName")
    note = (
        details.get(pod["metadata"]["uid"]) or scheduling_status.last_reason(pod)
        if waits
        else pod["status"].get("message") or ""
    )
    return PodLine(_name(pod), describe_request(pod), phase, _where(pod, nodes), note)


def _where(pod: JsonObject, nodes: Mapping[NodeName, Node]) -> str:
    name, gpus = NodeName(str(pod["spec"].get("nodeName", ""))), card_usage.gpus(pod)
    if name not in nodes or not gpus:
        return name
    indexes = sorted(card.index for card in nodes[name].cards if card.uuid in gpus)
    return f"{name} {'cards' if len(indexes) > 1 else 'card'} {', '.join(map(str, indexes))}"


def _cards(node: Node, pods: Iterable[JsonObject]) -> Iterator[CardLine]:
    holders = [p for p in pods if p["spec"].get("nodeName") == node.name and p["status"]["phase"] not in TERMINAL]
    on_card = [(card_usage.gpus(pod), _name(pod)) for pod in holders]
    for state in card_usage.state(node, holders).cards:
        yield CardLine(
            node=node.name,
            index=state.card.index,
            memory_mib=state.card.memory_mib,
            used_mib=state.usage.memory_mib,
            cores=state.usage.cores,
            is_whole=state.is_held_whole,
            tenants=tuple(name for gpus, name in on_card if state.card.uuid in gpus),
        )


def _details(store: Store) -> dict[str, str]:
    """Return the extender's last message about each pod, by UID: unlike the scheduler's it names every card."""
    found: dict[str, str] = {}
    for event in store.objects(EVENTS.name):
        uid = (event.get("involvedObject") or {}).get("uid")
        if uid and (event.get("source") or {}).get("component") == "vgpu-extender":
            found[uid] = event.get("message") or ""
    return found


def _name(pod: JsonObject) -> str:
    name: str = pod["metadata"]["name"]
    return name
