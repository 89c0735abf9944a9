"""Cards that another device plugin of the node offers too, such as NVIDIA's. Pure.

The kubelet counts each resource by itself: it would give a card as `nvidia.com/gpu` to one pod, and shares of that card
to others. So the card is unhealthy for vgpushare while the other plugin offers it.
"""

import re
from collections.abc import Collection, Iterable, Mapping
from typing import Final

from vgpu.domain import names
from vgpu.domain.cards.device import Card
from vgpu.domain.identifiers import CardUuid

FAULT: Final = "OfferedByAnotherPlugin"
ADVICE: Final = (
    "pods that ask the other plugin get the card beside this pod, without limits; remove that plugin from the node, "
    "or vgpushare's"
)

_WHOLE_CARDS: Final = ("nvidia.com/gpu", "nvidia.com/gpu.shared")
_MIG: Final = "MIG-"  # a part of a card that MIG divides, of which vgpushare offers nothing
_INDEX: Final = re.compile(r"(?:nvidia)?(\d{1,4})(?:$|::|/)")  # NVIDIA's IDs by index, with replicas; GKE's

Offers = Mapping[str, Collection[str]]  # device IDs by resource


def faults(offers: Offers, cards: Iterable[Card]) -> dict[CardUuid, str]:
    """Return the fault of each card that is offered by another plugin, by UUID."""
    known = tuple(cards)
    theirs = [(resource, ids) for resource, ids in offers.items() if resource not in names.KUBELET_RESOURCES]
    found = {uuid for resource, ids in theirs for device_id in ids for uuid in _cards_of(resource, device_id, known)}
    return dict.fromkeys(sorted(found), FAULT)


def _cards_of(resource: str, device: str, cards: Collection[Card]) -> list[CardUuid]:
    """Return the cards that a device ID stands for; of NVIDIA's plugin, an ID that cannot be read stands for all."""
    named = [card.uuid for card in cards if card.uuid in device]
    if named or resource not in _WHOLE_CARDS or device.startswith((_MIG, "GPU-")):
        return named
    index = _INDEX.match(device)
    return [card.uuid for card in cards if index is None or card.index == int(index[1])]
