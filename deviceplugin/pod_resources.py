"""When pod-resources may be listed, and what its last word was.

While an Allocate is in flight and another pod has just ended, a List makes the kubelet forget the IDs in flight and
hand them out twice (a Get does not; reproduced on 1.36). So lists go one at a time, and none between our answer to
GetPreferredAllocation and the moment when the kubelet has written down what Allocate gave: when Get shows it.
"""

import asyncio
import logging
import math
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Final, Protocol

from deviceplugin.candidates import Listing
from deviceplugin.kubelet.pod_resources_client import Holdings
from vgpu.errors import KubeletError
from vgpu.node.pods import PodKey

POLL_S: Final = 1.0
_SETTLE_S: Final = 0.25  # by then the kubelet has written down what Get does not show, as an init container's IDs
_ASK_S: Final = 0.05  # between two Gets: pod-resources answers 100 calls a second, of all its clients and all kinds
_STUCK_S: Final = 2.0  # an Allocate that has not followed by then is not coming
_QUIET_POLL_S: Final = 0.01

log = logging.getLogger(__name__)


class Source(Protocol):
    """Pod-resources, or a stand-in."""

    async def list(self) -> Listing:
        """Everything the kubelet lists."""

    async def get(self, key: PodKey) -> Holdings:
        """One pod's holdings."""


@dataclass(frozen=True, slots=True)
class _Written:
    """What the kubelet will write down: these IDs for some container of this pod."""

    key: PodKey
    ids: frozenset[str]


@dataclass(frozen=True, slots=True)
class Snapshot:
    """One listing. `started` is when it was asked for, by the loop's clock; `number` counts them from 1, 0 is none."""

    listing: Listing = field(default_factory=dict)
    started: float = -math.inf
    number: int = 0


class PodResources:
    """The last listing, kept fresh by `run` while no container is being admitted."""

    def __init__(self, source: Source, clock: Callable[[], float]) -> None:
        """`clock` gives seconds that never go back."""
        self._source = source
        self._clock = clock
        self._lock = asyncio.Lock()
        self._busy_until = 0.0
        self._awaited: _Written | None = None
        self._ask_at = 0.0
        self._poked = asyncio.Event()
        self._listed = asyncio.Condition()
        self.snapshot = Snapshot()

    @asynccontextmanager
    async def admitting(self) -> AsyncIterator[Callable[[], Awaitable[Listing]]]:
        """Hold the floor while GetPreferredAllocation is answered; other lists wait until Allocate is through.

        Gives the one way to list meanwhile.
        """
        async with self._lock:
            try:
                yield self._look
            finally:
                self._busy_until, self._awaited = self._clock() + _STUCK_S, None

    def allocated(self, key: PodKey | None, ids: frozenset[str]) -> None:
        """Say that Allocate has been answered with these IDs, for a container of this pod where it is known."""
        self._busy_until, self._ask_at = self._clock() + _SETTLE_S, self._clock() + _QUIET_POLL_S
        self._awaited = _Written(key, ids) if key else None

    def refresh_soon(self) -> None:
        """List soon: something has been released."""
        self._poked.set()

    async def fresh(self, timeout: float) -> Snapshot:
        """Return a listing that was asked for after this call, or the last one when the time is over."""
        now = self._clock()
        self.refresh_soon()
        try:
            async with asyncio.timeout(timeout), self._listed:
                await self._listed.wait_for(lambda: self.snapshot.started >= now)
        except TimeoutError:
            log.warning("the kubelet has not listed its pods for %.0f s", timeout)
        return self.snapshot

    async def get(self, key: PodKey) -> Holdings:
        """One pod's holdings, by Get: safe at any time. Raises KubeletError."""
        return await self._source.get(key)

    async def run(self, on_listed: Callable[[Snapshot], None]) -> None:
        """List each second, and at once when poked, for ever."""
        while True:
            self._poked.clear()
            try:
                await self._refresh()
                on_listed(self.snapshot)
            except KubeletError as error:
                log.debug("pod-resources: %s", error)
            try:
                async with asyncio.timeout(POLL_S):
                    await self._poked.wait()
            except TimeoutError:
                continue

    async def _refresh(self) -> None:
        while True:
            async with self._lock:
                if self._clock() >= self._busy_until or await self._is_written():
                    await self._look()
                    return
            await asyncio.sleep(_QUIET_POLL_S)

    async def _is_written(self) -> bool:
        """Whether the kubelet shows what it was given last."""
        awaited = self._awaited
        if awaited is None or self._clock() < self._ask_at:
            return False
        self._ask_at = self._clock() + _ASK_S
        try:
            containers = (await self._source.get(awaited.key)).values()
        except KubeletError:
            return False
        return awaited is self._awaited and any(awaited.ids in held.values() for held in containers)

    async def _look(self) -> Listing:
        started = self._clock()
        listing = await self._source.list()
        async with self._listed:
            self.snapshot = Snapshot(listing, started, self.snapshot.number + 1)
            self._listed.notify_all()
        return listing
