"""The pods that hold cards, by namespace, for affinity between pods on one card (ADR 72)."""

from collections.abc import Callable, Iterable, Sequence

from extender.state import bound_usage
from extender.state.objects import WatchedPod
from vgpu.domain.asks.request import PodRequest
from vgpu.domain.grants.assignment import Assignment
from vgpu.domain.identifiers import Namespace, PodUid
from vgpu.placement import neighbours
from vgpu.placement.neighbours import CardTenant

Holder = tuple[WatchedPod, Assignment]


class CardNeighbours:
    """The pods that hold cards, by namespace; `binding` returns those that are being bound."""

    def __init__(self, binding: Callable[[], Iterable[Holder]]) -> None:
        self._binding = binding
        self._holders: dict[Namespace, dict[PodUid, CardTenant]] = {}
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
        self._holders.setdefault(pod.namespace, {})[pod.uid] = tenant(pod, held[1])
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
        return neighbours.required(request, pod.scheduling.labels, self._others(pod, near))

    def preferred(self, pod: WatchedPod, request: PodRequest) -> PodRequest | None:
        """Return what `request` returned, with the cards that the pod prefers too; None where it prefers none now."""
        if not request.options.prefers_neighbours:
            return None
        return neighbours.preferred(request, pod.scheduling.labels, self._others(pod, self._near(pod)))

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
    repelled = pod.parsed.request.options.anti_affinity if pod.parsed.request else frozenset()
    return CardTenant(pod.scheduling.labels, repelled, held)


def _pop(
    by_namespace: dict[Namespace, dict[PodUid, CardTenant]] | dict[Namespace, dict[PodUid, None]],
    namespace: Namespace,
    uid: PodUid,
) -> None:
    found = by_namespace.get(namespace)
    if found is not None:
        found.pop(uid, None)
        if not found:
            del by_namespace[namespace]
