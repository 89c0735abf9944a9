"""Where a pod goes: on a snapshot, without side effects, the same answer every time.

`place` answers for one node: an assignment, or why not, card by card. `rank` orders the nodes that can take the pod.
Cards are chosen container by container in the kubelet's order; init containers stand on the cards of the pod's anchor.
"""

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache

from vgpu import assignment as codec
from vgpu import reasons, share
from vgpu.assignment import Assignment, Grant
from vgpu.device import CardMode
from vgpu.policy import PackingPolicy, Wishes
from vgpu.reasons import Reason
from vgpu.request import ContainerKind, ContainerRequest, PodRequest
from vgpu.share import CardState, NodeState, Usage


@dataclass(frozen=True, slots=True)
class Defaults:
    """The cluster's policies, for pods that name none."""

    node_policy: PackingPolicy = PackingPolicy.BINPACK
    gpu_policy: PackingPolicy = PackingPolicy.BINPACK


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why a node cannot take a pod: one code for the node, and one for each of its cards (by UUID)."""

    reason: Reason
    cards: Mapping[str, Reason] = field(default_factory=dict)

    @property
    def is_unresolvable(self) -> bool:
        """Whether no pod's end could cure it."""
        return self.reason in reasons.UNRESOLVABLE


def place(request: PodRequest, node: NodeState, gpu_policy: PackingPolicy) -> Assignment | Refusal:
    """Choose cards on one node for every GPU container of a pod."""
    states = {state.card.uuid: state for state in node.cards}
    chosen: dict[str, tuple[Grant, ...]] = {}
    for container in _placing_order(request):
        need = _need(request, container, node.slice_mib)
        refused = {uuid: _refusal(request, container, need, state) for uuid, state in states.items()}
        fitting = [states[uuid] for uuid, reason in refused.items() if reason is None]
        if len(fitting) < container.gpus:
            return _node_refusal(container, node, {uuid: why for uuid, why in refused.items() if why is not None})
        fitting.sort(key=lambda state: _card_order(state, gpu_policy))
        for state in fitting[: container.gpus]:
            states[state.card.uuid] = state.with_usage(_whole(state) if container.whole else need)
        chosen[container.name] = tuple(_grant(container, state) for state in fitting[: container.gpus])
    return Assignment({c.name: _own_grants(request, c, chosen) for c in request.containers})


def rank(nodes: Iterable[NodeState], wishes: Wishes, defaults: Defaults) -> list[str]:
    """Names of the nodes, best first. Equal nodes stand in one fixed order, hashed from their names.

    The hash keeps racks mixed, and a fixed order fills one node before the next where scores tie.
    """
    sign = 1 if (wishes.node_policy or defaults.node_policy) is PackingPolicy.BINPACK else -1
    return [node.name for node in sorted(nodes, key=lambda node: (sign * node.free_slices, fixed_order(node.name)))]


def scores(ranked: Sequence[str], best: int = 10) -> dict[str, int]:
    """Give the first node `best` and every other a smaller score, falling with its rank; never negative."""
    rest = max(1, len(ranked) - 1)
    return {name: best if n == 0 else (best - 1) * (rest - n) // rest for n, name in enumerate(ranked)}


@lru_cache(maxsize=1 << 14)
def fixed_order(name: str) -> bytes:
    """A node's place among its equals: a hash of its name, the same in every process."""
    return hashlib.blake2b(name.encode(), digest_size=8).digest()


def verify(assignment: Assignment, request: PodRequest, node: NodeState) -> bool:
    """Whether the node can carry an assignment that was chosen earlier."""
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


def _placing_order(request: PodRequest) -> list[ContainerRequest]:
    """The anchor stands for its init containers; everybody else is placed in the kubelet's order."""
    anchor = request.anchor
    return [c for c in request.containers if c is anchor or not request.shares_anchor_cards(c)]


def _need(request: PodRequest, container: ContainerRequest, slice_mib: int) -> Usage:
    """What a container's share takes of a card; the anchor's is the most of its own and the init containers' phases."""
    need = Usage(shares=1)
    for other in request.containers:
        if other is container or (container is request.anchor and other.kind is ContainerKind.INIT):
            slices = request.slices(other, slice_mib)
            need |= Usage(slices, other.memory_mib, request.counted_cores(other), shares=1)
    return need


def _whole(state: CardState) -> Usage:
    """What holding a card whole takes of it."""
    return Usage(state.total_slices, state.card.memory_mib, share.FULL_CORES, wholes=1)


def _refusal(request: PodRequest, container: ContainerRequest, need: Usage, state: CardState) -> Reason | None:
    return (
        request.wishes.selector.refusal(state.card)
        or _standing_refusal(container, state)
        or (_whole_refusal(state) if container.whole else _share_refusal(state, need))
    )


def _standing_refusal(container: ContainerRequest, state: CardState) -> Reason | None:
    """What is wrong with the card itself, whoever is on it."""
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


def _card_order(state: CardState, policy: PackingPolicy) -> tuple[int, int, int]:
    """Binpack takes the tightest card, spread the emptiest; then the one with most time left, then NVML's order."""
    free = state.free_slices if policy is PackingPolicy.BINPACK else -state.free_slices
    return free, -state.free_cores, state.card.index


def _node_refusal(container: ContainerRequest, node: NodeState, refused: Mapping[str, Reason]) -> Refusal:
    """Name the node's refusal by the cards nearest to fitting: what waiting could cure beats what it cannot."""
    if len(node.cards) < container.gpus:
        return Refusal(Reason.NOT_ENOUGH_CARDS if node.cards else Reason.NO_INVENTORY, refused)
    waiting = [why for why in refused.values() if why not in reasons.UNRESOLVABLE]
    spare = len(node.cards) - len(refused) + len(waiting)
    if spare < container.gpus:
        lasting = [why for why in refused.values() if why in reasons.UNRESOLVABLE]
        return Refusal(_most_common(lasting), refused)
    return Refusal(_most_common(waiting), refused)


def _most_common(found: Sequence[Reason]) -> Reason:
    return max(found, key=lambda why: (found.count(why), -list(Reason).index(why)))


def _grant(container: ContainerRequest, state: CardState) -> Grant:
    memory = state.card.memory_mib if container.whole else container.memory_mib
    return Grant(state.card.uuid, memory, container.cores, container.whole)


def _own_grants(
    request: PodRequest, container: ContainerRequest, chosen: Mapping[str, tuple[Grant, ...]]
) -> tuple[Grant, ...]:
    """The container's own grants; an init container has its own amounts on the anchor's cards."""
    if container.name in chosen:
        return chosen[container.name]
    anchored = chosen[request.anchor.name]
    if container.whole:
        return anchored
    return tuple(Grant(grant.gpu, container.memory_mib, container.cores) for grant in anchored)
