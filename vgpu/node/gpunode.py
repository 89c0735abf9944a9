"""Publishes the status of the node's GPUNode: what NVML and the kubelet report of its cards."""

import asyncio
import logging
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import Any, Final, Protocol

from vgpu import summary
from vgpu.adapters.nvml import Gpu
from vgpu.device import Card
from vgpu.errors import KubernetesError
from vgpu.node.inventory import Inventory, State

_DEBOUNCE_S: Final = 0.1  # changes within this time are written together
_CONFLICTS_S: Final = 60.0
_RETRY_S: Final = 2.0

log = logging.getLogger(__name__)


class GpuNodeApi(Protocol):
    """The requests about GPUNodes."""

    async def publish(self, status: dict[str, Any]) -> None:
        """Write the status. Raises KubernetesError."""

    async def other_nodes(self) -> list[dict[str, Any]]:
        """Return every other GPUNode. Raises KubernetesError."""


def status_of(state: State, slice_mib: int, version: str, conflicts: Iterable[str]) -> dict[str, Any]:
    """Return the object's status."""
    return {
        "sliceMiB": slice_mib,
        "pluginVersion": version,
        "summary": summary.summary_of([_with_state(gpu.card, state) for gpu in state.gpus], slice_mib),
        "cards": [_card(gpu, state) for gpu in state.gpus],
        "conflicts": list(conflicts),
    }


def conflicts_of(gpus: Iterable[Gpu], others: Iterable[Mapping[str, Any]]) -> list[str]:
    """Return the cards that another GPUNode lists too: a card is in one machine only, so one of the two is stale."""
    mine = {gpu.card.uuid for gpu in gpus}
    return sorted(
        f"{card['uuid']} is also on node {node['metadata']['name']}"
        for node in others
        for card in (node.get("status") or {}).get("cards") or ()
        if card.get("uuid") in mine
    )


def _with_state(card: Card, state: State) -> Card:
    healthy = not state.faults.get(card.uuid)
    return replace(
        card, healthy=healthy, held_slices=state.held.slices_of(card.uuid), held_whole=card.uuid in state.held.cards
    )


def _card(gpu: Gpu, state: State) -> dict[str, Any]:
    card, reason = gpu.card, state.faults.get(gpu.card.uuid, "")
    return {
        "uuid": card.uuid,
        "index": card.index,
        "model": card.model,
        "memoryMiB": card.memory_mib,
        "numaNode": card.numa_node,
        "nvlinkPeers": list(card.nvlink_peers),
        "healthy": not reason,
        "reason": reason,
        "heldSlices": state.held.slices_of(card.uuid),
        "heldWhole": card.uuid in state.held.cards,
        "migEnabled": gpu.mig_enabled,
    }


class GpuNodePublisher:
    """Keeps the GPUNode's status up to date."""

    def __init__(self, publisher: GpuNodeApi, inventory: Inventory, version: str, clock: Callable[[], float]) -> None:
        """`clock` is monotonic, in seconds."""
        self._publisher = publisher
        self._inventory = inventory
        self._version = version
        self._clock = clock
        self._conflicts: list[str] = []
        self._conflicts_due = 0.0
        self._published: dict[str, Any] | None = None
        self._looked_at: State | None = None

    async def run(self) -> None:
        """Publish each change, and look for conflicts each minute, until cancelled."""
        while True:
            try:
                await self.refresh()
                await self._wait()
            except KubernetesError as error:
                log.warning("GPUNode: %s", error)
                self._published = None
                await asyncio.sleep(_RETRY_S)

    async def refresh(self) -> None:
        """Publish the status where it has changed. Raises KubernetesError."""
        await self._look_for_conflicts()
        state = self._looked_at = self._inventory.state
        status = status_of(state, self._inventory.slice_mib, self._version, self._conflicts)
        if status != self._published:
            await self._publisher.publish(status)
            self._published = status

    async def _wait(self) -> None:
        try:
            async with asyncio.timeout(max(0.0, self._conflicts_due - self._clock())):
                if self._looked_at is self._inventory.state:
                    await self._inventory.wait()
        except TimeoutError:
            return
        await asyncio.sleep(_DEBOUNCE_S)

    async def _look_for_conflicts(self) -> None:
        if self._clock() >= self._conflicts_due:
            self._conflicts_due = self._clock() + _CONFLICTS_S
            found = conflicts_of(self._inventory.gpus(), await self._publisher.other_nodes())
            for text in found:
                if text not in self._conflicts:
                    log.warning("conflict: %s", text)
            self._conflicts = found
