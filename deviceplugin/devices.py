"""The device lists that ListAndWatch sends to the kubelet: derived from the cards and their health."""

from collections.abc import Container, Iterable

from deviceplugin.kubelet.messages import Device
from vgpu import names
from vgpu.adapters.nvml import Gpu
from vgpu.node import device_ids
from vgpu.node.inventory import Inventory, State


class DeviceLists:
    """The lists of both resources, computed again when a card or its health has changed."""

    def __init__(self, inventory: Inventory) -> None:
        self._inventory = inventory
        self._listed = inventory.state
        self._lists = self._derive(self._listed)

    def of(self, resource: str) -> tuple[Device, ...]:
        """Return the devices to advertise of a resource now."""
        state = self._inventory.state
        if (state.gpus, state.faults) != (self._listed.gpus, self._listed.faults):
            self._listed, self._lists = state, self._derive(state)
        return self._lists[resource]

    async def wait(self) -> None:
        """Return when the inventory has changed since the call."""
        await self._inventory.wait()

    def _derive(self, state: State) -> dict[str, tuple[Device, ...]]:
        return {
            resource: advertised(resource, state.gpus, self._inventory.slice_mib, state.faults)
            for resource in names.KUBELET_RESOURCES
        }


def advertised(resource: str, gpus: Iterable[Gpu], slice_mib: int, unhealthy: Container[str]) -> tuple[Device, ...]:
    """Return every device of a resource; a device is unhealthy where its card is in `unhealthy`.

    Devices that containers hold stay in the list as they are: docs/adr/0008.
    """
    if resource == names.CARD:
        return tuple(Device(gpu.card.uuid, gpu.card.uuid not in unhealthy) for gpu in gpus)
    return tuple(
        Device(device_ids.slice_id(gpu.card.uuid, number), gpu.card.uuid not in unhealthy)
        for gpu in gpus
        for number in range(gpu.card.slices(slice_mib))
    )
