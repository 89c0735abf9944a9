"""Which members of a gang keep their places when its plan changes, and which are planned. Pure."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet

from extender.gangs.plan import GangPlan
from extender.gangs.watched_gang import WatchedGang
from extender.state.objects import WatchedPod
from vgpu.domain.asks.request import PodRequest
from vgpu.domain.identifiers import NodeName, PodUid
from vgpu.placement.gang_attempt import Member


def kept(uid: PodUid, plan: GangPlan, reserved: Callable[[], AbstractSet[PodUid]]) -> Iterator[AbstractSet[PodUid]]:
    """Yield the members that keep their places: those whose node kube-scheduler knows; then as few as possible.

    `uid` is the member that was asked about, `reserved` returns the members that wait and whose places are reserved.
    A member whose Binding was posted keeps its place until the outcome is known.
    """
    known = reserved() & (plan.answered | plan.arrived | plan.posted)
    first = known - {uid} | known & plan.posted
    yield first
    posted = reserved() & plan.posted
    if first != posted:
        yield posted


def unplaced(found: WatchedGang, plan: GangPlan, uid: PodUid, before: AbstractSet[PodUid]) -> list[WatchedPod]:
    """Return the members to be planned; empty where those that have places suffice.

    The member that was asked about comes first, and then those in `before`, which had places.
    """
    others = [pod for pod in found.waiting if pod.uid not in plan.places]
    others.sort(key=lambda pod: (pod.uid != uid, pod.uid not in before, pod.lifecycle.created_ms, pod.uid))
    return others[: max(0, found.needs - len(plan.places))]


def members(
    asker: WatchedPod,
    pods: Sequence[WatchedPod],
    requests: Mapping[PodUid, PodRequest | None],
    names: frozenset[NodeName],
    plan: GangPlan,
) -> Iterator[Member]:
    """Yield the members. What kube-scheduler offers for one of them it is taken to offer for its equals.

    `asker` is the member that was asked about, with the nodes `names`. `requests` has what the members ask for, without
    the cards that other pods keep them off, by UID.
    """
    for pod in pods:
        request, barred = requests[pod.uid], plan.barred.get(pod.uid)
        if request is not None:
            is_equal = (pod.parsed.request, pod.host) == (asker.parsed.request, asker.host)
            yield Member(pod.uid, request, pod.host, names if is_equal else None, frozenset(barred or ()))
