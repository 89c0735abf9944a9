"""Why a pod waits, in one sentence, and which pods' end would make room for it."""

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

from extender.admin.exchange.snapshots import ClusterSnapshot, WaitingGangs
from extender.state import gang_members
from extender.state.objects import WatchedPod
from vgpu.domain.asks import request_text
from vgpu.domain.asks.request import PodRequest
from vgpu.domain.cards import reasons
from vgpu.domain.cards.reasons import Reason
from vgpu.domain.grants.assignment import Assignment
from vgpu.domain.identifiers import CardUuid, Namespace
from vgpu.domain.quantity import FULL_CORES

MAX_HELPING: Final = 5
MAX_REASONS: Final = 3
ADVICE_FIX_MANIFEST: Final = "correct the fields named in the message, and create the pod again"
ADVICE_CREATE_AGAIN: Final = (
    "the webhook has not changed this pod, because it did not answer when the pod was created; delete the pod, and "
    "create it again"
)
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
    if pod.node:
        place = f"the pod is on node {pod.node}"
        return {"message": place, "reasons": [], "nearest": None, "advice": [], "fits": True}
    if pod.is_terminal:
        return {"message": "the pod has ended", "reasons": [], "nearest": None, "advice": [], "fits": False}
    if not pod.is_admitted(snapshot.slice_mib):
        return _cause(Reason.NOT_ADMITTED, ADVICE_CREATE_AGAIN, "delete the pod, and create it again", snapshot)
    if not snapshot.views:
        return _cause(Reason.NO_INVENTORY, "no node has reported GPUs", "label a node with GPUs", snapshot)
    return None


def gang_of(pod: WatchedPod, waiting: WaitingGangs) -> tuple[Reason, str] | None:
    """Return why a pod's gang waits; None for a pod without a gang, or of a gang that does not wait."""
    key = gang_members.key_of(pod)
    return waiting.get(key) if key is not None else None


def gang_cause(gang: tuple[Reason, str] | None, snapshot: ClusterSnapshot) -> Row | None:
    """Return the explanation of a member of a gang, where no node need be asked."""
    if gang is None or gang[0] is Reason.GANG_INSUFFICIENT_CARDS:
        return None
    return _cause(*gang, GANG_ADVICE.get(gang[0], ADVICE_WAIT), snapshot)


def why_waiting(
    request: PodRequest,
    counts: Iterable[Row],
    nearest: Row | None,
    *,
    fits: bool,
    gang: tuple[Reason, str] | None = None,
) -> str:
    """Return the sentence for a pod that waits: what it needs, the first reasons, and the nearest fit.

    `gang` is why its gang waits.
    """
    needs = request_text.needs(request)
    if gang is not None:
        return gang[1]
    if fits:
        return f"{needs}; a node has room now, and the scheduler tries again soon"
    listed = [_counted(count) for count in counts]
    parts = [needs, *listed[:MAX_REASONS]]
    if nearest is not None:
        parts.append(f"nearest fit {nearest['node']}: {nearest['detail']}")
    return "; ".join(parts)


def with_helping_pods(nearest: Row | None, snapshot: ClusterSnapshot, sees: Callable[[Namespace], bool]) -> Row | None:
    """Return the nearest fit with those pods, each of which alone would make room if it ended; the smallest first."""
    if nearest is None:
        return None
    found = []
    if len(nearest["gpus"]) == 1:
        (card,) = nearest["gpus"]
        for pod in snapshot.holders.get((nearest["node"], card["uuid"]), ()):
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
