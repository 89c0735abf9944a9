"""Who may bind: of several replicas, only the holder of one Lease.

A new holder waits out what the old one may still have on its way (kube-scheduler's httpTimeout), then lists the pods
again, and only then binds. A Lease that was given back on a graceful stop, or never held, needs no wait. A holder that
cannot renew stops binding when the Lease's duration is over by its own clock, counted from before its last renewal.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from datetime import datetime
from typing import Final, Protocol

from extender.cluster import Cluster
from vgpu.adapters.kubernetes import lease
from vgpu.adapters.kubernetes.client import Client
from vgpu.errors import KubernetesError

LEASE: Final = "vgpu-extender"
DURATION_S: Final = 10
RENEW_S: Final = 2.0

log = logging.getLogger(__name__)


class Pods(Protocol):
    """The pods' watch."""

    async def relist(self) -> None:
        """List again, and return when the picture has it."""


class Leadership:
    """Holds the Lease as long as it runs. `clock` is monotonic in seconds, `now` the wall clock."""

    def __init__(
        self,
        client: Client,
        cluster: Cluster,
        pods: Pods,
        *,
        namespace: str,
        identity: str,
        settle_s: float,
        now: Callable[[], datetime],
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._client = client
        self._cluster = cluster
        self._pods = pods
        self._namespace = namespace
        self._identity = identity
        self._settle_s = settle_s
        self._now = now
        self._sleep = sleep
        self._held_until = float("-inf")
        self._settled = False
        self._settling: asyncio.Task[None] | None = None

    def refusal(self) -> str:
        """Why this replica must not bind now; empty where it may."""
        if not self._holds():
            return f"NotLeader: replica {self._identity} does not hold Lease {self._namespace}/{LEASE}"
        return "" if self._settled else "LeaderSettling: waiting out the last leader's calls"

    async def run(self) -> None:
        """Take the Lease when it is free and renew it, until cancelled. The Leases' watch must be synced before."""
        while True:
            await self._renew()
            await self._sleep(RENEW_S)

    async def resign(self) -> None:
        """Stop binding and give the Lease back, so that the next holder need not wait.

        To be called when no Binding is on its way.
        """
        self._held_until = float("-inf")
        if self._settling is not None:
            self._settling.cancel()
        try:
            await lease.release(self._client, self._namespace, LEASE, self._identity, self._now())
        except KubernetesError as error:
            log.warning("the Lease could not be given back: %s", error)

    def _holds(self) -> bool:
        return self._cluster.clock() < self._held_until

    async def _renew(self) -> None:
        before = self._cluster.clock()
        watched = self._cluster.leases.get(LEASE)
        previous = watched[0].holder if watched else ""
        try:
            held = await lease.renew(
                self._client, self._namespace, LEASE, self._identity, DURATION_S, self._now(),
                is_expired=self._is_expired,
            )  # fmt: skip
        except KubernetesError as error:
            log.warning("the Lease could not be renewed: %s", error)
            return
        if held is None:
            self._held_until = float("-inf")
            return
        held_before, self._held_until = self._holds(), before + DURATION_S
        if not held_before:
            self._become_leader(previous)

    def _is_expired(self, read: lease.Record) -> bool:
        """Another's Lease is over when the watch has shown the very record just read, unchanged, for its duration."""
        watched = self._cluster.leases.get(LEASE)
        if watched is None or watched[0].holder != read.holder:
            return False
        is_same = bool(watched[0].renewed) and datetime.fromisoformat(watched[0].renewed) == read.renewed
        return is_same and not self._cluster.is_held(LEASE)

    def _become_leader(self, previous: str) -> None:
        log.info("leading as %s after %s", self._identity, previous or "nobody")
        self._settled = not previous
        if not self._settled:
            self._settling = asyncio.create_task(self._settle())

    async def _settle(self) -> None:
        await self._sleep(self._settle_s)
        await self._pods.relist()
        self._settled = True
