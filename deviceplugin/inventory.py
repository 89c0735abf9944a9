"""What this node's cards are, how they are and who holds them; and who waits to hear of a change.

Each ListAndWatch stream waits for the next list of its devices, the status for any change.
"""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Final

from deviceplugin import devices
from deviceplugin.devices import NOTHING_HELD, Device, Held
from vgpu import names
from vgpu.adapters.nvml import Gpu

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
        self._changed = asyncio.Event()

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

    def _update(self, state: State) -> None:
        if state == self.state:
            return
        before, self.state = self.state, state
        if (before.gpus, before.ailments) != (state.gpus, state.ailments):  # holders come and go, the lists stay
            self._lists = {
                resource: devices.advertised(resource, state.gpus, self.slice_mib, state.ailments)
                for resource in names.KUBELET_RESOURCES
            }
        self._changed.set()
        self._changed = asyncio.Event()
