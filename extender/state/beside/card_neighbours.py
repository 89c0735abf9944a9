"""The pods that hold cards, by namespace and by group in space, for affinity between pods on one card (ADR 72, 174)."""

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, TypeVar

from extender.state import bound_usage, gang_members
from extender.state.objects import WatchedPod
from vgpu.domain.asks.request import PodRequest
from vgpu.domain.grants.assignment import Assignment
from vgpu.domain.identifiers import CardUuid, Namespace, PodUid
from vgpu.placement import neighbours
from vgpu.placement.neighbours import CardTenant

if TYPE_CHECKING:
    from extender.state.gang_members import GangKey
    from vgpu.domain.asks.space import SpaceGroup

Holder = tuple[WatchedPod, Assignment]
K = TypeVar("K")
V = TypeVar("V")


class CardNeighbours:
    """The pods that hold cards, by namespace; `binding` returns those that are being bound."""

    def __init__(self, binding: Callable[[], Iterable[Holder]]) -> None:
        self._binding = binding
        self._holders: dict[Namespace, dict[PodUid, CardTenant]] = {}
        self._repelling: dict[Namespace, dict[PodUid, None]] = {}
        self._groups: dict[SpaceGroup, dict[PodUid, CardTenant]] = {}
        self._gangs: dict[GangKey, dict[PodUid, Holder]] = {}
        self._gang_keys: dict[PodUid, GangKey] = {}
        self._namespaces: dict[PodUid, Namespace] = {}

    def put(self, pod: WatchedPod) -> None:
        """Take a pod that is new or changed."""
        if pod.uid in self._namespaces:
            self.remove(pod.uid)
        held = None if pod.is_terminal else bound_usage.granted(pod)
        if held is None:
            return
        self._namespaces[pod.uid] = pod.namespace
        holder = tenant(pod, held[1])
        self._holders.setdefault(pod.namespace, {})[pod.uid] = holder
        if holder.group is not None:
            self._groups.setdefault(holder.group, {})[pod.uid] = holder
        if (key := gang_members.key_of(pod)) is not None:
            self._gang_keys[pod.uid] = key
            self._gangs.setdefault(key, {})[pod.uid] = pod, held[1]
        if held[0].options.anti_affinity:
            self._repelling.setdefault(pod.namespace, {})[pod.uid] = None

    def remove(self, uid: PodUid) -> None:
        """Take a pod's deletion."""
        namespace = self._namespaces.pop(uid, None)
        if namespace is not None:
            group = self._holders[namespace][uid].group
            if group is not None:
                _pop(self._groups, group, uid)
            _pop(self._holders, namespace, uid)
            _pop(self._repelling, namespace, uid)
        key = self._gang_keys.pop(uid, None)
        if key is not None:
            _pop(self._gangs, key, uid)

    def request(self, pod: WatchedPod) -> PodRequest | None:
        """Return what a pod asks for, with the cards that affinity to the pods on them allows and rules out now."""
        request = pod.parsed.request
        if request is None:
            return None
        options = request.options
        near, members, of_gang = self._near(pod), self._members(pod, request), self._of_gang(pod)
        if not (options.affinity or options.anti_affinity or members or self._repels(pod, near)):
            return neighbours.off(request, frozenset(of_gang))
        return neighbours.required(request, pod.scheduling.labels, self._others(pod, near), members, of_gang)

    def preferred(self, pod: WatchedPod, request: PodRequest) -> PodRequest | None:
        """Return what `request` returned, with the cards that the pod prefers too; None where it prefers none now."""
        if not request.options.prefers_neighbours:
            return None
        members, others = self._members(pod, request), self._others(pod, self._near(pod))
        return neighbours.preferred(request, pod.scheduling.labels, others, members)

    def _members(self, pod: WatchedPod, request: PodRequest) -> list[CardUuid]:
        """Return the cards of the other members of a pod's group in space, also of those that are being bound."""
        if request.options.space is None:
            return []
        group = request.options.space.group(pod.namespace)
        bound = (member for uid, member in self._groups.get(group, {}).items() if uid != pod.uid)
        binding = (tenant(other, held) for other, held in self._binding() if other.uid != pod.uid)
        return neighbours.members_of(group, (*bound, *binding))

    def _of_gang(self, pod: WatchedPod) -> set[CardUuid]:
        """Return the cards of the other pods of a pod's gang that must not be beside it; one of two may say so."""
        key = gang_members.key_of(pod)
        if key is None:
            return set()
        binding = ((other, held) for other, held in self._binding() if gang_members.key_of(other) == key)
        members = [*self._gangs.get(key, {}).values(), *binding]
        is_apart = _is_apart(pod)
        return {
            card
            for other, held in members
            if other.uid != pod.uid and (is_apart or _is_apart(other))
            for card in held.gpus()
        }

    def _others(self, pod: WatchedPod, near: Sequence[CardTenant]) -> list[CardTenant]:
        """Return the other pods of the namespace that hold cards, with those that are being bound."""
        return [*(holder for uid, holder in self._holders.get(pod.namespace, {}).items() if uid != pod.uid), *near]

    def _repels(self, pod: WatchedPod, near: Sequence[CardTenant]) -> bool:
        """Whether any pod of the namespace keeps others off its cards."""
        return bool(self._repelling.get(pod.namespace)) or any(other.anti_affinity for other in near)

    def _near(self, pod: WatchedPod) -> list[CardTenant]:
        """Return the other pods of the namespace that are being bound."""
        return [
            tenant(other, held)
            for other, held in self._binding()
            if other.namespace == pod.namespace and other.uid != pod.uid
        ]


def tenant(pod: WatchedPod, held: Assignment) -> CardTenant:
    """Return a pod that holds cards, as affinity looks at it."""
    return neighbours.tenant(pod.namespace, pod.scheduling.labels, pod.parsed.request, held)


def _is_apart(pod: WatchedPod) -> bool:
    return pod.parsed.request is not None and pod.parsed.request.options.is_apart_from_gang


def _pop(pods: dict[K, dict[PodUid, V]], key: K, uid: PodUid) -> None:
    found = pods.get(key)
    if found is not None:
        found.pop(uid, None)
        if not found:
            del pods[key]
