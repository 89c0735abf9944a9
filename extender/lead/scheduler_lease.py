"""Whether the kube-scheduler beside this extender leads.

kube-scheduler asks the extender beside it, so the extender beside the leading kube-scheduler must be the one that may
bind. kube-scheduler's Lease names its holder `HOST_UUID`. Both have one host name: as containers of a pod, or on the
network of a node. So an extender takes its own Lease only while that host holds kube-scheduler's Lease, and ends when
another host does, as kube-scheduler itself ends: the next process starts as a follower.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Final

from extender.state.leases import Leases
from vgpu.domain.errors import VgpuError
from vgpu.domain.identifiers import Namespace

CHECK_S: Final = 0.5
TOLD_AFTER: Final = 20  # checks in a row without a known leader: 10 s

log = logging.getLogger(__name__)


class SchedulerMoved(VgpuError):
    """The kube-scheduler of another replica leads now."""


def unknown_leader(leases: Leases, namespace: Namespace, name: str) -> str:
    """Return why it is not known which kube-scheduler leads; empty where it is, or where no Lease is followed.

    `leases` are those of the namespace; an empty `name` follows no Lease.
    """
    if not name or leases.holder(name):
        return ""
    return (
        f"Lease {namespace}/{name}, which says where the leading kube-scheduler is, cannot be read or names no holder: "
        "check --scheduler-lease, the right to watch this Lease, and that kube-scheduler has leader election"
    )


class SchedulerLease:
    """Reads kube-scheduler's Lease; with an empty name, the scheduler beside this extender always leads."""

    def __init__(
        self,
        leases: Leases,
        namespace: Namespace,
        name: str,
        host: str,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        """`leases` are those of the namespace; `host` is the name of this machine, which kube-scheduler has too."""
        self._leases = leases
        self._namespace = namespace
        self._name = name
        self._host = host
        self._sleep = sleep
        self._unknown = 0  # checks in a row

    def is_beside_leader(self) -> bool:
        """Whether this extender's scheduler leads."""
        return not self._name or self._holder_host() == self._host

    async def end_when_moved(self, may_bind: Callable[[], bool]) -> None:
        """Raise SchedulerMoved when another host's scheduler leads while this replica may bind; run until cancelled."""
        while True:
            if may_bind() and not self.is_beside_leader() and self._holder_host():
                raise SchedulerMoved(f"the kube-scheduler on {self._holder_host()} leads now")
            self._tell_unknown()
            await self._sleep(CHECK_S)

    def _tell_unknown(self) -> None:
        why = unknown_leader(self._leases, self._namespace, self._name)
        self._unknown = self._unknown + 1 if why else 0
        if self._unknown == TOLD_AFTER:
            log.error("no pod is bound: %s", why)

    def _holder_host(self) -> str:
        return self._leases.holder(self._name).rpartition("_")[0]
