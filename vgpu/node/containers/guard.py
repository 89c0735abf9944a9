"""The node's last guard: no more may run on a card than the card has, whatever the annotations say. Pure.

Two extender replicas at a change of leader, a stale watch or a Binding written by hand may assign too much. A pod that
does not fit beside what is really on the node's cards is refused.
"""

from collections.abc import Iterable

from vgpu.adapters.nvml.records import Gpu
from vgpu.domain.cards.device import EXCLUSIVE_PROCESS
from vgpu.domain.cards.reasons import Reason
from vgpu.domain.cards.share import NO_USAGE, CardState, Usage
from vgpu.domain.grants import usage
from vgpu.domain.grants.usage import Usages
from vgpu.node.containers.refusal import ContainerRefusal, NodeReason
from vgpu.placement import fit


def check(gpus: Iterable[Gpu], slice_mib: int, tenants: Iterable[Usages], wanted: Usages) -> ContainerRefusal | None:
    """Return why a pod that takes `wanted` does not fit beside the tenants, or None where it does."""
    known = {gpu.card.uuid: gpu for gpu in gpus}
    taken = usage.total(tenants)
    for uuid, need in sorted(wanted.items()):
        gpu = known.get(uuid)
        if gpu is None:
            return ContainerRefusal(NodeReason.CARD_MISMATCH, f"this node has no card {uuid}")
        if gpu.mig_enabled:
            return ContainerRefusal(NodeReason.MIG_ENABLED, f"card {uuid} is divided by MIG")
        if gpu.card.exclusive_process and not need.wholes:
            return ContainerRefusal(Reason.CARD_EXCLUSIVE, f"card {uuid}: {EXCLUSIVE_PROCESS}")
        refusal = _card(CardState(gpu.card, slice_mib, taken.get(uuid, NO_USAGE)), need)
        if refusal is not None:
            return refusal
    return None


def _card(state: CardState, wanted: Usage) -> ContainerRefusal | None:
    reason = fit.usage_refusal(state, wanted)
    return (
        None if reason is None else ContainerRefusal(reason, f"card {state.card.uuid} {_detail(reason, state, wanted)}")
    )


def _detail(reason: Reason, state: CardState, wanted: Usage) -> str:
    if state.is_held_whole:
        return "is held whole by another pod"
    match reason:
        case Reason.CARD_IN_USE:
            return f"is shared by {state.usage.shares} containers"
        case Reason.CARD_INSUFFICIENT_CORES:
            return f"has {state.free_cores} % free of {wanted.cores}"
        case _:
            return f"has {state.free_mib} MiB free of {wanted.memory_mib}"
