"""Entries of `status.refusals` of a GPUNode about faulted MPS servers: each member's owner gets an Event.

A fault ends the contexts of all processes of a group on a card. Which process faulted is not known: MPS tells all
clients of a fault "without indicating which client generated the error" (NVIDIA, Multi-Process Service, Error
Containment), the control program has the state of a server only, and no published log of a server names the client.
"""

from collections.abc import Collection, Iterable, Mapping
from typing import Final

from vgpu.domain import names
from vgpu.domain.identifiers import CardUuid, PodUid
from vgpu.domain.json_types import JsonObject
from vgpu.node.containers.allocations import Allocation
from vgpu.node.containers.bound_pod import BoundPod
from vgpu.node.gpunode.pod_report import pod_report
from vgpu.node.space.directories import GroupOnCard, SpaceDirectories
from vgpu.pacing import turns

TOLD_S: Final = 120.0  # for which a fault is reported: the extender posts an Event of it once

Faulted = frozenset[tuple[PodUid, CardUuid]]


def faulted(
    groups: SpaceDirectories | None, noted: Mapping[GroupOnCard, float], allocations: Iterable[Allocation], now: float
) -> Faulted:
    """Return the members of groups whose server has faulted lately, by the faults that are `noted`. Raises OSError.

    Times are in seconds since 1970.
    """
    lately = [of for of, at in noted.items() if now - at < TOLD_S]
    if groups is None or not lately:
        return frozenset()
    holders = {allocation.id: allocation.holder for allocation in allocations}
    members = ((holders.get(member), of.card) for of in lately for member in groups.members(of))
    return frozenset((holder.uid, card) for holder, card in members if holder is not None)


def reports(found: Faulted, pods: Iterable[BoundPod], most: int) -> list[JsonObject]:
    """Return one entry for each pod, in the order of the pods. Of more than `most`, namespaces take turns."""
    cards: dict[PodUid, list[CardUuid]] = {}
    for uid, card in sorted(found):
        cards.setdefault(uid, []).append(card)
    hit = [pod for pod in pods if pod.space is not None and pod.uid in cards and not pod.is_terminal]
    told = turns.taken(hit, lambda pod: pod.namespace, most)
    return [_report(pod, cards[pod.uid]) for pod in told]


def _report(pod: BoundPod, cards: Collection[CardUuid]) -> JsonObject:
    text = (
        f"the MPS server of the pod's group {pod.space.group if pod.space else ''} on card {', '.join(cards)} has "
        "faulted, because of a process of the group: the programs of all of its pods there have lost their contexts. "
        "MPS does not say which process it was"
    )
    return pod_report(pod, names.SPACE_SERVER_FAULTED, text, evict=False)
