"""Which cards of one node a pod gets, or why the node cannot take the pod.

Cards are chosen container by container in the kubelet's order, each time the first card of the policy that fits; init
containers use the cards of the pod's anchor, the first app container that asks for a GPU (ADR 3). That finds a place
for a pod whose other containers fit anywhere. Where it fails, up to four containers are placed by an exact search, and
more of them with the largest first (ADR 24).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from vgpu.domain.asks.policy import PackingPolicy
from vgpu.domain.asks.request import ContainerRequest, PodRequest
from vgpu.domain.cards import reasons
from vgpu.domain.cards.reasons import Reason
from vgpu.domain.cards.share import CardState, NodeState
from vgpu.domain.grants.assignment import Assignment, Grant
from vgpu.domain.identifiers import CardUuid, ContainerName
from vgpu.placement import fit, job_sets, packing
from vgpu.placement.policies import POLICIES


@dataclass(frozen=True, slots=True)
class NodeRefusal:
    """Why a node cannot take a pod: one code for the node, and one for each of its cards (by UUID)."""

    reason: Reason
    cards: Mapping[CardUuid, Reason] = field(default_factory=dict)


_ORDER: Final = {reason: number for number, reason in enumerate(Reason)}
Chosen = dict[ContainerName, tuple[Grant, ...]]  # by container


def place(request: PodRequest, node: NodeState, gpu_policy: PackingPolicy) -> Assignment | NodeRefusal:
    """Choose cards on one node for every GPU container of a pod."""
    order = request.choosers
    chosen, refusal = _first_fits(request, order, node, gpu_policy)
    if refusal is not None and chosen:  # another choice for the containers before may leave room for the refused one
        chosen = _search(request, node, gpu_policy)
        refusal = None if chosen else refusal
    return refusal or Assignment({c.name: _own_grants(request, c, chosen) for c in request.containers})


def _search(request: PodRequest, node: NodeState, gpu_policy: PackingPolicy) -> Chosen:
    """Choose cards where the first cards that fit do not leave room for every container; empty where there are none."""
    order = request.choosers
    if len(order) > packing.MAX_CONTAINERS:
        largest = sorted(order, key=lambda c: (c.whole, request.slices(c, node.slice_mib)), reverse=True)
        chosen, refusal = _first_fits(request, largest, node, gpu_policy)
        return chosen if refusal is None else {}
    cards = packing.pack(request, node, lambda state: _card_order(state, gpu_policy)) or {}
    return {c.name: tuple(_grant(c, state) for state in cards[c.name]) for c in order if cards}


def _first_fits(
    request: PodRequest, order: Sequence[ContainerRequest], node: NodeState, gpu_policy: PackingPolicy
) -> tuple[Chosen, NodeRefusal | None]:
    """Choose for each container the policy's first cards that fit, beside what was chosen before.

    Returns the containers that have cards, and the refusal of the first one that has none.
    """
    states = {state.card.uuid: state for state in node.cards}
    chosen: Chosen = {}
    for container in order:
        share = None if container.whole else packing.share(request, [container], node.slice_mib)
        needs = {uuid: share or packing.whole(state) for uuid, state in states.items()}
        refused = {
            uuid: fit.refusal(container, request.options.selector, needs[uuid], state) for uuid, state in states.items()
        }
        fitting = [states[uuid] for uuid, reason in refused.items() if reason is None]
        if len(fitting) < container.gpus:
            reasons_by_card = {uuid: why for uuid, why in refused.items() if why is not None}
            return chosen, _node_refusal(container, node, reasons_by_card)
        best = _best_cards(fitting, container, gpu_policy, node)
        for state in best:
            states[state.card.uuid] = state.with_usage(needs[state.card.uuid])
        chosen[container.name] = tuple(_grant(container, state) for state in best)
    return chosen, None


def _best_cards(
    fitting: Sequence[CardState], container: ContainerRequest, policy: PackingPolicy, node: NodeState
) -> list[CardState]:
    """Return the policy's best set of cards, or its first cards where it does not compare sets.

    Of shares of several cards, one that overlaps with fewer jobs comes first, where a policy that compares sets finds
    it as good.
    """
    row, count = POLICIES[policy], container.gpus
    best = row.card_set(fitting, count, node.links) if row.card_set else _in_order(fitting, policy)[:count]
    if container.whole or count == 1 or not node.jobs:
        return best
    goodness = row.set_goodness
    least = goodness(best, node.links) if goodness else 0
    return job_sets.fewest_overlaps(
        _in_order(fitting, policy),
        best,
        node.jobs,
        lambda cards: goodness is None or goodness(cards, node.links) >= least,
    )


def _in_order(fitting: Sequence[CardState], policy: PackingPolicy) -> list[CardState]:
    return sorted(fitting, key=lambda s: _card_order(s, policy))


def _card_order(state: CardState, policy: PackingPolicy) -> tuple[int, int, int]:
    """Sort cards by the policy, then by the most free time, then by NVML's index."""
    return POLICIES[policy].card(state), -state.free_cores, state.card.index


def _node_refusal(container: ContainerRequest, node: NodeState, refused: Mapping[CardUuid, Reason]) -> NodeRefusal:
    """Choose the node's reason among its cards'.

    A reason that ends with other pods counts before a lasting one, and of the lasting ones those that an administrator
    can end: a card that the pod names and that is cordoned is no mismatch of UUIDs.
    """
    if len(node.cards) < container.gpus:
        return NodeRefusal(Reason.NOT_ENOUGH_CARDS if node.cards else Reason.NO_INVENTORY, refused)
    waiting = [why for why in refused.values() if why not in reasons.UNRESOLVABLE]
    spare = len(node.cards) - len(refused) + len(waiting)
    if spare < container.gpus:
        lasting = [why for why in refused.values() if why in reasons.UNRESOLVABLE]
        curable = [why for why in lasting if why in reasons.CURABLE]
        return NodeRefusal(_most_common(curable or lasting), refused)
    return NodeRefusal(_most_common(waiting), refused)


def _most_common(found: Sequence[Reason]) -> Reason:
    return max(dict.fromkeys(found), key=lambda why: (found.count(why), -_ORDER[why]))


def _grant(container: ContainerRequest, state: CardState) -> Grant:
    memory = state.card.memory_mib if container.whole else container.memory_mib
    return Grant(state.card.uuid, memory, container.cores, container.whole)


def _own_grants(
    request: PodRequest, container: ContainerRequest, chosen: Mapping[ContainerName, tuple[Grant, ...]]
) -> tuple[Grant, ...]:
    """The container's own grants; an init container has its own amounts on the anchor's cards."""
    if container.name in chosen:
        return chosen[container.name]
    anchored = chosen[request.anchor.name]
    if container.whole:
        return anchored
    return tuple(Grant(grant.gpu, container.memory_mib, container.cores) for grant in anchored)
