"""Which replica may bind: only the holder of one Lease.

A new holder lists the pods again before it binds, because its watch may lag behind the last holder's Bindings. Where
the last holder did not release the Lease, one of its Bindings may still be carried out: then the new holder first waits
until the last of them has expired, counted from the end of the last holder's Lease, or of its process where that is
known to have ended, which frees the Lease at once. A holder that cannot renew the
Lease stops binding when the Lease's duration is over by the holder's own clock, counted from before the last renewal.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping
from datetime import datetime
from typing import Final, Protocol

from extender.lead.binding_outcome import REQUEST_EXPIRY_S
from extender.state.leases import Leases
from vgpu.adapters.kubernetes import lease
from vgpu.adapters.kubernetes.client import KubernetesClient
from vgpu.domain.errors import KubernetesError

LEASE: Final = "vgpu-extender"
NOT_LEADER: Final = "NotLeader"  # the word by which a replica that does not hold the Lease refuses
DURATION_S: Final = 10
RENEW_S: Final = 2.0
LOOK_S: Final = 0.5  # between two looks at a Lease that another replica holds, as the watch shows it

log = logging.getLogger(__name__)


class PodsSynced(Protocol):
    """The watch of the pods."""

    async def relist(self) -> None:
        """List again, and return when the cluster's state has the list."""


class Leadership:
    """Holds the Lease as long as it runs. `clock` is monotonic in seconds, `now` the wall clock."""

    def __init__(
        self,
        client: KubernetesClient,
        leases: Leases,
        pods: PodsSynced,
        *,
        namespace: str,
        identity: str,
        clock: Callable[[], float],
        now: Callable[[], datetime],
        predecessor: str = "",
        may_lead: Callable[[], bool] = lambda: True,
        annotations: Callable[[], Mapping[str, str]] = dict,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        """`identity` must be unique to this process: two holders of one name would both lead.

        `predecessor` is the identity of a process that is known to have ended (`predecessor.py`).
        `may_lead` says whether this replica may take a Lease that it does not hold.
        `annotations` returns those of the Lease as long as this replica holds it.
        """
        self._client = client
        self._leases = leases
        self._pods = pods
        self._namespace = namespace
        self._identity = identity
        self._clock = clock
        self._now = now
        self._predecessor = predecessor
        self._may_lead = may_lead
        self._annotations = annotations
        self._sleep = sleep
        self._held_until = float("-inf")
        self._transitions: int | None = None  # the Lease's count of holders when this replica last held it
        self._has_rival = False  # whether another holder has been seen since this replica last led
        self._may_bind = False
        self._handover: asyncio.Task[None] | None = None
        self._expired_at: float | None = None  # when the Lease had ended that the last attempt found expired
        self._renewing = asyncio.Lock()
        self._has_resigned = False

    def refusal(self) -> str:
        """Return why this replica must not bind now; empty where it may."""
        if not self._holds():
            return f"{NOT_LEADER}: replica {self._identity} does not hold Lease {self._namespace}/{LEASE}"
        return "" if self._may_bind else "LeaderHandover: waiting for the last leader's Bindings in flight"

    async def run(self) -> None:
        """Take the Lease when it is free and renew it, until cancelled. The Leases' watch must be synced before."""
        while True:
            self._note_rival(self._leases.holder(LEASE))
            if self._holds() or (self._may_lead() and self._is_free()):
                async with self._renewing:
                    if not self._has_resigned:
                        await self._renew()
            await self._sleep(RENEW_S if self._holds() else LOOK_S)

    async def resign(self) -> None:
        """Stop binding and release the Lease for good, so that the next holder need not wait.

        Call it when no Binding of this replica can be carried out any more; `run` may go on.
        """
        self._has_resigned = True
        async with self._renewing:
            self._lose()
            try:
                await lease.release(self._client, self._namespace, LEASE, self._identity, self._now())
            except KubernetesError as error:
                log.warning("the Lease could not be released: %s", error)

    def _holds(self) -> bool:
        return self._clock() < self._held_until

    async def _renew(self) -> None:
        before, self._expired_at = self._clock(), None
        found: list[lease.LeaseRecord] = []  # the record before this renewal; none where there was no Lease

        def is_expired(read: lease.LeaseRecord) -> bool:
            found.append(read)
            return self._is_expired(read)

        try:
            held = await lease.renew(
                self._client, self._namespace, LEASE, self._identity, DURATION_S, self._now(),
                is_expired=is_expired, annotations=self._annotations(),
            )  # fmt: skip
        except KubernetesError as error:
            log.warning("the Lease could not be renewed: %s", error)
            return
        previous = found[-1] if found else None
        if held is None:
            self._refused(previous)
            return
        self._held_until = before + DURATION_S
        if not self._is_own(previous):
            self._become_leader(previous)
        self._transitions = held.transitions

    def _refused(self, previous: lease.LeaseRecord | None) -> None:
        """Stop binding, unless the record is still our own and another client only wrote to it at the same moment."""
        if previous is None or previous.holder != self._identity:
            self._has_rival = True
            self._lose()

    def _is_free(self) -> bool:
        """Whether no process can hold the Lease, as far as the watch shows."""
        return not self._leases.is_fresh(LEASE) or self._has_ended(self._leases.holder(LEASE))

    def _has_ended(self, holder: str) -> bool:
        return bool(holder) and holder == self._predecessor

    def _is_own(self, previous: lease.LeaseRecord | None) -> bool:
        """Whether no other replica can have held the Lease since this one's last renewal."""
        found = (previous.holder, previous.transitions) if previous else None
        return found == (self._identity, self._transitions)

    def _note_rival(self, holder: str) -> None:
        self._has_rival = self._has_rival or holder not in {"", self._identity}

    def _lose(self) -> None:
        self._held_until = float("-inf")
        self._transitions = None
        self._may_bind = False
        if self._handover is not None:
            self._handover.cancel()

    def _is_expired(self, read: lease.LeaseRecord) -> bool:
        """Return whether the holder has ended, or the watch has shown the very record just read for its duration."""
        if self._has_ended(read.holder):
            return True
        watched = self._leases.get(LEASE)
        if watched is None or watched.holder != read.holder:
            return False
        is_same = bool(watched.renewed) and datetime.fromisoformat(watched.renewed) == read.renewed
        if not is_same or self._leases.is_fresh(LEASE):
            return False
        changed, duration_s = self._leases.term(LEASE)
        self._expired_at = changed + (duration_s or 0)
        return True

    def _become_leader(self, previous: lease.LeaseRecord | None) -> None:
        """Wait as long as a Binding of the last holder can be carried out, which is unless it released the Lease."""
        is_released = previous is not None and not previous.holder
        is_first = previous is None and not self._has_rival
        log.info("leading as %s after %s", self._identity, (previous and previous.holder) or "nobody")
        held_until = self._held_until
        self._lose()
        self._held_until, self._has_rival, self._may_bind = held_until, False, is_first
        if not is_first:
            self._handover = asyncio.create_task(self._take_over(0.0 if is_released else self._bindings_last_s()))

    def _bindings_last_s(self) -> float:
        """Return how long a Binding of the last holder can still be carried out.

        A holder sends none once its Lease has ended by its own clock, which is no later than by this replica's.
        """
        if self._expired_at is None:  # the holder has ended, or the Lease was deleted or taken without an answer
            return REQUEST_EXPIRY_S
        return max(0.0, self._expired_at + REQUEST_EXPIRY_S - self._clock())

    async def _take_over(self, wait_s: float) -> None:
        await self._sleep(wait_s)
        await self._pods.relist()
        self._may_bind = True
