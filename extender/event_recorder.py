"""Records Kubernetes Events: why pods wait, and which objects are wrong. Events are posted apart from the verbs.

A message about an object is recorded once until another message about it comes, and at most one message per object in
15 seconds. The queue drops its oldest Event where it is full.
"""

import asyncio
import logging
from collections import OrderedDict
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from vgpu.adapters.kubernetes import events
from vgpu.adapters.kubernetes.client import Client
from vgpu.errors import KubernetesError

QUEUE_SIZE: Final = 1_000
MAX_OBJECTS: Final = 10_000  # of which the last message is remembered
MIN_INTERVAL_S: Final = 15.0
COMPONENT: Final = "vgpu-extender"

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class _Recorded:
    message: str
    at: float


class EventRecorder:
    """Takes messages at any rate, and posts the new ones. `clock` is monotonic, `now` the wall clock."""

    def __init__(self, client: Client, clock: Callable[[], float], now: Callable[[], datetime]) -> None:
        self._client = client
        self._clock = clock
        self._now = now
        self._last: OrderedDict[str, _Recorded] = OrderedDict()
        self._queue: asyncio.Queue[tuple[Mapping[str, str], str, str]] = asyncio.Queue(QUEUE_SIZE)

    def record(self, about: Mapping[str, str], reason: str, message: str) -> None:
        """Queue an Event about an object (its reference), unless the rules above suppress it."""
        uid = about["uid"]
        last = self._last.get(uid)
        if last is not None and (last.message == message or self._clock() - last.at < MIN_INTERVAL_S):
            return
        self._last[uid] = _Recorded(message, self._clock())
        self._last.move_to_end(uid)
        if len(self._last) > MAX_OBJECTS:
            self._last.popitem(last=False)
        if self._queue.full():
            self._queue.get_nowait()
        self._queue.put_nowait((about, reason, message))

    async def run(self) -> None:
        """Post queued Events until cancelled; an Event that the API server refuses is logged and dropped."""
        while True:
            about, reason, message = await self._queue.get()
            try:
                await events.post(
                    self._client, about, reason=reason, message=message, component=COMPONENT, now=self._now()
                )
            except KubernetesError as error:
                log.warning("an Event about %s %s was dropped: %s", about["kind"], about["name"], error)
