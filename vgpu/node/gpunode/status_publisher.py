"""Publishes the status of the node's GPUNode, and publishes it again when the object was deleted."""

import asyncio
import logging
from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Any, Final, Protocol

from vgpu.domain.errors import KubernetesError
from vgpu.domain.json_types import JsonObject
from vgpu.node.cards.inventory import Inventory, InventoryState
from vgpu.node.gpunode import gpunode_status as statuses
from vgpu.node.gpunode.gpunode_status import NodeCondition

_DEBOUNCE_S: Final = 0.1  # changes within this time are written together
_CONFLICTS_S: Final = 3600.0  # every node reads every GPUNode; the extender sees a duplicate card at once
_COUNT_S: Final = 300.0
_RETRY_S: Final = 2.0

log = logging.getLogger(__name__)


class GpuNodeApi(Protocol):
    """The requests about GPUNodes."""

    async def publish(self, status: JsonObject) -> None:
        """Write the status. Raises KubernetesError."""

    async def stored_status(self) -> JsonObject:
        """Return the status that the API server has; empty where there is none. Raises KubernetesError."""

    async def other_nodes(self) -> list[JsonObject]:
        """Return every other GPUNode. Raises KubernetesError."""

    async def count_nodes(self) -> int:
        """Return how many GPUNodes there are. Raises KubernetesError."""


class GpuNodeHandler(Protocol):
    """Another receiver of what the watch of the GPUNode shows."""

    def replace(self, objects: list[Any], version: str) -> None:
        """Take all objects."""

    def upsert(self, obj: Any) -> None:
        """Take an object that is new or changed."""

    def delete(self, obj: Any) -> None:
        """Take an object's deletion."""


class GpuNodePublisher:
    """Keeps the GPUNode's status up to date. It is also the handler of the watch of this one object."""

    def __init__(
        self,
        publisher: GpuNodeApi,
        inventory: Inventory,
        version: str,
        *,
        refusals: Callable[[], Sequence[JsonObject]],
        usage: Callable[[], Sequence[JsonObject]],
        card_use: Callable[[], Sequence[JsonObject]] = list,
        conditions: Callable[[], Sequence[NodeCondition]],
        is_registered: Callable[[], bool],
        clock: Callable[[], float],
        now: Callable[[], datetime],
        beside: GpuNodeHandler | None = None,
        on_count: Callable[[int], None] = lambda _: None,
    ) -> None:
        """`clock` is monotonic, in seconds, `now` the wall clock.

        `refusals` returns the pods to report, `usage` what containers have used, `card_use` what
        was measured of the cards, `conditions` those conditions that
        the inventory does not tell. `beside` also receives what the watch shows. `on_count` is called every five
        minutes with the number of GPUNodes.
        """
        self._publisher = publisher
        self._inventory = inventory
        self._version = version
        self._refusals = refusals
        self._usage = usage
        self._card_use = card_use
        self._conditions = conditions
        self._is_registered = is_registered
        self._clock = clock
        self._now = now
        self._beside = beside
        self._on_count = on_count
        self._count_due = 0.0
        self._conflicts: list[str] = []
        self._conflicts_due = 0.0
        self._published: JsonObject | None = None
        self._last: JsonObject | None = None  # stored or published: what has not changed keeps its times
        self._looked_at: InventoryState | None = None
        self._woken = asyncio.Event()

    async def run(self) -> None:
        """Publish each change, count the nodes and look for conflicts from time to time, until cancelled."""
        while True:
            try:
                await self.refresh()
                await self._wait()
            except KubernetesError as error:
                log.warning("GPUNode: %s", error)
                self._published = None
                await asyncio.sleep(_RETRY_S)

    def wake(self) -> None:
        """Compare the status with what was published, soon."""
        self._woken.set()

    def replace(self, objects: list[Any], version: str) -> None:
        """Take a full list of the watch: this GPUNode, or nothing."""
        if not objects:
            self._is_gone()
        if self._beside is not None:
            self._beside.replace(objects, version)

    def upsert(self, obj: Any) -> None:
        """Take the GPUNode, new or changed."""
        if self._beside is not None:
            self._beside.upsert(obj)

    def delete(self, obj: Any) -> None:
        """Take the GPUNode's deletion."""
        self._is_gone()
        if self._beside is not None:
            self._beside.delete(obj)

    async def refresh(self) -> None:
        """Publish the status where it has changed. Raises KubernetesError."""
        self._woken.clear()
        await self._look_for_conflicts()
        await self._count_nodes()
        if self._last is None:
            self._last = await self._publisher.stored_status()
        state = self._looked_at = self._inventory.state
        status = self._status(state, self._last)
        if status != self._published:
            before, self._published = self._published, status
            try:
                await self._publisher.publish(status)
            except BaseException:
                self._published = before
                raise
            self._last = status

    def _status(self, state: InventoryState, before: JsonObject) -> JsonObject:
        is_registered = self._is_registered()
        status = statuses.status_of(
            state,
            self._inventory.slice_mib,
            self._version,
            self._conflicts,
            self._refusals(),
            self._usage(),
            self._card_use(),
            is_registered=is_registered,
        )
        conditions = statuses.conditions_of(state, self._conflicts, is_registered=is_registered)
        conditions = (*conditions, *self._conditions())
        now = self._now()
        return status | {
            "cards": statuses.with_times(status["cards"], before, now),
            "conditions": statuses.stamped(conditions, before.get("conditions") or (), now),
        }

    def _is_gone(self) -> None:
        if self._published is not None:
            log.warning("the GPUNode was deleted; it is created again")
            self._published = None
        self.wake()

    async def _wait(self) -> None:
        """Return at the next change, or when the next look for conflicts is due."""
        changes = [asyncio.create_task(self._inventory.wait(self._looked_at)), asyncio.create_task(self._woken.wait())]
        try:
            due = max(0.0, min(self._conflicts_due, self._count_due) - self._clock())
            await asyncio.wait(changes, timeout=due, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for change in changes:
                change.cancel()
        await asyncio.sleep(_DEBOUNCE_S)

    async def _count_nodes(self) -> None:
        if self._clock() >= self._count_due:
            self._count_due = self._clock() + _COUNT_S
            self._on_count(await self._publisher.count_nodes())

    async def _look_for_conflicts(self) -> None:
        if self._clock() >= self._conflicts_due:
            self._conflicts_due = self._clock() + _CONFLICTS_S
            found = statuses.conflicts_of(self._inventory.gpus(), await self._publisher.other_nodes())
            for text in found:
                if text not in self._conflicts:
                    log.warning("conflict: %s", text)
            self._conflicts = found
