"""Device IDs: `<gpu-uuid>::<n>` for a slice, the UUID for a whole card. The kubelet allows 63 characters."""

from collections import Counter
from collections.abc import Container, Iterable
from dataclasses import dataclass
from typing import Final

from adapters.nvml import Gpu
from vgpu import names

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


def closed(resource: str, sick: Iterable[str], held: Held) -> frozenset[str]:
    """Cards of which nothing of this resource is to be had: the ill, and those that are taken in the other way.

    Where a card is held both whole and in slices, which must not be, nothing is closed for it: an ID that somebody
    holds and that is marked unhealthy would hurt him at the kubelet's next start.
    """
    shared = frozenset(map(gpu_of, held.slices))
    return frozenset(sick) | (shared - held.cards if resource == names.CARD else held.cards - shared)


def advertised(resource: str, gpus: Iterable[Gpu], slice_mib: int, closed: Container[str]) -> tuple[Device, ...]:
    """Everything to advertise of a resource, unhealthy where its card is closed."""
    if resource == names.CARD:
        return tuple(Device(gpu.card.uuid, gpu.card.uuid not in closed) for gpu in gpus)
    return tuple(
        Device(slice_id(gpu.card.uuid, number), gpu.card.uuid not in closed)
        for gpu in gpus
        for number in range(gpu.card.slices(slice_mib))
    )
