"""Why a pod waits, in one sentence, and which pods' end would make room for it."""

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

from extender.admin.exchange.snapshots import ClusterSnapshot, WaitingGangs
from extender.state import gang_members
from extender.state.fields import api_times
from extender.state.objects import WatchedPod
from vgpu.domain.asks import request_text, scheduler_words
from vgpu.domain.asks.node_rules import NodeRuleRefusal
from vgpu.domain.asks.request import PodRequest
from vgpu.domain.cards import reasons
from vgpu.domain.cards.reasons import Reason
from vgpu.domain.grants.assignment import Assignment
from vgpu.domain.identifiers import CardUuid, Namespace
from vgpu.domain.quantity import FULL_CORES

MAX_HELPING: Final = 5
MAX_REASONS: Final = 3
ADVICE_UNGATE: Final = "wait for what has set the gates, such as Kueue, or ask there why it has not ended them"
ADVICE_FIX_MANIFEST: Final = "correct the fields named in the message, and create the pod again"
NOT_CHANGED: Final = "the webhook has not changed this pod, because it did not answer when the pod was created"
ADVICE_CREATE_AGAIN: Final = "run `vgpu readmit -n {}`, which creates again the pods of the namespace that wait so"
ADVICE_WAIT: Final = "wait: the scheduler places the gang, or says what it lacks"
GANG_ADVICE: Final = {
    Reason.GANG_INCOMPLETE: "create the missing pods of the gang, or give it a smaller size",
    Reason.GANG_SIZE_UNKNOWN: "create the PodGroup, or give all pods of the gang one size",
}

Row = dict[str, Any]


def known_cause(pod: WatchedPod, snapshot: ClusterSnapshot) -> Row | None:
    """Return the explanation of a pod for which no node need be asked; None for the others."""
    if pod.parsed.problems:
        message = "; ".join(map(str, pod.parsed.problems))
        return _cause(Reason.INVALID_REQUEST, message, ADVICE_FIX_MANIFEST, snapshot)
    if pod.is_terminal:
        where = f"the pod was on node {pod.node}, and has ended" if pod.node else "the pod has ended"
        return {"message": where, "reasons": [], "nearest": None, "advice": [], "fits": False}
    if pod.node:
        place = f"the pod is on node {pod.node}"
        return {"message": place, "reasons": [], "nearest": None, "advice": [], "fits": True}
    return _not_tried(pod, snapshot)


def _not_tried(pod: WatchedPod, snapshot: ClusterSnapshot) -> Row | None:
    """Return the explanation of a waiting pod that no attempt can place."""
    if not pod.is_admitted(snapshot.slice_mib):
        return _cause(Reason.NOT_ADMITTED, NOT_CHANGED, ADVICE_CREATE_AGAIN.format(pod.namespace), snapshot)
    if pod.scheduling.is_gated:
        return _cause(Reason.SCHEDULING_GATED, reasons.WORDS[Reason.SCHEDULING_GATED], ADVICE_UNGATE, snapshot)
    if not snapshot.views:
        return _cause(Reason.NO_INVENTORY, "no node has reported GPUs", "label a node with GPUs", snapshot)
    return None


def cause(pod: WatchedPod, gang: tuple[Reason, str] | None, snapshot: ClusterSnapshot) -> Row | None:
    """Return the explanation of a pod, or of a member of a gang, for which no node need be asked; else None."""
    known = known_cause(pod, snapshot)
    if known is not None or gang is None or gang[0] is Reason.GANG_INSUFFICIENT_CARDS:
        return known
    if gang[0] is Reason.GANG_WAITS and pod.scheduler_message:
        return None  # the scheduler has tried the pod: the nodes say why it was not placed
    return _cause(*gang, GANG_ADVICE.get(gang[0], ADVICE_WAIT), snapshot)


def elsewhere(pod: WatchedPod, gang: tuple[Reason, str] | None) -> NodeRuleRefusal | None:
    """Return why a pod does not start where it has room: kube-scheduler's words, or its gang; else None."""
    if said := pod.unknown_refusals:
        return NodeRuleRefusal(Reason.SCHEDULER_REFUSED, f"kube-scheduler: {', '.join(said)}")
    if gang is not None:
        return NodeRuleRefusal(gang[0], "there is room for this pod, and not for its gang, which starts as a whole")
    return None


def gang_of(pod: WatchedPod, waiting: WaitingGangs) -> tuple[Reason, str] | None:
    """Return why a pod's gang waits; None for a pod without a gang, or of a gang that does not wait."""
    key = gang_members.key_of(pod)
    return waiting.get(key) if key is not None else None


def why_waiting(
    pod: WatchedPod,
    request: PodRequest,
    counts: Iterable[Row],
    nearest: Row | None,
    *,
    fits: bool,
    gang: tuple[Reason, str] | None = None,
) -> str:
    """Return the sentence for a pod that waits: what it needs, the first reasons, and the nearest fit.

    kube-scheduler's own words come first where they name something else than cards. `gang` is why its gang waits.
    """
    listed = list(counts)
    is_foreign = any(count["reason"] in reasons.FOREIGN for count in listed)
    said = scheduler_words.quoted(pod.scheduler_message) if is_foreign else []
    needs = request_text.needs(request)
    if fits:
        soon = "the scheduler tries again soon" if pod.scheduler_message else "the scheduler has not tried the pod yet"
        return f"{needs}; a node has room now, and {soon}"
    texts = [_counted(count) for count in listed[:MAX_REASONS]]
    parts = [*said, gang[1], *(texts if is_foreign else ())] if gang is not None else [*said, needs, *texts]
    if nearest is not None:
        parts.append(f"nearest fit {nearest['node']}: {nearest['detail']}")
    return "; ".join(parts)


def advice_to_wait(found: Iterable[Row], snapshot: ClusterSnapshot) -> list[Row]:
    """Return the advice for a pod from which room is kept for a gang; `found` are the reasons of its nodes."""
    is_kept = any(count["reason"] == Reason.CARD_KEPT_FOR_GANG for count in found)
    if not is_kept or snapshot.held is None:
        return []
    until = api_times.text(snapshot.held.until_ms)
    text = f"wait: the room is kept free for a gang until {until} at most"
    return [{"code": str(Reason.CARD_KEPT_FOR_GANG), "text": text, "node": "", "gpus": [], "by": "owner"}]


def with_helping_pods(nearest: Row | None, snapshot: ClusterSnapshot, sees: Callable[[Namespace], bool]) -> Row | None:
    """Return the nearest fit with those pods, each of which alone would make room if it ended; the smallest first."""
    if nearest is None:
        return None
    found = []
    if len(nearest["gpus"]) == 1:
        (card,) = nearest["gpus"]
        for pod in snapshot.holders(nearest["node"], card["uuid"]):
            size = _held(pod, card["uuid"])
            if sees(pod.namespace) and size[0] >= nearest["lackingMiB"] and size[1] >= nearest["lackingCores"]:
                found.append((size, f"{pod.namespace}/{pod.name}"))
    return {**nearest, "wouldHelp": [name for _, name in sorted(found)[:MAX_HELPING]]}


def _held(pod: WatchedPod, uuid: CardUuid) -> tuple[int, int]:
    if not isinstance(pod.assignment, Assignment):
        return 0, 0
    grants = [grant for grants in pod.assignment.containers.values() for grant in grants if grant.gpu == uuid]
    cores = sum(FULL_CORES if grant.whole else grant.cores or 0 for grant in grants)
    return sum(grant.memory_mib for grant in grants), cores


def _cause(reason: Reason, message: str, advice: str, snapshot: ClusterSnapshot) -> Row:
    count = {"reason": str(reason), "text": reasons.WORDS[reason], "nodes": len(snapshot.views)}
    said = {"code": str(reason), "text": advice, "node": "", "gpus": [], "by": "owner"}
    return {"message": message, "reasons": [count], "nearest": None, "advice": [said], "fits": False}


def _counted(count: Mapping[str, Any]) -> str:
    nodes = f"{count['nodes']} node{'s' if count['nodes'] > 1 else ''}"
    return f"{nodes}: {count['text']} ({count['reason']})"
