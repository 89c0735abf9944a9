"""Records Kubernetes Events: why pods wait, and which objects are wrong. Events are posted apart from the verbs.

An object has one Event for each reason, a series with a count, as client-go's recorder writes it. An unchanged message
is posted again after half an hour only, because Events expire after an hour; a changed one after 15 s at the earliest,
and each post doubles that time, up to five minutes. A token bucket limits all posts together. What waits for a token is
replaced by the newer message of its series. Namespaces have turns, and equal parts of what is remembered: the pods of
one that create a crowd of Events delay no other's, and make nobody's be posted again.
"""

import asyncio
import hashlib
import logging
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from vgpu.adapters.kubernetes import events
from vgpu.adapters.kubernetes.client import KubernetesClient
from vgpu.domain.errors import KubernetesError
from vgpu.pacing.back_off import BackOff
from vgpu.pacing.fair_cache import FairCache
from vgpu.pacing.fair_queue import FairQueue
from vgpu.pacing.token_bucket import TokenBucket

QUEUE_SIZE: Final = 1_000
MAX_SERIES: Final = 10_000  # of which the last message is remembered
MIN_INTERVAL_S: Final = 15.0
MAX_INTERVAL_S: Final = 300.0
INTERVALS: Final = BackOff(MIN_INTERVAL_S, MAX_INTERVAL_S)  # between changed messages of a series
RENEW_S: Final = 1_800.0
BURST: Final = 50
RATE_PER_S: Final = 5.0
COMPONENT: Final = "vgpu-extender"

_Key = tuple[str, str]  # the object's UID, and the reason
_Event = tuple[Mapping[str, str], str]  # the object's reference, and the message

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class _Series:
    """What was posted last. `count` is the API server's, 0 before the first post."""

    message: str
    count: int
    at: float

    def is_due(self, message: str, now: float) -> bool:
        if message == self.message and self.count:
            return now - self.at >= RENEW_S
        return now - self.at >= INTERVALS.delay_s(max(1, self.count))


class EventRecorder:
    """Takes messages at any rate, and posts the new ones. `clock` is monotonic, `now` the wall clock."""

    def __init__(
        self,
        client: KubernetesClient,
        clock: Callable[[], float],
        now: Callable[[], datetime],
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._client = client
        self._clock = clock
        self._now = now
        self._sleep = sleep
        self._bucket = TokenBucket(RATE_PER_S, BURST, clock)
        self._series = FairCache[str, _Key, _Series](MAX_SERIES)
        self._recorded = FairCache[str, str, float](MAX_SERIES)
        self._waiting = FairQueue[str, _Key, _Event](QUEUE_SIZE)  # by namespace
        self._has_waiting = asyncio.Event()

    @property
    def waiting(self) -> int:
        """Number of Events that are not posted yet. The one that is being posted counts."""
        return len(self._waiting)

    def rests(self, uid: str) -> bool:
        """Whether a message about an object came within the last 15 s: then another one is not worth its making."""
        recorded = self._recorded.get(uid)
        return recorded is not None and self._clock() - recorded < MIN_INTERVAL_S

    def record(self, about: Mapping[str, str], reason: str, message: str) -> None:
        """Queue an Event about an object (its reference), unless the rules above suppress it."""
        uid, namespace, now = about["uid"], about.get("namespace", ""), self._clock()
        self._recorded.put(namespace, uid, now)
        last = self._series.get((uid, reason))
        if last is not None and not last.is_due(message, now):
            return
        self._waiting.put(namespace, (uid, reason), (about, message))
        self._has_waiting.set()

    async def run(self) -> None:
        """Post queued Events until cancelled; an Event that the API server refuses is logged and dropped."""
        while True:
            await self._has_waiting.wait()
            while wait_s := self._bucket.take():
                await self._sleep(wait_s)
            namespace, key, event = self._waiting.first()
            about, message = event
            count = await self._post(about, key[1], message)
            self._series.put(namespace, key, _Series(message, count, self._clock()))
            self._waiting.done(namespace, key, event)
            if not self._waiting:
                self._has_waiting.clear()

    async def _post(self, about: Mapping[str, str], reason: str, message: str) -> int:
        """Return the count that the series has then."""
        last = self._series.get((about["uid"], reason))
        count = last.count if last else 0
        name = f"{events.prefix(about['name'])}{_digest(about['uid'], reason)}"
        try:
            return await events.post_series(
                self._client, about, name,
                reason=reason, message=message, component=COMPONENT, now=self._now(), count=count + 1,
            )  # fmt: skip
        except KubernetesError as error:
            log.warning("an Event about %s %s was dropped: %s", about["kind"], about["name"], error)
            return count


def _digest(uid: str, reason: str) -> str:
    """Return the part of an Event's name that makes it the series' own, in every process."""
    return hashlib.blake2b(f"{uid} {reason}".encode(), digest_size=8).hexdigest()
