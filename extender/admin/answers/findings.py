"""What an administrator should look at: nodes, cards and pods in a state that does not heal by itself. Pure."""

from collections.abc import Callable, Iterator
from itertools import islice
from typing import Any, Final

from extender.admin.answers import rows
from extender.admin.exchange.snapshots import ClusterSnapshot
from extender.state.objects import GpuNode, WatchedPod
from vgpu.domain.cards import ownership, reasons
from vgpu.domain.cards.device import EXCLUSIVE_PROCESS
from vgpu.domain.cards.reasons import Reason
from vgpu.domain.identifiers import Namespace
from vgpu.placement.snapshot import NodeView

MAX_FINDINGS: Final = 200

Row = dict[str, Any]


def of(snapshot: ClusterSnapshot, sees: Callable[[Namespace], bool]) -> list[Row]:
    """Return the findings: nodes first, then cards, then pods that the caller may see."""
    return list(islice(_all(snapshot, sees), MAX_FINDINGS))


def _all(snapshot: ClusterSnapshot, sees: Callable[[Namespace], bool]) -> Iterator[Row]:
    for view in snapshot.views.values():
        yield from _of_node(view)
    for view in snapshot.views.values():
        yield from _of_cards(view)
    for gpunode in snapshot.gpunodes.values():
        yield from _of_refusals(gpunode, snapshot, sees)
    for pod in snapshot.pods.values():
        if sees(pod.namespace):
            yield from _of_pod(pod, snapshot)


def _of_node(view: NodeView) -> Iterator[Row]:
    if view.blocked is not None:
        yield _finding("error", view.name, str(view.blocked), reasons.WORDS[view.blocked])


def _of_cards(view: NodeView) -> Iterator[Row]:
    for state in view.state.cards:
        about = f"{view.name} card {state.card.index} ({state.card.uuid})"
        if state.card.counts_on:
            yield _finding("warning", about, ownership.DUPLICATE, ownership.advice(view.name, state.card.counts_on))
            continue
        if not state.card.healthy:
            yield _finding("error", about, str(Reason.CARD_UNHEALTHY), state.card.reason or "unhealthy")
        if state.card.exclusive_process:
            yield _finding("warning", about, str(Reason.CARD_EXCLUSIVE), EXCLUSIVE_PROCESS)
        if state.card.cordoned:
            yield _finding("warning", about, str(Reason.CARD_CORDONED), "an administrator has cordoned the card")


def _of_refusals(gpunode: GpuNode, snapshot: ClusterSnapshot, sees: Callable[[Namespace], bool]) -> Iterator[Row]:
    for refusal in gpunode.refusals:
        pod = snapshot.pods.get(refusal.uid)
        namespace = pod.namespace if pod else refusal.namespace
        if sees(namespace):
            yield _finding(
                "error", f"pod {namespace}/{pod.name if pod else refusal.name}", refusal.reason, refusal.message
            )


def _of_pod(pod: WatchedPod, snapshot: ClusterSnapshot) -> Iterator[Row]:
    about = f"pod {pod.namespace}/{pod.name}"
    if pod.is_terminal:
        return
    if pod.parsed.problems:
        yield _finding("warning", about, str(Reason.INVALID_REQUEST), str(pod.parsed.problems[0]))
    elif rows.is_pending(pod) and not pod.is_admitted(snapshot.slice_mib):
        yield _finding("error", about, str(Reason.NOT_ADMITTED), reasons.WORDS[Reason.NOT_ADMITTED])
    for problem in rows.distrust(pod):
        yield _finding("error", about, "AssignmentNotTrusted", problem)


def _finding(severity: str, about: str, reason: str, detail: str) -> Row:
    return {"severity": severity, "about": about, "reason": reason, "detail": detail}
