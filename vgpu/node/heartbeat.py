"""The node's Lease: it says each second that pods bound here will find their cards.

Allocatable reaches the API server only at the kubelet's status period, ten seconds by default; the extender reads this
Lease instead. It is renewed while the kubelet listens to every resource of ours, and given up as soon as it does not.
"""

import asyncio
import logging
from collections.abc import Callable
from typing import Final, Protocol

from vgpu.errors import KubernetesError

PERIOD_S: Final = 1.0
DURATION_S: Final = 3
_LOOK_S: Final = 0.05
_RETRY_S: Final = 0.25

log = logging.getLogger(__name__)


class Lease(Protocol):
    """The node's Lease at the API server, or a stand-in."""

    async def renew(self) -> None:
        """Say that we are here."""

    async def release(self) -> None:
        """Say that we are not."""


class Heartbeat:
    """Renews or gives up the Lease as the kubelet's attention comes and goes."""

    def __init__(self, lease: Lease, is_registered: Callable[[], bool], clock: Callable[[], float]) -> None:
        """`clock` gives seconds that never go back."""
        self._lease = lease
        self._is_registered = is_registered
        self._clock = clock
        self._wanted: bool | None = None
        self._is_written = False
        self._due = 0.0

    async def run(self) -> None:
        """Look for ever."""
        while True:
            await self.step()
            await asyncio.sleep(_LOOK_S)

    async def step(self) -> None:
        """Write what is due now, if anything is; a failed write is repeated soon."""
        present, now = self._is_registered(), self._clock()
        if present != self._wanted or (now >= self._due and (present or not self._is_written)):
            self._wanted, self._due = present, now + PERIOD_S
            await self._write(present=present)

    async def stop(self) -> None:
        """Give the Lease up for good."""
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
