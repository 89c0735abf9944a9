"""What this node advertises, and who waits to hear of a change.

Whoever changes something calls `update`; each ListAndWatch stream waits for the next version of its list. A card's
release is published in GPUNode only after the kubelet has heard that its other kind of IDs is free again (`settled`):
else a pod could be bound to a card whose slices the kubelet still thinks unhealthy.
"""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Final

from adapters.nvml import Gpu
from deviceplugin import devices
from deviceplugin.devices import NOTHING_HELD, Device, Held
from vgpu import names

MIG: Final = "MIGEnabled"


@dataclass(frozen=True, slots=True)
class State:
    """Everything that decides what is advertised.

    Attributes:
        gpus: every card that has been seen since the start, by index.
        ailments: why a card is not handed out, by UUID.
        held: IDs that containers hold.
    """

    gpus: tuple[Gpu, ...] = ()
    ailments: Mapping[str, str] = field(default_factory=dict)
    held: Held = NOTHING_HELD


class Inventory:
    """The state of this node's cards, observed by the streams and the status."""

    def __init__(self, slice_mib: int) -> None:
        self.slice_mib = slice_mib
        self.state = State()
        self._lists: dict[str, tuple[Device, ...]] = dict.fromkeys(names.KUBELET_RESOURCES, ())
        self._told: dict[str, tuple[Device, ...]] = {}
        self._changed = asyncio.Event()
        self._telling = asyncio.Event()

    def set_gpus(self, gpus: tuple[Gpu, ...], ailments: Mapping[str, str]) -> None:
        """Take what NVML says. A card that no longer answers stays, with its last data and its ailment."""
        known = {gpu.card.uuid: gpu for gpu in self.state.gpus} | {gpu.card.uuid: gpu for gpu in gpus}
        ordered = tuple(sorted(known.values(), key=lambda gpu: gpu.card.index))
        reasons = {gpu.card.uuid: MIG for gpu in ordered if gpu.mig_enabled} | dict(ailments)
        self._update(replace(self.state, gpus=ordered, ailments=reasons))

    def set_held(self, held: Held) -> None:
        """Take what containers hold now."""
        self._update(replace(self.state, held=held))

    def gpus(self) -> tuple[Gpu, ...]:
        """The cards, by index."""
        return self.state.gpus

    def devices(self, resource: str) -> tuple[Device, ...]:
        """What to advertise of a resource now."""
        return self._lists[resource]

    async def wait(self) -> None:
        """Return when something has changed since the call."""
        await self._changed.wait()

    def told(self, resource: str, listed: tuple[Device, ...] | None) -> None:
        """Note what the kubelet has been sent last; None when its stream has ended."""
        if listed is None:
            self._told.pop(resource, None)
        else:
            self._told[resource] = listed
        self._telling.set()
        self._telling = asyncio.Event()

    async def settled(self, timeout: float) -> None:
        """Return when every listening stream has been sent the present list, or after so many seconds."""
        try:
            async with asyncio.timeout(timeout):
                while not self._is_settled():
                    await self._telling.wait()
        except TimeoutError:
            return

    def _is_settled(self) -> bool:
        return all(self._lists[resource] == listed for resource, listed in self._told.items())

    def _update(self, state: State) -> None:
        if state == self.state:
            return
        before, self.state = self.state, state
        for resource in names.KUBELET_RESOURCES:
            was, now = (devices.closed(resource, each.ailments, each.held) for each in (before, state))
            if was != now or before.gpus != state.gpus:  # else thousands of IDs would be made anew at each Allocate
                self._lists[resource] = devices.advertised(resource, state.gpus, self.slice_mib, now)
        self._changed.set()
        self._changed = asyncio.Event()
