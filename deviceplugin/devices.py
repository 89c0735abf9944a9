"""The device lists that ListAndWatch sends to the kubelet: derived from the cards and their health."""

from collections.abc import Collection, Container, Iterable
from typing import Final

from deviceplugin.kubelet.messages import Device
from vgpu.adapters.nvml.records import Gpu
from vgpu.domain import names
from vgpu.domain.errors import UnusableSetting
from vgpu.domain.identifiers import CardUuid
from vgpu.domain.quantity import MIB
from vgpu.node.cards import device_ids
from vgpu.node.cards.inventory import Inventory, InventoryState

MAX_LIST_BYTES: Final = 4 * MIB  # the kubelet's limit of a gRPC message


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

    def _derive(self, state: InventoryState) -> dict[str, tuple[Device, ...]]:
        return {
            resource: advertised(resource, state.gpus, self._inventory.slice_mib, state.faults)
            for resource in names.KUBELET_RESOURCES
        }


def refuse_long_list(inventory: Inventory) -> None:
    """Raise UnusableSetting where the slices are so small that the kubelet refuses the message that lists them."""
    gpus, slice_mib = inventory.gpus(), inventory.slice_mib
    if list_bytes(gpus, slice_mib) > MAX_LIST_BYTES:
        raise UnusableSetting(
            f"--slice-mib {slice_mib} is too small for this node: the list of its slices takes "
            f"{list_bytes(gpus, slice_mib) / MIB:.1f} MiB, and the kubelet takes {MAX_LIST_BYTES // MIB} MiB at most. "
            f"Set it to {smallest_slice_mib(gpus, slice_mib)} at least, on extender, webhook and device plugins"
        )


def list_bytes(gpus: Iterable[Gpu], slice_mib: int) -> int:
    """Return the size of the message that lists every slice, in protobuf's encoding, with every device unhealthy."""
    return sum(_bytes_of_card(gpu.card.uuid, gpu.card.slices(slice_mib)) for gpu in gpus)


def smallest_slice_mib(gpus: Collection[Gpu], slice_mib: int) -> int:
    """Return the smallest size of a slice, from `slice_mib` on, with which the kubelet takes the list of slices."""
    while list_bytes(gpus, slice_mib) > MAX_LIST_BYTES:
        slice_mib += 1
    return slice_mib


def _bytes_of_card(uuid: CardUuid, slices: int) -> int:
    """Each device has three tags with lengths, its ID and its health; the numbers differ in their count of digits."""
    first = 6 + len(device_ids.slice_id(uuid, 0)) + len("Unhealthy")
    return slices * first + sum(max(0, slices - count) for count in (10, 100, 1000, 10_000, 100_000, 1_000_000))


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
