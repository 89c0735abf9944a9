"""Does a container fit a card, and does an assignment fit a node?"""

from vgpu import assignment as codec
from vgpu.assignment import Assignment
from vgpu.device import CardMode
from vgpu.policy import Selector
from vgpu.reasons import Reason
from vgpu.request import ContainerRequest, PodRequest
from vgpu.share import CardState, NodeState, Usage


def refusal(container: ContainerRequest, selector: Selector, need: Usage, state: CardState) -> Reason | None:
    """Return why a container cannot use a card, or None where it can.

    `need` is what the container takes of the card, `selector` which cards its pod accepts.
    """
    return (
        selector.refusal(state.card)
        or _card_refusal(container, state)
        or (_whole_refusal(state) if container.whole else _share_refusal(state, need))
    )


def carries(node: NodeState, assignment: Assignment, request: PodRequest) -> bool:
    """Whether a node can carry an assignment that was chosen earlier."""
    states = {state.card.uuid: state for state in node.cards}
    if not assignment.gpus() <= states.keys():
        return False
    totals = {uuid: state.total_slices for uuid, state in states.items()}
    needs = codec.usage(assignment, request, node.slice_mib, totals)
    return all(_carries(states[uuid], need) for uuid, need in needs.items())


def _carries(state: CardState, need: Usage) -> bool:
    if need.wholes:
        return state.is_empty and need.wholes == 1 and not need.shares
    return (
        need.slices <= state.free_slices
        and need.memory_mib <= state.free_mib
        and need.cores <= state.free_cores
        and not state.is_held_whole
    )


def _card_refusal(container: ContainerRequest, state: CardState) -> Reason | None:
    """Return what rules a card out whatever is free on it: its mode, size, health, or a cordon."""
    card = state.card
    if card.mode is CardMode.MPS:
        return Reason.CARD_MODE_UNSUPPORTED
    if card.mode is CardMode.EXCLUSIVE and not container.whole:
        return Reason.CARD_EXCLUSIVE
    if container.memory_mib > card.memory_mib:
        return Reason.CARD_TOO_SMALL
    if not card.healthy:
        return Reason.CARD_UNHEALTHY
    return Reason.CARD_CORDONED if card.cordoned else None


def _whole_refusal(state: CardState) -> Reason | None:
    return None if state.is_empty else Reason.CARD_IN_USE


def _share_refusal(state: CardState, need: Usage) -> Reason | None:
    if state.is_held_whole:
        return Reason.CARD_HELD_WHOLE
    if need.slices > state.free_slices or need.memory_mib > state.free_mib:
        return Reason.CARD_INSUFFICIENT_MEMORY
    return Reason.CARD_INSUFFICIENT_CORES if need.cores > state.free_cores else None
