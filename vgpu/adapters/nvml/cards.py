"""What a card is: its GPUNode's fields, and what only its own node uses."""

import os
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any, Final

import pynvml

from vgpu.adapters.nvml import texts
from vgpu.adapters.nvml.errors import UNANSWERABLE, ask
from vgpu.adapters.nvml.records import Gpu
from vgpu.domain.cards.device import Card
from vgpu.domain.formats import limits
from vgpu.domain.identifiers import CardUuid
from vgpu.domain.quantity import MIB

HOST_RESERVE_BYTES: Final = 4096 * MIB

# EXCLUSIVE_THREAD is what old drivers call EXCLUSIVE_PROCESS.
_VOLTA: Final = (7, 0)  # whose MPS servers isolate the memory of clients, and serve several users
_ONE_PROCESS: Final = (pynvml.NVML_COMPUTEMODE_EXCLUSIVE_PROCESS, pynvml.NVML_COMPUTEMODE_EXCLUSIVE_THREAD)


def handle_at(index: int) -> tuple[Any, CardUuid]:
    """Return a card's handle and UUID. Raises ValueError for a UUID that identifies no card."""
    handle = pynvml.nvmlDeviceGetHandleByIndex(index)
    uuid = CardUuid(str(pynvml.nvmlDeviceGetUUID(handle)))
    limits.uuid_bytes(uuid)
    return handle, uuid


def read(index: int, handle: Any) -> Gpu:
    """Read a card without its peers, which are asked for apart: the query for a pair may fail because of the other."""
    own_bytes = _usable_bytes(handle)
    card = Card(
        uuid=CardUuid(str(pynvml.nvmlDeviceGetUUID(handle))),
        index=index,
        model=texts.model(handle),
        memory_mib=(unified_bytes(_machine_bytes()) if own_bytes is None else own_bytes) // MIB,
        numa_node=_numa_node(handle),
        nvlink_peers=(),
        unified=own_bytes is None,
        exclusive_process=compute_mode(handle) in _ONE_PROCESS,
        serves_space=_compute_capability(handle) >= _VOLTA,
    )
    mig = ask(lambda: pynvml.nvmlDeviceGetMigMode(handle)[0], pynvml.NVML_DEVICE_MIG_DISABLE)
    minor = ask(lambda: int(pynvml.nvmlDeviceGetMinorNumber(handle)), index)
    return Gpu(card, minor, mig_enabled=mig == pynvml.NVML_DEVICE_MIG_ENABLE)


def with_peers(gpu: Gpu, peers: tuple[CardUuid, ...]) -> Gpu:
    """Return the card with the UUIDs of those that NVLink joins to it."""
    return replace(gpu, card=replace(gpu.card, nvlink_peers=peers))


def _compute_capability(handle: Any) -> tuple[int, int]:
    """Return the card's compute capability; 0.0 where it does not tell."""
    return ask(lambda: tuple(pynvml.nvmlDeviceGetCudaComputeCapability(handle)), (0, 0))


def compute_mode(handle: Any) -> int:
    """Return which processes may use the card (`nvmlComputeMode_t`); the default where the card does not tell."""
    return ask(lambda: int(pynvml.nvmlDeviceGetComputeMode(handle)), int(pynvml.NVML_COMPUTEMODE_DEFAULT))


def sharing_memory(gpus: Iterable[Gpu]) -> tuple[Gpu, ...]:
    """Return the cards with the machine's memory divided among those that have none of their own."""
    every = tuple(gpus)
    count = sum(gpu.card.unified for gpu in every)
    return tuple(
        replace(gpu, card=replace(gpu.card, memory_mib=gpu.card.memory_mib // count)) if gpu.card.unified else gpu
        for gpu in every
    )


def unified_bytes(machine_bytes: int) -> int:
    """Return how much of a machine's memory its cards may use that have none of their own.

    An eighth, but 4 GiB at least, is kept for the operating system and programs on the CPU; never more than half.
    """
    return machine_bytes - min(max(machine_bytes // 8, HOST_RESERVE_BYTES), machine_bytes // 2)


def _machine_bytes() -> int:
    return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")


def _usable_bytes(handle: Any) -> int | None:
    """Return the total without what the driver reserves; drivers before 510 do not report the reserve.

    None for a card without memory of its own, of which NVML says that the question is not supported.
    """
    try:
        memory = pynvml.nvmlDeviceGetMemoryInfo(handle, version=pynvml.nvmlMemory_v2)
    except pynvml.NVMLError as error:
        if error.value not in UNANSWERABLE:
            raise
        return total_bytes(handle)
    return int(memory.total - memory.reserved)


def total_bytes(handle: Any) -> int | None:
    """Return the card's memory with what the driver reserves; None for a card without memory of its own."""
    try:
        return int(pynvml.nvmlDeviceGetMemoryInfo(handle).total)
    except pynvml.NVMLError as error:
        if error.value == pynvml.NVML_ERROR_NOT_SUPPORTED:
            return None
        raise


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
