"""Entries of `status.refusals` of a GPUNode about pods whose kernels keep others waiting: owners get an Event. Pure.

A text changes as seldom as possible, because each change is a patch of the GPUNode.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Final

from vgpu.domain import names
from vgpu.domain.identifiers import CardUuid, PodUid
from vgpu.domain.json_types import JsonObject
from vgpu.node.containers.bound_pod import BoundPod
from vgpu.node.gpunode.pod_report import pod_report
from vgpu.node.usage.gpu_time import Use
from vgpu.node.usage.long_kernels import LongKernels
from vgpu.pacing import turns

MAX_REPORTED: Final = 16
_MAX_MESSAGE: Final = 900
_MAX_MEMBERS: Final = 4  # of a job that are named
_MAX_NAME: Final = 63
_KEEP_APART: Final = "Keep programs that serve requests on other cards"
_ENDLESS: Final = (
    "It cannot be stopped without ending its process: delete the pod, or let the device plugin evict such pods "
    "(--endless-kernels). Others have what the card's time slices leave"
)


def reports(
    long: Mapping[Use, LongKernels],
    endless: Collection[Use],
    indexes: Mapping[CardUuid, int],
    pods: Iterable[BoundPod],
    *,
    evicts: Collection[str],
) -> list[JsonObject]:
    """Return an entry for each pod and reason, at most 16 in the order of the pods; namespaces have turns.

    `indexes` are those of the cards; `evicts` are the reasons that evict pods.
    """
    texts: dict[tuple[PodUid, str], list[str]] = {}
    known = list(pods)
    for (uid, container, gpu), found in sorted(long.items(), key=lambda entry: entry[0]):
        text = f"container {container} runs kernels of about {_rounded(found)} s on card {_card(gpu, indexes)}"
        texts.setdefault((uid, names.LONG_KERNELS), []).append(f"{text}, for which its other containers wait")
    for uid, container, gpu in sorted(endless):
        text = f"container {container} runs a kernel on card {_card(gpu, indexes)} that does not end"
        texts.setdefault((uid, names.ENDLESS_KERNEL), []).append(text)
    hit = [(pod, reason) for pod in known for (uid, reason) in texts if uid == pod.uid and not pod.is_terminal]
    told = turns.taken(hit, lambda entry: entry[0].namespace, MAX_REPORTED)
    return [_report(pod, reason, texts[pod.uid, reason], known, evicts=reason in evicts) for pod, reason in told]


def _report(pod: BoundPod, reason: str, texts: list[str], pods: Sequence[BoundPod], *, evicts: bool) -> JsonObject:
    advice = _KEEP_APART if reason == names.LONG_KERNELS else f"{_waits_for(pod, pods)}{_ENDLESS}"
    message = f"{'; '.join(texts)[: _MAX_MESSAGE - len(advice)]}. {advice}"
    return pod_report(pod, reason, message, evict=evicts and pod.has_controller)


def _waits_for(pod: BoundPod, pods: Sequence[BoundPod]) -> str:
    """Say who a rank's kernel may wait for: a collective spins until the ranks on all other cards have begun it."""
    if pod.job is None:
        return ""
    others = sorted(
        (other for other in pods if other.job == pod.job and other.uid != pod.uid), key=lambda one: one.name
    )
    listed = [
        f"{other.name[:_MAX_NAME]} ({'has ended' if other.is_terminal else 'runs'})" for other in others[:_MAX_MEMBERS]
    ]
    more = f" and {len(others) - _MAX_MEMBERS} more" if len(others) > _MAX_MEMBERS else ""
    known = f"here are {', '.join(listed)}{more}" if listed else "no other pod of it is here"
    return f"It may be a collective that waits for another rank of its job, of which {known}. "


def _rounded(found: LongKernels) -> str:
    return f"{found.seconds / found.count:.1g}"


def _card(gpu: CardUuid, indexes: Mapping[CardUuid, int]) -> str:
    return f"{indexes[gpu]} ({gpu})" if gpu in indexes else gpu
