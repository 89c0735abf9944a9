"""The node's last guard: what is really on its cards must fit them, whatever the annotations say. Pure questions.

Two extender replicas at a change of leader, a stale watch or a hand-made Binding may all decide too much. What does not
fit here is not run beside others.
"""

from collections.abc import Iterable, Mapping

from vgpu.adapters.nvml import Gpu
from vgpu.node.refusal import Mismatch, Refusal
from vgpu.reasons import Reason
from vgpu.share import NOTHING, CardState, Usage

Usages = Mapping[str, Usage]  # by the card's UUID


def check(gpus: Iterable[Gpu], slice_mib: int, tenants: Iterable[Usages], wanted: Usages) -> Refusal | None:
    """Whether one more pod fits beside the tenants; the first card where it does not tells why."""
    known = {gpu.card.uuid: gpu for gpu in gpus}
    taken = total(tenants)
    for uuid, usage in sorted(wanted.items()):
        gpu = known.get(uuid)
        if gpu is None:
            return Refusal(Mismatch.CARD_MISMATCH, f"this node has no card {uuid}")
        if gpu.mig_enabled:
            return Refusal(Mismatch.MIG_ENABLED, f"card {uuid} is divided by MIG")
        refusal = _card(CardState(gpu.card, slice_mib, taken.get(uuid, NOTHING)), usage)
        if refusal is not None:
            return refusal
    return None


def total(tenants: Iterable[Usages]) -> dict[str, Usage]:
    """Add up what tenants take, card by card."""
    taken: dict[str, Usage] = {}
    for tenant in tenants:
        for uuid, usage in tenant.items():
            taken[uuid] = taken.get(uuid, NOTHING) + usage
    return taken


def _card(state: CardState, wanted: Usage) -> Refusal | None:
    name = f"card {state.card.uuid}"
    if state.is_held_whole:
        return Refusal(Reason.CARD_HELD_WHOLE, f"{name} is held whole by another pod")
    if wanted.wholes and not state.is_empty:
        return Refusal(Reason.CARD_IN_USE, f"{name} is shared by {state.usage.shares} containers")
    if wanted.slices > state.free_slices or (not wanted.wholes and wanted.memory_mib > state.free_mib):
        asked, free = wanted.memory_mib, state.free_mib
        return Refusal(Reason.CARD_INSUFFICIENT_MEMORY, f"{name} has {free} MiB free of {asked}")
    if wanted.cores > state.free_cores:
        asked, free = wanted.cores, state.free_cores
        return Refusal(Reason.CARD_INSUFFICIENT_CORES, f"{name} has {free} % free of {asked}")
    return None
