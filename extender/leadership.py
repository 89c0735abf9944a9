"""Which replica may bind: only the holder of one Lease.

A new holder waits for the time in which the old one's Bindings may still be in flight (kube-scheduler's httpTimeout),
lists the pods again, and only then binds. No wait is needed after a Lease that was released on a graceful stop, or that
nobody held before. A holder that cannot renew the Lease stops binding when its duration is over by the holder's own
clock, counted from before the last renewal.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from datetime import datetime
from typing import Final, Protocol

from extender.leases import Leases
from vgpu.adapters.kubernetes import lease
from vgpu.adapters.kubernetes.client import Client
from vgpu.errors import KubernetesError

LEASE: Final = "vgpu-extender"
DURATION_S: Final = 10
RENEW_S: Final = 2.0

log = logging.getLogger(__name__)


class Pods(Protocol):
    """The watch of the pods."""

    async def relist(self) -> None:
        """List again, and return when the cluster's state has the list."""


class Leadership:
    """Holds the Lease as long as it runs. `clock` is monotonic in seconds, `now` the wall clock."""

    def __init__(
        self,
        client: Client,
        leases: Leases,
        pods: Pods,
        *,
        namespace: str,
        identity: str,
        handover_s: float,
        clock: Callable[[], float],
        now: Callable[[], datetime],
        may_lead: Callable[[], bool] = lambda: True,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        """`identity` names this replica; `handover_s` is how long a new holder waits for the old one's Bindings.

        `may_lead` says whether this replica may take a Lease that it does not hold.
        """
        self._client = client
        self._leases = leases
        self._pods = pods
        self._namespace = namespace
        self._identity = identity
        self._handover_s = handover_s
        self._clock = clock
        self._now = now
        self._may_lead = may_lead
        self._sleep = sleep
        self._held_until = float("-inf")
        self._may_bind = False
        self._handover: asyncio.Task[None] | None = None

    def refusal(self) -> str:
        """Return why this replica must not bind now; empty where it may."""
        if not self._holds():
            return f"NotLeader: replica {self._identity} does not hold Lease {self._namespace}/{LEASE}"
        return "" if self._may_bind else "LeaderHandover: waiting for the last leader's Bindings in flight"

    async def run(self) -> None:
        """Take the Lease when it is free and renew it, until cancelled. The Leases' watch must be synced before."""
        while True:
            if self._may_lead() or self._holds():
                await self._renew()
            await self._sleep(RENEW_S)

    async def resign(self) -> None:
        """Stop binding and release the Lease, so that the next holder need not wait.

        Call it when no Binding is in flight.
        """
        self._held_until = float("-inf")
        if self._handover is not None:
            self._handover.cancel()
        try:
            await lease.release(self._client, self._namespace, LEASE, self._identity, self._now())
        except KubernetesError as error:
            log.warning("the Lease could not be released: %s", error)

    def _holds(self) -> bool:
        return self._clock() < self._held_until

    async def _renew(self) -> None:
        before = self._clock()
        watched = self._leases.get(LEASE)
        previous = watched.holder if watched else ""
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
        """Return whether the watch has shown the very record just read, unchanged, for its duration."""
        watched = self._leases.get(LEASE)
        if watched is None or watched.holder != read.holder:
            return False
        is_same = bool(watched.renewed) and datetime.fromisoformat(watched.renewed) == read.renewed
        return is_same and not self._leases.is_fresh(LEASE)

    def _become_leader(self, previous: str) -> None:
        log.info("leading as %s after %s", self._identity, previous or "nobody")
        self._may_bind = not previous
        if previous:
            self._handover = asyncio.create_task(self._take_over())

    async def _take_over(self) -> None:
        await self._sleep(self._handover_s)
        await self._pods.relist()
        self._may_bind = True
