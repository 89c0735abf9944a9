"""A card in `status.cards` of a GPUNode, as a device plugin writes it."""

from typing import Any

from vgpu.device import Card


def card_status(card: Card, *, mig_enabled: bool) -> dict[str, Any]:
    """Return the JSON of a card; `mig_enabled` says whether NVML reports the card as divided by MIG."""
    return {
        "uuid": card.uuid,
        "index": card.index,
        "model": card.model,
        "memoryMiB": card.memory_mib,
        "numaNode": card.numa_node,
        "nvlinkPeers": list(card.nvlink_peers),
        "healthy": card.healthy,
        "reason": card.reason,
        "heldSlices": card.held_slices,
        "heldWhole": card.held_whole,
        "migEnabled": mig_enabled,
    }
