"""Has kube-scheduler try the members of a gang again that were refused."""

from collections import OrderedDict
from typing import Final, Protocol

from extender.gangs.known_gangs import KnownGangs
from extender.state.gang_members import GangKey
from vgpu.domain.identifiers import NodeName, PodUid

MAX_REFUSED: Final = 10_000


class Waking(Protocol):
    """Has kube-scheduler try pods again."""

    def wake(self, uid: PodUid, why: str) -> None:
        """Take a pod that is worth another attempt."""

    def changed(self, node: NodeName) -> None:
        """Take a node that can take more than before."""


class RefusedMembers:
    """The members that filter refused since they were woken last."""

    def __init__(self, gangs: KnownGangs, waker: Waking) -> None:
        self._gangs = gangs
        self._waker = waker
        self._uids: OrderedDict[PodUid, None] = OrderedDict()

    def add(self, uid: PodUid) -> None:
        """Take a member that filter refused; the watch may not have shown it yet."""
        self._uids[uid] = None
        if len(self._uids) > MAX_REFUSED:
            self._uids.popitem(last=False)

    def wake(self, key: GangKey, why: str) -> None:
        """Have kube-scheduler try the members again that were refused."""
        progress = self._gangs.find(key)
        if progress is None:
            return
        for pod in self._gangs.watched(key).waiting:
            is_answered = progress.plan is not None and pod.uid in progress.plan.answered
            if (pod.uid in self._uids or pod.is_unschedulable) and not is_answered:
                self._waker.wake(pod.uid, why)
            self._uids.pop(pod.uid, None)
