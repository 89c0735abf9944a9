"""The node's heartbeat: a Lease that is renewed while pods bound to the node will get their devices.

The kubelet publishes allocatable only at its status period, 10 s by default, so the extender reads this Lease. It is
renewed while the kubelet has a stream for every resource, and released as soon as it has not. A Lease is renewed every
second in clusters of up to 500 GPU nodes, and less often in larger ones, so that all nodes together write at most 500
Leases per second (ADR 27).
"""

import asyncio
import logging
import math
from collections.abc import Callable
from contextlib import suppress
from typing import Final, Protocol

from vgpu.domain.errors import KubernetesError

MAX_WRITES: Final = 500  # Leases per second, over all nodes
SHORTEST_S: Final = 1.0
LONGEST_S: Final = 10.0
_PERIODS: Final = 3  # of a Lease's duration: two renewals may fail
_RETRY_S: Final = 0.25
_RELEASE_S: Final = 3.0

log = logging.getLogger(__name__)


class LeaseWriter(Protocol):
    """The node's Lease at the API server."""

    async def renew(self, duration_s: int) -> None:
        """Renew the Lease for `duration_s`. Raises KubernetesError."""

    async def release(self) -> None:
        """Release the Lease. Raises KubernetesError."""


def period_s(nodes: int) -> float:
    """Return the seconds between two renewals in a cluster of so many GPU nodes."""
    return min(LONGEST_S, max(SHORTEST_S, nodes / MAX_WRITES))


def duration_s(period: float) -> int:
    """Return the seconds after which a Lease that is renewed in this period expires."""
    return math.ceil(_PERIODS * period)


class Heartbeat:
    """Renews or releases the Lease, depending on whether the node is registered with the kubelet.

    `nodes` is the number of GPU nodes of the cluster; `on_change` is called when the node is registered or no longer.
    Both may be set at any time. `wake` is to be called when `is_registered` may have changed.
    """

    def __init__(self, lease: LeaseWriter, is_registered: Callable[[], bool], clock: Callable[[], float]) -> None:
        """`clock` is monotonic, in seconds."""
        self.nodes = 1
        self.on_change: Callable[[], None] = lambda: None
        self._lease = lease
        self._is_registered = is_registered
        self._clock = clock
        self._wanted: bool | None = None
        self._is_written = False
        self._due = 0.0
        self._woken = asyncio.Event()

    def wake(self) -> None:
        """Step at once."""
        self._woken.set()

    async def run(self) -> None:
        """Step when a write is due and when woken, until cancelled."""
        while True:
            self._woken.clear()
            await self.step()
            with suppress(TimeoutError):
                async with asyncio.timeout(self._pause_s()):
                    await self._woken.wait()

    def _pause_s(self) -> float | None:
        return max(0.0, self._due - self._clock()) if self._is_repeated else None

    @property
    def _is_repeated(self) -> bool:
        """Whether the last write is repeated: a renewal always, a release until it has succeeded."""
        return bool(self._wanted) or not self._is_written

    async def step(self) -> None:
        """Renew or release the Lease where that is due; a failed request is repeated after 250 ms."""
        present, now = self._is_registered(), self._clock()
        is_changed = present != self._wanted
        if is_changed or (now >= self._due and self._is_repeated):
            self._wanted, self._due = present, now + period_s(self.nodes)
            await self._write(present=present)
        if is_changed:
            self.on_change()

    async def stop(self) -> None:
        """Release the Lease for good, after `run` was cancelled; failed requests are repeated for three seconds.

        After that the Lease expires by itself.
        """
        with suppress(TimeoutError):
            async with asyncio.timeout(_RELEASE_S):
                await self._write(present=False)
                while not self._is_written:
                    await asyncio.sleep(_RETRY_S)
                    await self._write(present=False)

    async def _write(self, *, present: bool) -> None:
        try:
            await (self._lease.renew(duration_s(period_s(self.nodes))) if present else self._lease.release())
        except KubernetesError as error:
            log.warning("lease: %s", error)
            self._due = self._clock() + _RETRY_S
            self._is_written = False
        else:
            self._is_written = True
