"""Device IDs: `<gpu-uuid>::<n>` for a slice, the UUID for a whole card. The kubelet allows 63 characters."""

from collections import Counter
from collections.abc import Iterable
from typing import Final

from vgpu.domain.identifiers import CardUuid

_SEPARATOR: Final = "::"


def slice_id(gpu: CardUuid, number: int) -> str:
    """Return the ID of one slice of a card."""
    return f"{gpu}{_SEPARATOR}{number}"


def gpu_of(device: str) -> CardUuid:
    """Return the UUID of the card that an ID of either kind belongs to."""
    return CardUuid(device.partition(_SEPARATOR)[0])


def order(device: str) -> tuple[str, int]:
    """Return the sort key of an ID: its card, then its number; an ID of unknown form comes first on its card."""
    gpu, _, number = device.partition(_SEPARATOR)
    return gpu, int(number) if number.isascii() and number.isdigit() and len(number) < 10 else -1  # noqa: PLR2004


def by_gpu(ids: Iterable[str]) -> Counter[CardUuid]:
    """Count the IDs on each card."""
    return Counter(map(gpu_of, ids))
