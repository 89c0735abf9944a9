"""This node's cards, their faults, and what containers hold of them.

The streams to the kubelet and the status of the GPUNode wait here for changes.
"""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Final

from vgpu.adapters.nvml.records import Gpu
from vgpu.domain.cards.device import Node
from vgpu.domain.identifiers import NO_NODE, CardUuid
from vgpu.node.cards import device_ids

MIG: Final = "MIGEnabled"


@dataclass(frozen=True, slots=True)
class HeldDevices:
    """IDs that containers hold: listed by the kubelet, or recorded here where the kubelet does not list them yet."""

    slices: frozenset[str] = frozenset()
    cards: frozenset[str] = frozenset()

    def slices_of(self, gpu: CardUuid) -> int:
        """Return how many slices of a card are held."""
        return sum(device_ids.gpu_of(slice_id) == gpu for slice_id in self.slices)


NOTHING_HELD: Final = HeldDevices()


@dataclass(frozen=True, slots=True)
class InventoryState:
    """Everything that is known of the cards.

    Attributes:
        gpus: every card that has been seen since the start and was not replaced, by index.
        faults: why a card is unhealthy, by UUID.
        held: IDs that containers hold.
        cores: percent of each card's time that is guaranteed to containers, by UUID.
        named: the cards that the spec of the GPUNode names.
        cordoned: those that it cordons, each with the time since when, as RFC 3339.
        is_supervised: whether the supervisor of MPS daemons runs, for groups in space.
    """

    gpus: tuple[Gpu, ...] = ()
    faults: Mapping[CardUuid, str] = field(default_factory=dict)
    held: HeldDevices = NOTHING_HELD
    cores: Mapping[str, int] = field(default_factory=dict)
    named: frozenset[CardUuid] = frozenset()
    cordoned: Mapping[CardUuid, str] = field(default_factory=dict)
    is_supervised: bool = False

    @property
    def unknown(self) -> list[str]:
        """The cards that the spec names and the node does not have."""
        return sorted(self.named - {gpu.card.uuid for gpu in self.gpus})


class Inventory:
    """The state of this node's cards."""

    def __init__(self, slice_mib: int) -> None:
        self.slice_mib = slice_mib
        self.state = InventoryState()
        self._changed = asyncio.Event()

    def set_gpus(self, gpus: tuple[Gpu, ...], faults: Mapping[CardUuid, str]) -> None:
        """Take NVML's cards and their faults.

        A card that no longer answers stays, with its last data, until another card has its index: then it was replaced.
        """
        taken = {gpu.card.index for gpu in gpus}
        kept = {gpu.card.uuid: gpu for gpu in self.state.gpus if gpu.card.index not in taken}
        known = kept | {gpu.card.uuid: gpu for gpu in gpus}
        ordered = tuple(sorted(known.values(), key=lambda gpu: gpu.card.index))
        found = {gpu: fault for gpu, fault in faults.items() if gpu in known}
        reasons = {gpu.card.uuid: MIG for gpu in ordered if gpu.mig_enabled} | found
        self._update(replace(self.state, gpus=ordered, faults=reasons))

    def set_held(self, held: HeldDevices) -> None:
        """Take the IDs that containers hold now."""
        self._update(replace(self.state, held=held))

    def set_cores(self, cores: Mapping[str, int]) -> None:
        """Take the percent of each card's time that is guaranteed to containers."""
        self._update(replace(self.state, cores=cores))

    def set_spec(self, named: frozenset[CardUuid], cordoned: Mapping[CardUuid, str]) -> None:
        """Take the cards that the spec of the GPUNode names, and since when it cordons those that it cordons."""
        self._update(replace(self.state, named=named, cordoned=cordoned))

    def set_supervised(self, is_supervised: bool) -> None:
        """Take whether the supervisor of MPS daemons runs."""
        self._update(replace(self.state, is_supervised=is_supervised))

    def node(self) -> Node:
        """Return the cards as the domain's node; its name does not matter here and is empty."""
        return Node(NO_NODE, self.slice_mib, tuple(gpu.card for gpu in self.state.gpus))

    def gpus(self) -> tuple[Gpu, ...]:
        """Return the cards, by index."""
        return self.state.gpus

    async def wait(self, seen: InventoryState | None = None) -> None:
        """Return at the next change; at once where the state is no longer `seen`.

        A coroutine that is started as a task begins later, so a task must say which state its creator has seen.
        """
        if seen is None or seen is self.state:
            await self._changed.wait()

    def _update(self, state: InventoryState) -> None:
        if state == self.state:
            return
        self.state = state
        self._changed.set()
        self._changed = asyncio.Event()
