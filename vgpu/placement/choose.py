"""Which cards of one node a pod gets, or why the node cannot take the pod.

Cards are chosen container by container in the kubelet's order; init containers use the cards of the pod's anchor, the
first app container that asks for a GPU (ADR 3).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from vgpu import reasons
from vgpu.assignment import Assignment, Grant
from vgpu.placement import fit
from vgpu.placement.policies import COMPARATORS
from vgpu.policy import PackingPolicy
from vgpu.quantity import FULL_CORES
from vgpu.reasons import Reason
from vgpu.request import ContainerKind, ContainerRequest, PodRequest
from vgpu.share import CardState, NodeState, Usage


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why a node cannot take a pod: one code for the node, and one for each of its cards (by UUID)."""

    reason: Reason
    cards: Mapping[str, Reason] = field(default_factory=dict)

    @property
    def is_unresolvable(self) -> bool:
        """Whether the node could not take the pod even if other pods ended."""
        return self.reason in reasons.UNRESOLVABLE


def place(request: PodRequest, node: NodeState, gpu_policy: PackingPolicy) -> Assignment | Refusal:
    """Choose cards on one node for every GPU container of a pod."""
    states = {state.card.uuid: state for state in node.cards}
    chosen: dict[str, tuple[Grant, ...]] = {}
    for container in _placing_order(request):
        share = None if container.whole else _share(request, container, node.slice_mib)
        needs = {uuid: share or _whole(state) for uuid, state in states.items()}
        refused = {
            uuid: fit.refusal(container, request.options.selector, needs[uuid], state) for uuid, state in states.items()
        }
        fitting = [states[uuid] for uuid, reason in refused.items() if reason is None]
        if len(fitting) < container.gpus:
            return _node_refusal(container, node, {uuid: why for uuid, why in refused.items() if why is not None})
        fitting.sort(key=lambda state: _card_order(state, gpu_policy))
        for state in fitting[: container.gpus]:
            states[state.card.uuid] = state.with_usage(needs[state.card.uuid])
        chosen[container.name] = tuple(_grant(container, state) for state in fitting[: container.gpus])
    return Assignment({c.name: _own_grants(request, c, chosen) for c in request.containers})


def _placing_order(request: PodRequest) -> list[ContainerRequest]:
    """Return the containers that choose cards, in the kubelet's order: the anchor chooses for its init containers."""
    anchor = request.anchor
    return [c for c in request.containers if c is anchor or not request.shares_anchor_cards(c)]


def _share(request: PodRequest, container: ContainerRequest, slice_mib: int) -> Usage:
    """Return what a container's share takes of a card; for the anchor, the most that it or an init container needs."""
    need = Usage(shares=1)
    for other in request.containers:
        if other is container or (container is request.anchor and other.kind is ContainerKind.INIT):
            slices = request.slices(other, slice_mib)
            need = need.larger(Usage(slices, other.memory_mib, request.counted_cores(other), shares=1))
    return need


def _whole(state: CardState) -> Usage:
    """Return what holding a card whole takes of it."""
    return Usage(state.total_slices, state.card.memory_mib, FULL_CORES, wholes=1)


def _card_order(state: CardState, policy: PackingPolicy) -> tuple[int, int, int]:
    """Sort cards by the policy, then by the most free time, then by NVML's index."""
    return COMPARATORS[policy].card(state), -state.free_cores, state.card.index


def _node_refusal(container: ContainerRequest, node: NodeState, refused: Mapping[str, Reason]) -> Refusal:
    """Choose the node's reason among its cards': a reason that ends with other pods counts before a lasting one."""
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
