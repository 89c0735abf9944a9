"""Back-off before an unschedulable pod is tried again: doubles each time, as kube-scheduler's does."""

from collections import Counter
from collections.abc import Collection, Iterable
from datetime import datetime, timedelta
from typing import Final

from vgpu.domain.json_types import JsonObject
from vgpu.pacing.back_off import BackOff

PAUSES: Final = BackOff(first_s=0.5, longest_s=4.0)


class BackoffQueue:
    """The back-off of pods, by UID."""

    def __init__(self) -> None:
        self._until: dict[str, datetime] = {}
        self._failures: Counter[str] = Counter()

    def due(self, pods: Iterable[JsonObject], now: datetime) -> list[JsonObject]:
        """Return the pods to try now, oldest first."""
        ready = [pod for pod in pods if self._until.get(pod["metadata"]["uid"], now) <= now]
        return sorted(ready, key=lambda pod: (pod["metadata"]["creationTimestamp"], pod["metadata"]["name"]))

    def pause(self, uid: str, now: datetime) -> None:
        """Back off from a pod, twice as long as the last time."""
        self._failures[uid] += 1
        self._until[uid] = now + timedelta(seconds=PAUSES.delay_s(self._failures[uid]))

    def keep(self, uids: Collection[str]) -> None:
        """Forget every pod but these."""
        for uid in self._until.keys() - set(uids):
            del self._until[uid], self._failures[uid]
