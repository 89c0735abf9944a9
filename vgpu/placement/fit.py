"""Whether a share, a whole card or an assignment fits. Placement, the node's guard and the simulator use this rule."""

from collections.abc import Mapping

from vgpu.domain.asks.policy import CardSelector
from vgpu.domain.asks.request import ContainerRequest, PodRequest
from vgpu.domain.cards.device import CardMode
from vgpu.domain.cards.reasons import Reason
from vgpu.domain.cards.share import CardState, NodeState, Usage
from vgpu.domain.grants import usage
from vgpu.domain.grants.assignment import Assignment


def refusal(container: ContainerRequest, selector: CardSelector, need: Usage, state: CardState) -> Reason | None:
    """Return why a container cannot use a card, or None where it can.

    `need` is what the container takes of the card, `selector` which cards its pod accepts.
    """
    card = state.card
    lasting = selector.refusal(card) or _card_refusal(container, state)
    return lasting or selector.neighbour_refusal(card) or usage_refusal(state, need)


def usage_refusal(state: CardState, need: Usage) -> Reason | None:
    """Return why a card has no room for `need` beside what is taken of it, or None where it has.

    A card is held whole by one container alone; shares fit as long as slices, MiB and percent of time are left.
    """
    if need.wholes:
        return None if state.is_empty and (need.wholes, need.shares) == (1, 0) else Reason.CARD_IN_USE
    if state.is_held_whole:
        return Reason.CARD_HELD_WHOLE
    if need.slices > state.free_slices or need.memory_mib > state.free_mib:
        return Reason.CARD_INSUFFICIENT_MEMORY
    return Reason.CARD_INSUFFICIENT_CORES if need.cores > state.free_cores else None


def kubelet_has_room(allocatable: Mapping[str, int], taken: Mapping[str, int], more: Mapping[str, int]) -> bool:
    """Whether a kubelet would admit a pod with `more` devices beside those taken; otherwise it fails the pod."""
    return all(taken.get(name, 0) + amount <= allocatable.get(name, 0) for name, amount in more.items())


def has_room_for(node: NodeState, assignment: Assignment, request: PodRequest) -> bool:
    """Whether a node has room for an assignment that was chosen earlier."""
    states = {state.card.uuid: state for state in node.cards}
    if not assignment.gpus() <= states.keys():
        return False
    needs = usage.of_pod(assignment, request, node.slice_mib, node.card_slices)
    return all(usage_refusal(states[uuid], need) is None for uuid, need in needs.items())


def _card_refusal(container: ContainerRequest, state: CardState) -> Reason | None:
    """Return what rules a card out whatever is free on it: its mode, size, health, or a cordon."""
    card = state.card
    if card.mode is CardMode.UNKNOWN:
        return Reason.CARD_MODE_UNSUPPORTED
    if card.mode is CardMode.EXCLUSIVE and not container.whole:
        return Reason.CARD_EXCLUSIVE
    if container.memory_mib > card.memory_mib:
        return Reason.CARD_TOO_SMALL
    if not card.healthy:
        return Reason.CARD_UNHEALTHY
    return Reason.CARD_CORDONED if card.cordoned else None
