"""Whether all witnesses of a snapshot agree: pure functions, each from a snapshot to what is wrong with it."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from collections.abc import Set as AbstractSet
from typing import Final

from tests.e2e.monitor.findings import Finding
from tests.e2e.monitor.snapshot import Document, RunningContainer, Snapshot
from vgpu.domain import names
from vgpu.domain.asks import request
from vgpu.domain.asks.request import PodRequest
from vgpu.domain.cards.device import Card, Node
from vgpu.domain.cards.share import Usage
from vgpu.domain.formats import container_paths
from vgpu.domain.grants import assignment_trust, usage
from vgpu.domain.grants.assignment import Assignment
from vgpu.domain.identifiers import ContainerName
from vgpu.domain.quantity import FULL_CORES, whole_number
from vgpu.node.cards import device_ids

_TERMINAL: Final = {"Succeeded", "Failed"}
_OURS: Final = (*container_paths.PRELOADS, "/run/vgpu/", "/usr/local/vgpu/")


def wrong(snapshot: Snapshot) -> Iterator[Finding]:
    """Yield everything that is wrong."""
    yield from assignments(snapshot)
    yield from capacity(snapshot)
    yield from kubelets(snapshot)
    yield from records(snapshot)
    yield from visible(snapshot)
    yield from reported(snapshot)


def is_live(pod: Document) -> bool:
    """Whether a pod is bound and has not ended: it may hold devices."""
    return bool(pod["spec"].get("nodeName")) and pod["status"].get("phase") not in _TERMINAL


def asked_devices(pod: Document) -> int:
    """Return the slices and cards that the kubelet would give to a pod's containers."""
    every = [*pod["spec"]["containers"], *pod["spec"].get("initContainers", [])]
    limits = [container.get("resources", {}).get("limits") or {} for container in every]
    return sum(whole_number(limit[name]) or 0 for limit in limits for name in names.KUBELET_RESOURCES if name in limit)


def trusted(pod: Document) -> Assignment | None:
    """Return a pod's assignment, where it answers the pod's request."""
    annotation = (pod["metadata"].get("annotations") or {}).get(names.ASSIGNMENT, "")
    judged = assignment_trust.judge(request.parse(pod), annotation)
    return judged if isinstance(judged, Assignment) else None


def assignments(snapshot: Snapshot) -> Iterator[Finding]:
    """A live pod has a trusted assignment exactly where it asks for devices."""
    for pod in filter(is_live, snapshot.pods):
        name, chosen = pod["metadata"]["name"], trusted(pod)
        if asked_devices(pod) and (chosen is None or not chosen.gpus()):
            scheduler = pod["spec"].get("schedulerName")
            yield Finding("a bound pod has devices and no trusted assignment", f"{name}, scheduler {scheduler}", name)
        if not asked_devices(pod) and names.ASSIGNMENT in (pod["metadata"].get("annotations") or {}):
            yield Finding("a pod that asks for no device has an assignment", name, name)


def nodes_of(gpunodes: Iterable[Document]) -> list[Node]:
    """Read the inventories; of a card that was moved, only the node that has it now."""
    listed = list(gpunodes)
    have = {card["uuid"] for gpunode in listed for card in _cards(gpunode) if card.get("healthy", True)}
    return [_node(gpunode, have) for gpunode in listed]


def _node(gpunode: Document, elsewhere: AbstractSet[str]) -> Node:
    here = [card for card in _cards(gpunode) if card.get("healthy", True) or card["uuid"] not in elsewhere]
    read = tuple(
        Card(
            card["uuid"],
            card["index"],
            card["model"],
            card["memoryMiB"],
            held_slices=card.get("heldSlices", 0),
            held_whole=card.get("heldWhole", False),
        )
        for card in here
    )
    return Node(gpunode["metadata"]["name"], gpunode["status"]["sliceMiB"], read)


def _cards(gpunode: Document) -> list[Document]:
    found: list[Document] = gpunode.get("status", {}).get("cards", [])
    return found


def taken(snapshot: Snapshot) -> dict[str, tuple[Card, int, Usage]]:
    """Return each card, its slice size, and what the API server's pods take of it, by UUID."""
    found: dict[str, tuple[Card, int, Usage]] = {}
    for node in nodes_of(snapshot.gpunodes):
        here = [pod for pod in snapshot.pods if is_live(pod) and pod["spec"]["nodeName"] == node.name]
        used = usage.on_node(node, list(_granted(here)))
        found |= {card.uuid: (card, node.slice_mib, used.get(card.uuid, Usage())) for card in node.cards}
    return found


def _granted(pods: list[Document]) -> Iterator[tuple[PodRequest, Assignment]]:
    for pod in pods:
        asked, chosen = request.parse(pod).request, trusted(pod)
        if asked is not None and chosen is not None:
            yield asked, chosen


def capacity(snapshot: Snapshot) -> Iterator[Finding]:
    """No card holds more than it has."""
    for uuid, (card, slice_mib, used) in taken(snapshot).items():
        mixed = used.wholes > 1 or (used.wholes and used.shares)
        if (
            used.memory_mib > card.memory_mib
            or used.cores > FULL_CORES
            or used.slices > card.slices(slice_mib)
            or mixed
        ):
            yield Finding("a card is over its capacity", f"{uuid}: {used}")


def kubelets(snapshot: Snapshot) -> Iterator[Finding]:
    """A kubelet's containers hold the devices that their pods ask for, of the assigned cards, and none twice."""
    pods = {(pod["metadata"]["namespace"], pod["metadata"]["name"]): pod for pod in snapshot.pods}
    for node, here in snapshot.nodes.items():
        holders: Counter[str] = Counter()
        for key, containers in here.listing.items():
            held = {name: frozenset().union(*by_resource.values()) for name, by_resource in containers.items()}
            for ids in held.values():
                holders.update(ids)
            if key in pods and is_live(pods[key]):
                yield from _held_by(pods[key], held)
        for device, count in holders.items():
            if count > 1:
                yield Finding("a device is held by two containers", f"{device} on {node}")


def _held_by(pod: Document, held: Mapping[ContainerName, frozenset[str]]) -> Iterator[Finding]:
    chosen, name = trusted(pod), pod["metadata"]["name"]
    for container, ids in held.items():
        if ids and not asked_devices(pod):
            yield Finding("a pod that asks for no device holds some", f"{name}/{container}: {len(ids)}", name)
        grants = chosen.containers.get(container, ()) if chosen else ()
        if ids and chosen and {device_ids.gpu_of(id_) for id_ in ids} != {grant.gpu for grant in grants}:
            yield Finding("a container holds devices of other cards than assigned", f"{name}/{container}", name)


def records(snapshot: Snapshot) -> Iterator[Finding]:
    """What a kubelet says a running container holds, an allocation record says too."""
    pods = {(pod["metadata"]["namespace"], pod["metadata"]["name"]): pod for pod in snapshot.pods}
    for here in snapshot.nodes.values():
        known = {(record.holder.uid, record.holder.container, record.ids) for record in here.records if record.holder}
        for key, containers in here.listing.items():
            pod = pods.get(key)
            if pod is None or pod["status"].get("phase") != "Running" or trusted(pod) is None:
                continue
            for container, by_resource in containers.items():
                ids = frozenset().union(*by_resource.values())
                if ids and (pod["metadata"]["uid"], container, ids) not in known:
                    yield Finding("a running container has no allocation record", f"{key}/{container}", key[1])


def visible(snapshot: Snapshot) -> Iterator[Finding]:
    """A running container sees the cards that it was assigned, no others, and the limiter's files at their paths."""
    pods = {(pod["metadata"]["namespace"], pod["metadata"]["name"]): pod for pod in snapshot.pods}
    for here in snapshot.nodes.values():
        for container in here.running:
            pod = pods.get((container.namespace, container.pod))
            if pod is not None:
                yield from _seen_by(container, trusted(pod))


def _seen_by(running: RunningContainer, chosen: Assignment | None) -> Iterator[Finding]:
    who = f"{running.pod}/{running.container}"
    grants = chosen.containers.get(ContainerName(running.container), ()) if chosen else ()
    if extra := set(running.cards) - {grant.gpu for grant in grants}:
        kind = "a container sees cards that it was not assigned"
        yield Finding(kind, f"{who} sees {sorted(extra)}", running.pod)
    for destination, covering in covered(running.mounts) if grants else ():
        kind = "a mount of the pod covers a file of the limiter"
        yield Finding(kind, f"{who}: {covering} covers {destination}", running.pod)


def covered(mounts: tuple[tuple[str, str], ...]) -> Iterator[tuple[str, str]]:
    """Yield each path of the limiter that a later mount covers, with the path of that mount."""
    for index, (destination, source) in enumerate(mounts):
        if not destination.startswith(_OURS) or "/var/lib/vgpu/" not in source:
            continue
        for later, _ in mounts[index + 1 :]:
            if destination == later or destination.startswith(later.rstrip("/") + "/"):
                yield destination, later


def reported(snapshot: Snapshot) -> Iterator[Finding]:
    """The slices that a device plugin reports as held are those that its kubelet lists."""
    for gpunode in snapshot.gpunodes:
        here = snapshot.nodes.get(gpunode["metadata"]["name"])
        listed = Counter(
            device_ids.gpu_of(entry)
            for containers in (here.listing if here else {}).values()
            for by_resource in containers.values()
            for entry in by_resource[names.SLICE]
        )
        for card in gpunode["status"]["cards"]:
            if card.get("heldSlices", 0) != listed[card["uuid"]]:
                detail = f"{card['uuid']}: reported {card.get('heldSlices', 0)}, listed {listed[card['uuid']]}"
                yield Finding("a plugin reports other slices as held than its kubelet lists", detail, card["uuid"])
