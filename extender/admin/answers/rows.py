"""Rows of the REST's lists, made of a snapshot. Amounts are MiB and percent, and their names say so."""

from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import Any, Final

from extender.admin.answers.paging import ListKind, Row
from extender.admin.exchange import snapshot_pieces, times
from extender.admin.exchange.snapshots import ClusterSnapshot
from extender.idle import pod_use
from extender.state.fields import container_use
from extender.state.fields.container_use import ContainerUse
from extender.state.objects import WatchedPod
from vgpu.domain.asks.request import ContainerKind, PodRequest
from vgpu.domain.cards.share import CardState
from vgpu.domain.grants.assignment import Assignment, Grant
from vgpu.domain.grants.assignment_trust import Distrust
from vgpu.domain.identifiers import CardUuid, ContainerName, Namespace, NodeName
from vgpu.domain.quantity import FULL_CORES
from vgpu.placement import documents
from vgpu.placement.snapshot import NodeView

NODE_FIELDS: Final = (
    "name", "usable", "reason", "gpus", "healthyGpus", "cordonedGpus", "models", "memoryMiB", "allocatedMiB",
    "freeMiB", "allocatedCores", "freeCores", "pods", "sliceMiB", "pluginVersion", "usedMiB", "usedCores", "usedAt",
    "staleSince",
)  # fmt: skip
GPU_FIELDS: Final = (
    "uuid", "node", "index", "model", "memoryMiB", "allocatedMiB", "freeMiB", "allocatedCores", "freeCores", "shares",
    "heldWhole", "healthy", "reason", "nodeReason", "countsOn", "cordoned", "mode", "numaNode", "nvlinkPeers",
    "unified", "podCount", "usedMiB", "usedCores", "usedAt", "staleSince",
)  # fmt: skip
POD_FIELDS: Final = (
    "namespace", "name", "uid", "status", "statusReason", "node", "requested", "memoryMiB", "cores", "gpuCount",
    "computePolicy", "priority", "gpus", "problems", "idleSeconds", "staleSince",
)  # fmt: skip

BEGINNING: Final = frozenset({"PodInitializing", "ContainerCreating"})
NOT_ADMITTED_YET: Final = "NotStarted"  # the kubelet has not said anything about the pod
SUMMED: Final = ("usedMiB", "usedCores")
NOT_REPORTED: Final = {"usedMiB": None, "usedCores": None, "usedAt": ""}
Sees = Callable[[Namespace], bool]  # whether the caller may see the pods of a namespace


def node_row(view: NodeView, snapshot: ClusterSnapshot) -> Row:
    """Return a node: whether pods can be placed on it, and what is free on its cards."""
    cards = own_cards(view)
    gpunode = snapshot.gpunodes.get(view.name)
    used = added([used_on(view.name, card.card.uuid, snapshot) for card in cards])
    return {
        "name": view.name,
        "usable": view.blocked is None,
        "reason": str(view.blocked or ""),
        "gpus": len(cards),
        "healthyGpus": sum(card.card.healthy for card in cards),
        "cordonedGpus": sum(card.card.cordoned for card in cards),
        "models": sorted({card.card.model for card in cards}),
        "memoryMiB": sum(card.card.memory_mib for card in cards),
        "allocatedMiB": sum(allocated_mib(card) for card in cards),
        "freeMiB": sum(usable_mib(view, card) for card in cards),
        "allocatedCores": sum(map(allocated_cores, cards)),
        "freeCores": sum(usable_cores(view, card) for card in cards),
        "pods": len({pod.uid for card in cards for pod in snapshot.holders.get((view.name, card.card.uuid), ())}),
        "sliceMiB": view.state.slice_mib,
        "pluginVersion": gpunode.node.plugin_version if gpunode else "",
        **used,
        "staleSince": view.silent_since,
    }


def with_staleness(row: Row, snapshot: ClusterSnapshot) -> Row:
    """Return the row of one object, which is as old as the snapshot, or as its node's last report if that is older."""
    return {**row, "staleSince": snapshot.stale_since or row["staleSince"]}


def own_cards(view: NodeView) -> list[CardState]:
    """Return a node's cards without those that count on another node, which reports them too."""
    return [state for state in view.state.cards if not state.card.counts_on]


def gpu_row(view: NodeView, state: CardState, snapshot: ClusterSnapshot) -> Row:
    """Return a card, without the names of its pods."""
    card = state.card
    return {
        "uuid": card.uuid,
        "node": view.name,
        "index": card.index,
        "model": card.model,
        "memoryMiB": card.memory_mib,
        "allocatedMiB": allocated_mib(state),
        "freeMiB": usable_mib(view, state),
        "allocatedCores": allocated_cores(state),
        "freeCores": usable_cores(view, state),
        "shares": state.usage.shares,
        "heldWhole": state.is_held_whole,
        "healthy": card.healthy,
        "reason": card.reason,
        "nodeReason": str(view.blocked or ""),
        "countsOn": card.counts_on,
        "cordoned": card.cordoned,
        "mode": str(card.mode),
        "numaNode": card.numa_node,
        "nvlinkPeers": list(card.nvlink_peers),
        "unified": card.unified,
        "podCount": len(snapshot.holders.get((view.name, card.uuid), ())),
        **used_on(view.name, card.uuid, snapshot),
        "staleSince": view.silent_since,
    }


def node_kind(snapshot: ClusterSnapshot) -> ListKind[NodeView]:
    """Return how nodes are listed."""
    columns: dict[str, Callable[[NodeView], Any]] = {
        "name": lambda view: view.name,
        "usable": lambda view: view.blocked is None,
        "reason": lambda view: str(view.blocked or ""),
        "gpus": lambda view: len(own_cards(view)),
        "memoryMiB": lambda view: sum(card.card.memory_mib for card in own_cards(view)),
        "allocatedMiB": lambda view: sum(map(allocated_mib, own_cards(view))),
        "freeMiB": lambda view: sum(usable_mib(view, card) for card in own_cards(view)),
        "allocatedCores": lambda view: sum(map(allocated_cores, own_cards(view))),
        "freeCores": lambda view: sum(usable_cores(view, card) for card in own_cards(view)),
    }
    return ListKind(
        columns,
        ("name",),
        lambda view: node_row(view, snapshot),
        NODE_FIELDS,
        name=lambda view: view.name,
        same=snapshot_pieces.is_same_view,
    )


Gpu = tuple[NodeView, CardState]


def gpu_kind(snapshot: ClusterSnapshot, sees: Sees) -> ListKind[Gpu]:
    """Return how cards are listed."""
    columns: dict[str, Callable[[Gpu], Any]] = {
        "uuid": lambda gpu: gpu[1].card.uuid,
        "node": lambda gpu: gpu[0].name,
        "index": lambda gpu: gpu[1].card.index,
        "model": lambda gpu: gpu[1].card.model,
        "healthy": lambda gpu: gpu[1].card.healthy,
        "cordoned": lambda gpu: gpu[1].card.cordoned,
        "mode": lambda gpu: str(gpu[1].card.mode),
        "memoryMiB": lambda gpu: gpu[1].card.memory_mib,
        "allocatedMiB": lambda gpu: allocated_mib(gpu[1]),
        "freeMiB": lambda gpu: usable_mib(*gpu),
        "allocatedCores": lambda gpu: allocated_cores(gpu[1]),
        "freeCores": lambda gpu: usable_cores(*gpu),
        "shares": lambda gpu: gpu[1].usage.shares,
    }

    def row(gpu: Gpu) -> Row:
        made = gpu_row(*gpu, snapshot)
        return {**made, "pods": tenants(made["node"], made["uuid"], snapshot, sees)}

    return ListKind(
        columns,
        ("node", "index", "uuid"),
        row,
        (*GPU_FIELDS, "pods"),
        name=lambda gpu: (gpu[0].name, gpu[1].card.uuid),
        same=lambda one, other: one[1] is other[1] and snapshot_pieces.is_same_view(one[0], other[0]),
    )


def pod_kind(snapshot: ClusterSnapshot, encoded: Callable[[WatchedPod], bytes] | None = None) -> ListKind[WatchedPod]:
    """Return how pods are listed; `encoded` returns a pod's encoded row where rows are cached."""
    columns: dict[str, Callable[[WatchedPod], Any]] = {
        "namespace": lambda pod: pod.namespace,
        "name": lambda pod: pod.name,
        "uid": lambda pod: pod.uid,
        "status": status,
        "node": lambda pod: pod.node,
        "priority": lambda pod: pod.scheduling.priority,
        "memoryMiB": lambda pod: asked_mib(pod.parsed.request),
        "cores": lambda pod: asked_cores(pod.parsed.request),
    }
    identity = ("namespace", "name", "uid")
    row = partial(pod_row, snapshot=snapshot)
    return ListKind(columns, identity, row, POD_FIELDS, name=lambda pod: pod.uid, encoded=encoded)


def gpus(snapshot: ClusterSnapshot) -> Iterator[Gpu]:
    """Yield every card with its node."""
    return ((view, state) for view in snapshot.views.values() for state in view.state.cards)


def tenants(node: NodeName, uuid: CardUuid, snapshot: ClusterSnapshot, sees: Sees) -> list[Row]:
    """Return the containers on a card whose pods the caller may see."""
    return [
        {"namespace": pod.namespace, "pod": pod.name, **grant}
        for pod in snapshot.holders.get((node, uuid), ())
        if sees(pod.namespace)
        for grant in _grants(pod, snapshot)
        if grant["uuid"] == uuid
    ]


def pod_row(pod: WatchedPod, snapshot: ClusterSnapshot) -> Row:
    """Return a pod: what it asks for, and which cards it has."""
    request = pod.parsed.request
    return {
        "namespace": pod.namespace,
        "name": pod.name,
        "uid": pod.uid,
        "status": status(pod),
        "statusReason": status_reason(pod),
        "node": pod.node,
        "requested": documents.asked(request) if request else "",
        "memoryMiB": asked_mib(request),
        "cores": asked_cores(request),
        "gpuCount": max((container.gpus for container in request.containers), default=0) if request else 0,
        "computePolicy": str(request.options.compute_policy or "") if request else "",
        "priority": pod.scheduling.priority,
        "gpus": list(_grants(pod, snapshot)),
        "problems": [str(problem) for problem in pod.parsed.problems] or distrust(pod),
        "idleSeconds": _seconds(pod_use.idle_ms(pod, _uses(pod, snapshot))),
        "staleSince": silent_since(pod, snapshot),
    }


def status(pod: WatchedPod) -> str:
    """Return where a pod is in its life, in one word."""
    if pod.is_terminal:
        return "Ended"
    if pod.scheduling.is_terminating:
        return "Terminating"
    if not pod.node:
        return "Pending"
    return "Starting" if status_reason(pod) else "Running"


def status_reason(pod: WatchedPod) -> str:
    """Return the kubelet's word for why a bound pod does not run, or not all of it; empty where it runs.

    A container that could not start says more than one that waits for it.
    """
    if pod.is_terminal or pod.scheduling.is_terminating or not pod.node:
        return ""
    runs = (pod.lifecycle.runs or {}).values()
    waiting = [run.waiting for run in runs if run.waiting]
    if waiting:
        return next((word for word in waiting if word not in BEGINNING), waiting[0])
    if any(run.exit is None for run in runs):
        return ""
    ended = [run.exit.reason for run in runs if run.exit is not None]
    return ended[-1] if ended else NOT_ADMITTED_YET


def silent_since(pod: WatchedPod, snapshot: ClusterSnapshot) -> str:
    """Return since when the device plugin of a pod's node is silent; empty where it lives, or the pod is on none."""
    view = snapshot.views.get(pod.node)
    return view.silent_since if view else ""


def waiting(pod: WatchedPod, snapshot: ClusterSnapshot) -> Row:
    """Return since when a pod waits, and what filter last answered about it; null where that was before this start.

    kube-scheduler writes the time of its first refusal into the pod; before that, the pod's creation counts.
    """
    last = snapshot.decisions.get(pod.uid)
    return {
        "waitsSince": times.text(pod.lifecycle.scheduled_ms or pod.lifecycle.created_ms),
        "lastDecision": last and {
            "time": times.text(last.at_ms), "attempts": last.attempts, "reasons": documents.counts(last.reasons)
        },
    }  # fmt: skip


def is_pending(pod: WatchedPod) -> bool:
    """Whether a pod waits for a node."""
    return status(pod) == "Pending" and (pod.parsed.request is not None or bool(pod.parsed.problems))


def asked_mib(request: PodRequest | None) -> int:
    """Return the MiB that a pod's containers ask for over all their cards; 0 for whole cards."""
    return sum(container.memory_mib * container.gpus for container in request.containers) if request else 0


def asked_cores(request: PodRequest | None) -> int:
    """Return the percent of time that a pod's containers ask for over all their cards."""
    return sum((container.cores or 0) * container.gpus for container in request.containers) if request else 0


def allocated_mib(state: CardState) -> int:
    """Return the MiB of a card that containers hold, by their assignments or by the kubelet's report."""
    if state.is_held_whole:
        return state.card.memory_mib
    return state.card.memory_mib - state.free_mib


def allocated_cores(state: CardState) -> int:
    """Return the percent of a card's time that is guaranteed to containers; a whole card is guaranteed wholly."""
    return FULL_CORES if state.is_held_whole else state.usage.cores


def is_open(view: NodeView, state: CardState) -> bool:
    """Whether a new container can get anything of a card: its node can be used, it is healthy and not cordoned."""
    return view.blocked is None and state.card.healthy and not state.card.cordoned


def usable_mib(view: NodeView, state: CardState) -> int:
    """Return the MiB that a new container can get of a card."""
    return state.free_mib if is_open(view, state) else 0


def usable_cores(view: NodeView, state: CardState) -> int:
    """Return the percent of time that a new container can get of a card."""
    return state.free_cores if is_open(view, state) else 0


def used_on(node: NodeName, uuid: CardUuid, snapshot: ClusterSnapshot) -> Row:
    """Return what the containers of a card use of it, as its node last reported."""
    return added(
        _used(pod, container, uuid, snapshot)
        for pod in snapshot.holders.get((node, uuid), ())
        for container, grants in _held(pod)
        if any(grant.gpu == uuid for grant in grants)
    )


def added(parts: Iterable[Row]) -> Row:
    """Add up what is used, as of the oldest part; null where nothing was reported."""
    known = [part for part in parts if part["usedMiB"] is not None]
    if not known:
        return dict(NOT_REPORTED)
    return {name: sum(part[name] for part in known) for name in SUMMED} | {
        "usedAt": min(part["usedAt"] for part in known)
    }


def _used(pod: WatchedPod, container: ContainerName, uuid: CardUuid, snapshot: ClusterSnapshot) -> Row:
    found = container_use.now(_uses(pod, snapshot), container, uuid)
    if found is None:
        return NOT_REPORTED
    return {"usedMiB": found.used_mib, "usedCores": found.percent, "usedAt": times.text(found.until_ms)}


def _uses(pod: WatchedPod, snapshot: ClusterSnapshot) -> tuple[ContainerUse, ...]:
    gpunode = snapshot.gpunodes.get(pod.node)
    return gpunode.usage.get(pod.uid, ()) if gpunode else ()


def _idle_s(pod: WatchedPod, container: ContainerName, uuid: CardUuid, snapshot: ClusterSnapshot) -> int | None:
    found = container_use.now(_uses(pod, snapshot), container, uuid)
    return _seconds(found.idle_ms) if found else None


def _seconds(ms: int | None) -> int | None:
    return None if ms is None else ms // 1000


def _held(pod: WatchedPod) -> Iterator[tuple[ContainerName, tuple[Grant, ...]]]:
    """Yield what containers have, without init containers that have ended: the next ones have the cards instead."""
    if not isinstance(pod.assignment, Assignment):
        return
    asked = pod.parsed.request.containers if pod.parsed.request else ()
    inits = {container.name for container in asked if container.kind is ContainerKind.INIT}
    runs = pod.lifecycle.runs or {}
    for container, grants in pod.assignment.containers.items():
        run = runs.get(container)
        if container not in inits or run is None or run.exit is None or run.exit.code:
            yield container, grants


def _grants(pod: WatchedPod, snapshot: ClusterSnapshot) -> Iterator[Row]:
    if not pod.node:
        return
    gpunode = snapshot.gpunodes.get(pod.node)
    for container, grants in _held(pod):
        for grant in grants:
            card = gpunode.node.card(grant.gpu) if gpunode else None
            yield {
                "container": container,
                "uuid": grant.gpu,
                "index": card.index if card else -1,
                "memoryMiB": grant.memory_mib,
                "cores": FULL_CORES if grant.whole else grant.cores or 0,
                "whole": grant.whole,
                **_used(pod, container, grant.gpu, snapshot),
                "idleSeconds": _idle_s(pod, container, grant.gpu, snapshot),
            }


def distrust(pod: WatchedPod) -> list[str]:
    """Return why the assignment of a bound pod does not count; empty where it counts."""
    return [pod.assignment.detail] if pod.node and isinstance(pod.assignment, Distrust) else []
