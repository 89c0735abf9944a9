"""Back-off before an unschedulable pod is tried again: doubles each time, as kube-scheduler's does."""

from collections.abc import Collection, Iterable
from datetime import datetime, timedelta
from typing import Final

from vgpu.domain.json_types import JsonObject

FIRST_PAUSE_S: Final = 0.5
LONGEST_PAUSE_S: Final = 4.0


class BackoffQueue:
    """The back-off of pods, by UID."""

    def __init__(self) -> None:
        self._until: dict[str, datetime] = {}
        self._pauses: dict[str, float] = {}

    def due(self, pods: Iterable[JsonObject], now: datetime) -> list[JsonObject]:
        """Return the pods to try now, oldest first."""
        ready = [pod for pod in pods if self._until.get(pod["metadata"]["uid"], now) <= now]
        return sorted(ready, key=lambda pod: (pod["metadata"]["creationTimestamp"], pod["metadata"]["name"]))

    def pause(self, uid: str, now: datetime) -> None:
        """Back off from a pod, twice as long as the last time."""
        pause = self._pauses.get(uid, FIRST_PAUSE_S)
        self._until[uid] = now + timedelta(seconds=pause)
        self._pauses[uid] = min(LONGEST_PAUSE_S, 2 * pause)

    def keep(self, uids: Collection[str]) -> None:
        """Forget every pod but these."""
        for uid in self._until.keys() - set(uids):
            del self._until[uid], self._pauses[uid]
