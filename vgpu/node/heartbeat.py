"""The node's heartbeat: a Lease that is renewed each second while pods bound to the node will get their devices.

The kubelet publishes allocatable only at its status period, 10 s by default, so the extender reads this Lease. It is
renewed while the kubelet has a stream for every resource, and released as soon as it has not.
"""

import asyncio
import logging
from collections.abc import Callable
from typing import Final, Protocol

from vgpu.errors import KubernetesError

PERIOD_S: Final = 1.0
DURATION_S: Final = 3
_POLL_S: Final = 0.05
_RETRY_S: Final = 0.25

log = logging.getLogger(__name__)


class Lease(Protocol):
    """The node's Lease at the API server."""

    async def renew(self) -> None:
        """Renew the Lease. Raises KubernetesError."""

    async def release(self) -> None:
        """Release the Lease. Raises KubernetesError."""


class Heartbeat:
    """Renews or releases the Lease, depending on whether the node is registered with the kubelet."""

    def __init__(self, lease: Lease, is_registered: Callable[[], bool], clock: Callable[[], float]) -> None:
        """`clock` is monotonic, in seconds."""
        self._lease = lease
        self._is_registered = is_registered
        self._clock = clock
        self._wanted: bool | None = None
        self._is_written = False
        self._due = 0.0

    async def run(self) -> None:
        """Step every 50 ms until cancelled."""
        while True:
            await self.step()
            await asyncio.sleep(_POLL_S)

    async def step(self) -> None:
        """Renew or release the Lease where that is due; a failed request is repeated after 250 ms."""
        present, now = self._is_registered(), self._clock()
        if present != self._wanted or (now >= self._due and (present or not self._is_written)):
            self._wanted, self._due = present, now + PERIOD_S
            await self._write(present=present)

    async def stop(self) -> None:
        """Release the Lease for good."""
        await self._write(present=False)

    async def _write(self, *, present: bool) -> None:
        try:
            await (self._lease.renew() if present else self._lease.release())
        except KubernetesError as error:
            log.warning("lease: %s", error)
            self._due = self._clock() + _RETRY_S
            self._is_written = False
        else:
            self._is_written = True
