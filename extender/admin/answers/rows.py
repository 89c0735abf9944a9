"""What the columns of lists read of a snapshot. Amounts are MiB and percent, and their names say so."""

from collections.abc import Callable, Iterable, Iterator
from typing import Final

from extender.admin.answers.paging import Row
from extender.admin.exchange.snapshots import ClusterSnapshot
from extender.idle import pod_use
from extender.state.fields import api_times, container_use
from extender.state.fields.container_use import ContainerUse
from extender.state.objects import WatchedPod
from vgpu.domain.asks.request import ContainerKind, PodRequest
from vgpu.domain.asks.space import SpaceGroup
from vgpu.domain.cards.share import CardState
from vgpu.domain.grants.assignment import Assignment, Grant
from vgpu.domain.grants.assignment_trust import Distrust
from vgpu.domain.identifiers import CardUuid, ContainerName, Namespace, NodeName
from vgpu.domain.quantity import FULL_CORES
from vgpu.placement import documents
from vgpu.placement.snapshot import NodeView

BEGINNING: Final = frozenset({"PodInitializing", "ContainerCreating"})
NOT_ADMITTED_YET: Final = "NotStarted"  # the kubelet has not said anything about the pod
SUMMED: Final = ("usedMiB", "usedCores")
NOT_REPORTED: Final = {"usedMiB": None, "usedCores": None, "usedAt": ""}
Sees = Callable[[Namespace], bool]  # whether the caller may see the pods of a namespace


def with_staleness(row: Row, snapshot: ClusterSnapshot) -> Row:
    """Return the row of one object, which is as old as the snapshot, or as its node's last report if that is older."""
    return {**row, "staleSince": snapshot.stale_since or row["staleSince"]}


def own_cards(view: NodeView) -> list[CardState]:
    """Return a node's cards without those that count on another node, which reports them too."""
    return [state for state in view.state.cards if not state.card.counts_on]


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
        "waitsSince": api_times.text(pod.lifecycle.scheduled_ms or pod.lifecycle.created_ms),
        "lastDecision": last and {
            "time": api_times.text(last.at_ms), "attempts": last.attempts, "reasons": documents.counts(last.reasons)
        },
    }  # fmt: skip


def is_pending(pod: WatchedPod) -> bool:
    """Whether a pod waits for a node."""
    return pod.waits_for_node


def asked_mib(request: PodRequest | None) -> int:
    """Return the MiB that a pod's containers ask for over all their cards; 0 for whole cards."""
    return sum(container.memory_mib * container.gpus for container in request.containers) if request else 0


def asked_cores(request: PodRequest | None) -> int:
    """Return the percent of time that a pod's containers ask for over all their cards."""
    return sum((container.cores or 0) * container.gpus for container in request.containers) if request else 0


def asked_gpus(request: PodRequest | None) -> int:
    """Return how many cards a pod's containers ask for: of the container that asks for most."""
    return max((container.gpus for container in request.containers), default=0) if request else 0


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
    return view.unusable is None and state.card.healthy and not state.card.cordoned


def usable_mib(view: NodeView, state: CardState) -> int:
    """Return the MiB that a new container can get of a card."""
    return state.free_mib if is_open(view, state) else 0


def usable_cores(view: NodeView, state: CardState) -> int:
    """Return the percent of time that a new container can get of a card."""
    return state.free_cores if is_open(view, state) else 0


def space_group(pod: WatchedPod) -> SpaceGroup | None:
    """Return the group in space of a pod; None where it is in none, or what it asks for cannot be read."""
    return pod.parsed.request.options.group(pod.namespace) if pod.parsed.request else None


def gang(pod: WatchedPod) -> str:
    """Return the name of a pod's gang; empty where it is in none."""
    return pod.parsed.gang.name if pod.parsed.gang is not None else ""


def used_on(node: NodeName, uuid: CardUuid, snapshot: ClusterSnapshot) -> Row:
    """Return what the containers of a card use of it, as its node last reported."""
    return added(
        used_of(pod, container, uuid, snapshot)
        for pod in snapshot.holders(node, uuid)
        for container, grants in held(pod)
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


def used_of(pod: WatchedPod, container: ContainerName, uuid: CardUuid, snapshot: ClusterSnapshot) -> Row:
    """Return what a container uses of a card, as its node last reported."""
    found = container_use.now(_uses(pod, snapshot), container, uuid)
    if found is None:
        return NOT_REPORTED
    return {"usedMiB": found.used_mib, "usedCores": found.percent, "usedAt": api_times.text(found.until_ms)}


def _uses(pod: WatchedPod, snapshot: ClusterSnapshot) -> tuple[ContainerUse, ...]:
    gpunode = snapshot.gpunodes.get(pod.node)
    return gpunode.usage.get(pod.uid, ()) if gpunode else ()


def idle_s(pod: WatchedPod, container: ContainerName, uuid: CardUuid, snapshot: ClusterSnapshot) -> int | None:
    """Return for how long a container has not used a card; None where its node reported nothing."""
    found = container_use.now(_uses(pod, snapshot), container, uuid)
    return _seconds(found.idle_ms) if found else None


def pod_idle_s(pod: WatchedPod, snapshot: ClusterSnapshot) -> int | None:
    """Return for how long no container of a pod has used a card; None where its node reported nothing."""
    return _seconds(pod_use.idle_ms(pod, _uses(pod, snapshot)))


def _seconds(ms: int | None) -> int | None:
    return None if ms is None else ms // 1000


def held(pod: WatchedPod) -> Iterator[tuple[ContainerName, tuple[Grant, ...]]]:
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


def distrust(pod: WatchedPod) -> list[str]:
    """Return why the assignment of a bound pod does not count; empty where it counts."""
    return [pod.assignment.detail] if pod.node and isinstance(pod.assignment, Distrust) else []
