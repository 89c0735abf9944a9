"""Whether the kube-scheduler beside this extender leads.

kube-scheduler asks the extender of its own pod, so the extender beside the leading kube-scheduler must be the one that
may bind. kube-scheduler's Lease names its holder `HOST_UUID`, and both containers of a pod have one host name. So an
extender takes its own Lease only while that host holds kube-scheduler's Lease, and ends when another host does, as
kube-scheduler itself ends: the next process starts as a follower.
"""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Final

from extender.state.leases import Leases
from vgpu.domain.errors import VgpuError

CHECK_S: Final = 0.5


class SchedulerMoved(VgpuError):
    """The kube-scheduler of another replica leads now."""


class SchedulerLease:
    """Reads kube-scheduler's Lease; with an empty name, the scheduler beside this extender always leads."""

    def __init__(
        self, leases: Leases, name: str, host: str, sleep: Callable[[float], Awaitable[None]] = asyncio.sleep
    ) -> None:
        self._leases = leases
        self._name = name
        self._host = host
        self._sleep = sleep

    def is_beside_leader(self) -> bool:
        """Whether this extender's scheduler leads."""
        return not self._name or self._holder_host() == self._host

    async def end_when_moved(self, may_bind: Callable[[], bool]) -> None:
        """Raise SchedulerMoved when another host's scheduler leads while this replica may bind; run until cancelled."""
        while True:
            if may_bind() and not self.is_beside_leader() and self._holder_host():
                raise SchedulerMoved(f"the kube-scheduler on {self._holder_host()} leads now")
            await self._sleep(CHECK_S)

    def _holder_host(self) -> str:
        lease = self._leases.get(self._name)
        return lease.holder.rpartition("_")[0] if lease else ""
