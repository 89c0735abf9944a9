"""Entries of `status.refusals` of a GPUNode about pods that hold unhealthy or lost cards: owners get an Event. Pure."""

from collections.abc import Collection, Iterable, Mapping
from typing import Any, Final

from vgpu.adapters.nvml.records import Gpu
from vgpu.domain import names
from vgpu.domain.cards.device import EXCLUSIVE_PROCESS
from vgpu.domain.identifiers import CardUuid, PodUid
from vgpu.node.cards import other_plugins, xids
from vgpu.node.containers.bound_pod import BoundPod
from vgpu.node.containers.card_holders import CardHolder
from vgpu.node.gpunode.pod_report import pod_report
from vgpu.pacing import turns

MAX_REPORTED: Final = 16
LOST: Final = "Lost"
ONE_PROCESS: Final = "ExclusiveProcess"
_LOST_ADVICE: Final = (
    "GPU calls of the pod fail: delete the pod, so that its controller starts another on a card that works"
)
_ONE_PROCESS_ADVICE: Final = "all processes on it but the first get CUDA error 46 (devices unavailable)"
_ADVICE_BY_FAULT: Final = {
    other_plugins.FAULT: other_plugins.ADVICE,
    LOST: _LOST_ADVICE,
    ONE_PROCESS: _ONE_PROCESS_ADVICE,
}
_ADVICE: Final = "GPU calls of the pod may fail or hang; new containers do not get the card until it recovers"


def reports(
    faults: Mapping[CardUuid, str], gpus: Iterable[Gpu], held: Collection[CardHolder], pods: Iterable[BoundPod]
) -> list[dict[str, Any]]:
    """Return an entry for each pod that holds a card with a fault, or a card that is not among `gpus`.

    At most 16, in the order of the pods; namespaces have turns.
    """
    indexes = {gpu.card.uuid: gpu.card.index for gpu in gpus}
    lost = {allocation.gpu for allocation in held} - indexes.keys()
    faults = {**faults, **dict.fromkeys(lost, LOST)}
    by_pod: dict[PodUid, set[CardUuid]] = {}
    for allocation in held:
        if allocation.gpu in faults:
            by_pod.setdefault(allocation.pod_uid, set()).add(allocation.gpu)
    hit = (pod for pod in pods if pod.uid in by_pod and not pod.is_terminal)
    told = turns.taken(hit, lambda pod: pod.namespace, MAX_REPORTED)
    return [_report(pod, by_pod[pod.uid], faults, indexes) for pod in told]


def _report(
    pod: BoundPod, hit: set[CardUuid], faults: Mapping[CardUuid, str], indexes: Mapping[CardUuid, int]
) -> dict[str, Any]:
    cards = "; ".join(_fault(gpu, faults[gpu], indexes) for gpu in sorted(hit))
    reasons = {faults[gpu] for gpu in hit}
    advice = _ADVICE_BY_FAULT.get(next(iter(reasons)), _ADVICE) if len(reasons) == 1 else _ADVICE
    return pod_report(pod, names.CARD_UNHEALTHY, f"{cards[:800]}. {advice}", evict=False)


def _fault(gpu: CardUuid, fault: str, indexes: Mapping[CardUuid, int]) -> str:
    if fault == LOST:
        return f"card {gpu} is lost: the driver of the node does not list it; it was replaced, or does not answer"
    if fault == ONE_PROCESS:
        return f"card {indexes[gpu]} ({gpu}) is shared, but {EXCLUSIVE_PROCESS}"
    return f"card {indexes[gpu]} ({gpu}) is unhealthy: {xids.describe(fault)}"
