"""What a card is: its GPUNode's fields, and what only its own node uses."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pynvml

from vgpu.adapters.nvml import texts
from vgpu.adapters.nvml.errors import UNANSWERABLE, ask
from vgpu.adapters.nvml.records import Gpu
from vgpu.domain.cards.device import Card
from vgpu.domain.formats import limits
from vgpu.domain.identifiers import CardUuid
from vgpu.domain.quantity import MIB


def handle_at(index: int) -> tuple[Any, CardUuid]:
    """Return a card's handle and UUID. Raises ValueError for a UUID that identifies no card."""
    handle = pynvml.nvmlDeviceGetHandleByIndex(index)
    uuid = CardUuid(str(pynvml.nvmlDeviceGetUUID(handle)))
    limits.uuid_bytes(uuid)
    return handle, uuid


def read(index: int, handle: Any) -> Gpu:
    """Read a card without its peers, which are asked for apart: the query for a pair may fail because of the other."""
    card = Card(
        uuid=CardUuid(str(pynvml.nvmlDeviceGetUUID(handle))),
        index=index,
        model=texts.model(handle),
        memory_mib=_usable_bytes(handle) // MIB,
        numa_node=_numa_node(handle),
        nvlink_peers=(),
    )
    mig = ask(lambda: pynvml.nvmlDeviceGetMigMode(handle)[0], pynvml.NVML_DEVICE_MIG_DISABLE)
    minor = ask(lambda: int(pynvml.nvmlDeviceGetMinorNumber(handle)), index)
    return Gpu(card, minor, mig_enabled=mig == pynvml.NVML_DEVICE_MIG_ENABLE)


def with_peers(gpu: Gpu, peers: tuple[CardUuid, ...]) -> Gpu:
    """Return the card with the UUIDs of those that NVLink joins to it."""
    return replace(gpu, card=replace(gpu.card, nvlink_peers=peers))


def _usable_bytes(handle: Any) -> int:
    """Return the total without what the driver reserves; drivers before 510 do not report the reserve."""
    try:
        memory = pynvml.nvmlDeviceGetMemoryInfo(handle, version=pynvml.nvmlMemory_v2)
    except pynvml.NVMLError as error:
        if error.value not in UNANSWERABLE:
            raise
        return int(pynvml.nvmlDeviceGetMemoryInfo(handle).total)
    return int(memory.total - memory.reserved)


def _numa_node(handle: Any) -> int:
    """Return the lowest NUMA node whose memory is near the card; -1 where it is not known."""
    near = ask(lambda: int(pynvml.nvmlDeviceGetMemoryAffinity(handle, 1, pynvml.NVML_AFFINITY_SCOPE_NODE)[0]), 0)
    return (near & -near).bit_length() - 1


def linked(index: int, handles: Mapping[int, tuple[Any, CardUuid]]) -> tuple[CardUuid, ...]:
    """Return the UUIDs of the cards that NVLink joins to one of them; `handles`: handle and UUID by index."""
    handle = handles[index][0]
    return tuple(
        uuid for other_index, (other, uuid) in handles.items() if other_index != index and _is_linked(handle, other)
    )


def _is_linked(handle: Any, other: Any) -> bool:
    link = pynvml.NVML_P2P_CAPS_INDEX_NVLINK
    return ask(lambda: bool(pynvml.nvmlDeviceGetP2PStatus(handle, other, link) == pynvml.NVML_P2P_STATUS_OK), False)
