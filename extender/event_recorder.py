"""Tells owners why their pods wait, and what else is amiss: Events, written apart from the verbs, never in their way.

One Event per object and sentence, and no more than one per object in a while; a queue that is full drops the oldest.
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

QUEUE: Final = 1_000
REMEMBERED: Final = 10_000
QUIET_S: Final = 15.0
COMPONENT: Final = "vgpu-extender"

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class _Told:
    sentence: str
    at: float


class Teller:
    """Takes sentences at any rate, and posts the new ones. `clock` is monotonic, `now` the wall clock."""

    def __init__(self, client: Client, clock: Callable[[], float], now: Callable[[], datetime]) -> None:
        self._client = client
        self._clock = clock
        self._now = now
        self._told: OrderedDict[str, _Told] = OrderedDict()
        self._queue: asyncio.Queue[tuple[Mapping[str, str], str, str]] = asyncio.Queue(QUEUE)

    def tell(self, about: Mapping[str, str], reason: str, sentence: str) -> None:
        """Queue a sentence about an object (its reference), unless it, or something, was told of it just now."""
        uid = about["uid"]
        last = self._told.get(uid)
        if last is not None and (last.sentence == sentence or self._clock() - last.at < QUIET_S):
            return
        self._told[uid] = _Told(sentence, self._clock())
        self._told.move_to_end(uid)
        if len(self._told) > REMEMBERED:
            self._told.popitem(last=False)
        if self._queue.full():
            self._queue.get_nowait()
        self._queue.put_nowait((about, reason, sentence))

    async def run(self) -> None:
        """Post what is queued until cancelled."""
        while True:
            about, reason, sentence = await self._queue.get()
            try:
                await events.post(
                    self._client, about, reason=reason, message=sentence, component=COMPONENT, now=self._now()
                )
            except KubernetesError as error:
                log.warning("an Event about %s %s was lost: %s", about["kind"], about["name"], error)
