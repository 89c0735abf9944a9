"""Affinity between pods on one card: which cards a pod must be on, or off, for the pods that are there (ADR 72).

Pods of other namespaces are never looked at. Anti-affinity counts in both directions: a pod that is on a card keeps
others off it.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from extender.state import bound_usage
from extender.state.objects import WatchedPod
from vgpu.domain.asks.policy import Labels
from vgpu.domain.asks.request import PodRequest
from vgpu.domain.grants.assignment import Assignment
from vgpu.domain.identifiers import CardUuid, Namespace, PodUid

Holder = tuple[WatchedPod, Assignment]


class CardNeighbours:
    """The pods that hold cards, by namespace; `binding` returns those that are being bound."""

    def __init__(self, binding: Callable[[], Iterable[Holder]]) -> None:
        self._binding = binding
        self._holders: dict[Namespace, dict[PodUid, Holder]] = {}
        self._repelling: dict[Namespace, dict[PodUid, None]] = {}
        self._namespaces: dict[PodUid, Namespace] = {}

    def put(self, pod: WatchedPod) -> None:
        """Take a pod that is new or changed."""
        if pod.uid in self._namespaces:
            self.remove(pod.uid)
        held = None if pod.is_terminal else bound_usage.granted(pod)
        if held is None:
            return
        self._namespaces[pod.uid] = pod.namespace
        self._holders.setdefault(pod.namespace, {})[pod.uid] = pod, held[1]
        if held[0].options.anti_affinity:
            self._repelling.setdefault(pod.namespace, {})[pod.uid] = None

    def remove(self, uid: PodUid) -> None:
        """Take a pod's deletion."""
        namespace = self._namespaces.pop(uid, None)
        if namespace is not None:
            for by_namespace in (self._holders, self._repelling):
                _pop(by_namespace, namespace, uid)

    def request(self, pod: WatchedPod) -> PodRequest | None:
        """Return what a pod asks for, with the cards that affinity to the pods on them allows and rules out now."""
        request = pod.parsed.request
        if request is None:
            return None
        options = request.options
        near = self._near(pod)
        if not (options.affinity or options.anti_affinity or self._repels(pod, near)):
            return request
        others = self._others(pod, near)
        beside, apart = _beside(pod, options.affinity, others), _apart(pod, options.anti_affinity, others)
        selector = replace(options.selector, beside=beside, apart=apart)
        return replace(request, options=replace(options, selector=selector))

    def preferred(self, pod: WatchedPod, request: PodRequest) -> PodRequest | None:
        """Return what `request` returned, with the cards that the pod prefers too; None where it prefers none now."""
        options, selector = request.options, request.options.selector
        if not options.prefers_neighbours:
            return None
        others = self._others(pod, self._near(pod))
        beside = _beside(pod, options.preferred_affinity, others) or None  # no such pod yet: no preference
        apart = selector.apart | _apart(pod, options.preferred_anti_affinity, others)
        if beside is None and apart == selector.apart:
            return None
        if beside is not None and selector.beside is not None:
            beside &= selector.beside
        narrowed = replace(selector, beside=selector.beside if beside is None else beside, apart=apart)
        return replace(request, options=replace(options, selector=narrowed))

    def _others(self, pod: WatchedPod, near: Sequence[Holder]) -> list[Holder]:
        """Return the other pods of the namespace that hold cards, with those that are being bound."""
        return [*(holder for uid, holder in self._holders.get(pod.namespace, {}).items() if uid != pod.uid), *near]

    def _repels(self, pod: WatchedPod, near: Sequence[Holder]) -> bool:
        """Whether any pod of the namespace keeps others off its cards."""
        return bool(self._repelling.get(pod.namespace)) or any(_anti_affinity(other) for other, _ in near)

    def _near(self, pod: WatchedPod) -> list[Holder]:
        """Return the other pods of the namespace that are being bound."""
        return [
            (other, held)
            for other, held in self._binding()
            if other.namespace == pod.namespace and other.uid != pod.uid
        ]


def _beside(pod: WatchedPod, affinity: Labels, others: Iterable[Holder]) -> frozenset[CardUuid] | None:
    """Return the cards with pods that a pod must be beside; None where it may be anywhere.

    The first one of pods that must be beside each other may be anywhere, as with kube-scheduler's affinity.
    """
    if not affinity:
        return None
    found = frozenset(uuid for other, held in others if _matches(affinity, other) for uuid in held.gpus())
    return None if not found and _matches(affinity, pod) else found


def _apart(pod: WatchedPod, anti_affinity: Labels, others: Iterable[Holder]) -> frozenset[CardUuid]:
    return frozenset(_kept_off(pod, anti_affinity, others))


def _kept_off(pod: WatchedPod, anti_affinity: Labels, others: Iterable[Holder]) -> Iterator[CardUuid]:
    for other, held in others:
        if _matches(anti_affinity, other) or _matches(_anti_affinity(other), pod):
            yield from held.gpus()


def _anti_affinity(pod: WatchedPod) -> Labels:
    return pod.parsed.request.options.anti_affinity if pod.parsed.request else frozenset()


def _matches(wanted: Labels, pod: WatchedPod) -> bool:
    """Whether a pod has all of the labels; without labels none is meant."""
    labels: Mapping[str, str] = pod.scheduling.labels
    return bool(wanted) and all(labels.get(key) == value for key, value in wanted)


def _pop(
    by_namespace: dict[Namespace, dict[PodUid, Holder]] | dict[Namespace, dict[PodUid, None]],
    namespace: Namespace,
    uid: PodUid,
) -> None:
    found = by_namespace.get(namespace)
    if found is not None:
        found.pop(uid, None)
        if not found:
            del by_namespace[namespace]
