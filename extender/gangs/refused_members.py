"""Has kube-scheduler try the members of a gang again that were refused."""

from collections import OrderedDict
from typing import Final, Protocol

from extender.gangs.known_gangs import Records
from extender.state.gang_members import GangKey

MAX_TURNED_AWAY: Final = 10_000


class Waking(Protocol):
    """Has kube-scheduler try pods again."""

    def wake(self, uid: str, why: str) -> None:
        """Take a pod that is worth another attempt."""

    def changed(self, node: str) -> None:
        """Take a node that can take more than before."""


class Retries:
    """The members that filter refused since they were woken last."""

    def __init__(self, records: Records, waker: Waking) -> None:
        self._records = records
        self._waker = waker
        self._turned_away: OrderedDict[str, None] = OrderedDict()

    def turn_away(self, uid: str) -> None:
        """Take a member that filter refused; the watch may not have shown it yet."""
        self._turned_away[uid] = None
        if len(self._turned_away) > MAX_TURNED_AWAY:
            self._turned_away.popitem(last=False)

    def wake(self, key: GangKey, why: str) -> None:
        """Have kube-scheduler try the members again that were refused."""
        record = self._records.find(key)
        if record is None:
            return
        for pod in self._records.group(key).waiting:
            is_answered = record.plan is not None and pod.uid in record.plan.answered
            if (pod.uid in self._turned_away or pod.is_unschedulable) and not is_answered:
                self._waker.wake(pod.uid, why)
            self._turned_away.pop(pod.uid, None)
