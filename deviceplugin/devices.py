"""Device IDs: `<gpu-uuid>::<n>` for a slice, the UUID for a whole card. The kubelet allows 63 characters."""

from collections import Counter
from collections.abc import Container, Iterable
from dataclasses import dataclass
from typing import Final

from vgpu import names
from vgpu.adapters.nvml import Gpu

_SEPARATOR: Final = "::"


@dataclass(frozen=True, slots=True)
class Device:
    """What ListAndWatch says of one ID."""

    id: str
    healthy: bool


@dataclass(frozen=True, slots=True)
class Held:
    """IDs that containers hold, by the kubelet's word or by ours where it has not yet spoken."""

    slices: frozenset[str] = frozenset()
    cards: frozenset[str] = frozenset()

    def slices_of(self, gpu: str) -> int:
        """How many slices of a card are held."""
        return sum(gpu_of(each) == gpu for each in self.slices)


NOTHING_HELD: Final = Held()


def slice_id(gpu: str, number: int) -> str:
    """Name one slice."""
    return f"{gpu}{_SEPARATOR}{number}"


def gpu_of(device: str) -> str:
    """The card that an ID of either kind stands on."""
    return device.partition(_SEPARATOR)[0]


def order(device: str) -> tuple[str, int]:
    """Sort IDs by card and number; foreign text sorts first within its card."""
    gpu, _, number = device.partition(_SEPARATOR)
    return gpu, int(number) if number.isascii() and number.isdigit() and len(number) < 10 else -1  # noqa: PLR2004


def by_gpu(ids: Iterable[str]) -> Counter[str]:
    """How many of the IDs stand on each card."""
    return Counter(map(gpu_of, ids))


def advertised(resource: str, gpus: Iterable[Gpu], slice_mib: int, sick: Container[str]) -> tuple[Device, ...]:
    """Everything to advertise of a resource, unhealthy where its card is ill.

    Who holds what is left out of it on purpose: docs/adr/0008.
    """
    if resource == names.CARD:
        return tuple(Device(gpu.card.uuid, gpu.card.uuid not in sick) for gpu in gpus)
    return tuple(
        Device(slice_id(gpu.card.uuid, number), gpu.card.uuid not in sick)
        for gpu in gpus
        for number in range(gpu.card.slices(slice_mib))
    )
