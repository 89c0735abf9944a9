"""Entries of `status.refusals` of a GPUNode about processes outside of their group in space: owners get an Event. Pure.

A text changes as seldom as possible, because each change is a patch of the GPUNode.
"""

from collections.abc import Iterable, Mapping
from typing import Final

from vgpu.domain import names
from vgpu.domain.identifiers import ContainerName, PodUid
from vgpu.domain.json_types import JsonObject
from vgpu.node.containers.bound_pod import BoundPod
from vgpu.node.gpunode.pod_report import pod_report
from vgpu.pacing import turns

_MAX_MESSAGE: Final = 900
_ADVICE: Final = "They take turns by themselves, as with the policy burst. Their logs say why"


def reports(
    outside: Mapping[tuple[PodUid, ContainerName], int], pods: Iterable[BoundPod], most: int
) -> list[JsonObject]:
    """Return one entry for each pod of a group, in the order of the pods. Of more than `most`, namespaces take turns.

    `outside`: how many processes of each container are no clients of its group's MPS server.
    """
    counts: dict[PodUid, list[str]] = {}
    for (uid, container), count in sorted(outside.items()):
        if count:
            counts.setdefault(uid, []).append(f"container {container}: {count}")
    hit = [pod for pod in pods if pod.space is not None and pod.uid in counts and not pod.is_terminal]
    told = turns.taken(hit, lambda pod: pod.namespace, most)
    return [_report(pod, counts[pod.uid]) for pod in told]


def _report(pod: BoundPod, counts: list[str]) -> JsonObject:
    text = f"processes that are no clients of the MPS server of the pod's group: {', '.join(counts)}"
    return pod_report(pod, names.SPACE_NOT_JOINED, f"{text[: _MAX_MESSAGE - len(_ADVICE)]}. {_ADVICE}", evict=False)
