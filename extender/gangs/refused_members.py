"""Has kube-scheduler try the members of a gang again that were refused."""

from typing import Final, Protocol

from extender.gangs.known_gangs import KnownGangs
from extender.state.gang_members import GangKey
from vgpu.domain.identifiers import Namespace, NodeName, PodUid
from vgpu.pacing.fair_cache import FairCache

MAX_REFUSED: Final = 10_000


class Waking(Protocol):
    """Has kube-scheduler try pods again."""

    def wake(self, uid: PodUid, why: str) -> None:
        """Take a pod that is worth another attempt."""

    def changed(self, node: NodeName) -> None:
        """Take a node that can take more than before."""


class RefusedMembers:
    """The members that filter refused since they were woken last: 10,000, of which namespaces have equal parts."""

    def __init__(self, gangs: KnownGangs, waker: Waking) -> None:
        self._gangs = gangs
        self._waker = waker
        self._uids = FairCache[Namespace, PodUid, bool](MAX_REFUSED)

    def add(self, key: GangKey, uid: PodUid) -> None:
        """Take a member that filter refused; the watch may not have shown it yet."""
        namespace, _, _ = key
        self._uids.put(namespace, uid, value=True)

    def wake(self, key: GangKey, why: str) -> None:
        """Have kube-scheduler try the members again that were refused."""
        progress = self._gangs.find(key)
        if progress is None:
            return
        for pod in self._gangs.watched(key).waiting:
            is_answered = progress.plan is not None and pod.uid in progress.plan.answered
            if (self._uids.pop(pod.uid) or pod.is_unschedulable) and not is_answered:
                self._waker.wake(pod.uid, why)
