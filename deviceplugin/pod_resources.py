"""The last listing of pod-resources, and the times at which a new one may be asked for.

While an Allocate is in flight and another pod has just ended, a List makes the kubelet forget the IDs in flight and
hand them out twice (a Get does not; reproduced on 1.36). So Lists are serialized, and none is sent between the answer
to GetPreferredAllocation and the moment when the kubelet has recorded what Allocate gave, which a Get shows.
"""

import asyncio
import logging
import math
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Final, Protocol

from deviceplugin.kubelet.messages import Holdings, Listing
from vgpu.domain.errors import KubeletError
from vgpu.node.containers.bound_pod import PodKey

LIST_PERIOD_S: Final = 1.0
_RECORDED_S: Final = 0.25  # by then the kubelet has recorded what Get does not show, such as an init container's IDs
_GET_PERIOD_S: Final = 0.05  # pod-resources answers 100 calls a second for all clients and calls together
_ALLOCATE_TIMEOUT_S: Final = 2.0  # later no Allocate follows a GetPreferredAllocation any more
_POLL_S: Final = 0.01

log = logging.getLogger(__name__)


class HoldingsClient(Protocol):
    """A client of the kubelet's pod-resources."""

    async def list(self) -> Listing:
        """Return everything that the kubelet lists. Raises KubeletError."""

    async def get(self, key: PodKey) -> Holdings:
        """Return what one pod holds. Raises KubeletError."""


@dataclass(frozen=True, slots=True)
class _InFlight:
    """What the kubelet will record: these IDs for a container of this pod."""

    key: PodKey
    ids: frozenset[str]


@dataclass(frozen=True, slots=True)
class PodResourcesListing:
    """A listing. `started` is when it was asked for, by the clock; `number` counts from 1, and 0 is no listing yet."""

    listing: Listing = field(default_factory=dict)
    started: float = -math.inf
    number: int = 0


class PodResources:
    """The last listing, renewed by `run` while no container is being admitted."""

    def __init__(self, client: HoldingsClient, clock: Callable[[], float]) -> None:
        """`clock` is monotonic, in seconds."""
        self._client = client
        self._clock = clock
        self._lock = asyncio.Lock()
        self._blocked_until = 0.0
        self._in_flight: _InFlight | None = None
        self._get_at = 0.0
        self._wanted = asyncio.Event()
        self._listed = asyncio.Condition()
        self.snapshot = PodResourcesListing()

    @asynccontextmanager
    async def admitting(self) -> AsyncIterator[Callable[[], Awaitable[Listing]]]:
        """Block other Lists while GetPreferredAllocation is answered, and until the Allocate after it is recorded.

        Yields the only function that may list meanwhile.
        """
        async with self._lock:
            try:
                yield self._list
            finally:
                self._blocked_until, self._in_flight = self._clock() + _ALLOCATE_TIMEOUT_S, None

    def allocated(self, key: PodKey | None, ids: frozenset[str]) -> None:
        """Note that Allocate was answered with these IDs; `key` is the container's pod, None where it is not known."""
        self._blocked_until, self._get_at = self._clock() + _RECORDED_S, self._clock() + _POLL_S
        self._in_flight = _InFlight(key, ids) if key else None

    def refresh_soon(self) -> None:
        """List as soon as that is allowed: a pod has released its devices."""
        self._wanted.set()

    async def fresh(self, timeout: float) -> PodResourcesListing:
        """Return a listing that was asked for after this call, or the last one after `timeout` seconds."""
        now = self._clock()
        self.refresh_soon()
        try:
            async with asyncio.timeout(timeout), self._listed:
                await self._listed.wait_for(lambda: self.snapshot.started >= now)
        except TimeoutError:
            log.warning("the kubelet has not listed its pods for %.0f s", timeout)
        return self.snapshot

    async def get(self, key: PodKey) -> Holdings:
        """Return what one pod holds, by Get, which is allowed at any time. Raises KubeletError."""
        return await self._client.get(key)

    async def run(self, on_listed: Callable[[], None]) -> None:
        """List each second, and as soon as allowed after `refresh_soon`, until cancelled."""
        while True:
            self._wanted.clear()
            try:
                await self._refresh()
                on_listed()
            except KubeletError as error:
                log.debug("pod-resources: %s", error)
            try:
                async with asyncio.timeout(LIST_PERIOD_S):
                    await self._wanted.wait()
            except TimeoutError:
                continue

    async def _refresh(self) -> None:
        while True:
            async with self._lock:
                if self._clock() >= self._blocked_until or await self._is_recorded():
                    await self._list()
                    return
            await asyncio.sleep(_POLL_S)

    async def _is_recorded(self) -> bool:
        """Return whether a Get shows the IDs in flight; asks at most every 50 ms."""
        in_flight = self._in_flight
        if in_flight is None or self._clock() < self._get_at:
            return False
        self._get_at = self._clock() + _GET_PERIOD_S
        try:
            containers = (await self._client.get(in_flight.key)).values()
        except KubeletError:
            return False
        return in_flight is self._in_flight and any(in_flight.ids in held.values() for held in containers)

    async def _list(self) -> Listing:
        started = self._clock()
        listing = await self._client.list()
        async with self._listed:
            self.snapshot = PodResourcesListing(listing, started, self.snapshot.number + 1)
            self._listed.notify_all()
        return listing
