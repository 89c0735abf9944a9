"""What pods take of a node's cards: the one derivation, used by the extender, the device plugin and the simulator."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence

from vgpu.domain.asks.request import ContainerKind, ContainerRequest, PodRequest
from vgpu.domain.cards.device import Node
from vgpu.domain.cards.share import NO_USAGE, Usage
from vgpu.domain.grants.assignment import Assignment, Grant
from vgpu.domain.identifiers import CardUuid
from vgpu.domain.quantity import FULL_CORES

Usages = Mapping[CardUuid, Usage]  # by the card's UUID


def of_pod(
    assignment: Assignment, request: PodRequest, slice_mib: int, card_slices: Mapping[CardUuid, int]
) -> dict[CardUuid, Usage]:
    """Return what a pod takes of each card: the larger of each init container's phase and the app containers' phase.

    Sidecars run in every phase. `card_slices` gives the slices of each card, for those held whole.
    """
    if len(request.containers) == 1:
        container = request.containers[0]
        grants: Sequence[Grant] = assignment.containers.get(container.name, ())
        if len(grants) > 1:
            grants = sorted(grants, key=lambda grant: grant.gpu)
        return {grant.gpu: _of_grant(grant, request, container, slice_mib, card_slices) for grant in grants}
    phases: list[Usages] = []
    sidecars: list[Usages] = []
    apps: list[Usages] = []
    for container in request.containers:
        taken = {
            grant.gpu: _of_grant(grant, request, container, slice_mib, card_slices)
            for grant in assignment.containers.get(container.name, ())
        }
        match container.kind:
            case ContainerKind.INIT:
                phases.append(taken)
            case ContainerKind.SIDECAR:
                sidecars.append(taken)
            case ContainerKind.APP:
                apps.append(taken)
    phases.append(total(apps))
    always = total(sidecars)
    cards = {card for phase in (*phases, always) for card in phase}
    return {card: always.get(card, NO_USAGE) + _largest(card, phases) for card in sorted(cards)}


def on_node(node: Node, pods: Iterable[tuple[PodRequest, Assignment]]) -> dict[CardUuid, Usage]:
    """Return what pods take together of each card of a node."""
    card_slices = node.card_slices()
    return total(of_pod(chosen, request, node.slice_mib, card_slices) for request, chosen in pods)


def total(usages: Iterable[Usages]) -> dict[CardUuid, Usage]:
    """Add up usages card by card."""
    taken: defaultdict[CardUuid, Usage] = defaultdict(lambda: NO_USAGE)
    for of_cards in usages:
        for card, usage in of_cards.items():
            taken[card] += usage
    return dict(taken)


def _largest(card: CardUuid, phases: Iterable[Usages]) -> Usage:
    largest = NO_USAGE
    for phase in phases:
        largest = largest.larger(phase.get(card, NO_USAGE))
    return largest


def _of_grant(
    grant: Grant, request: PodRequest, container: ContainerRequest, slice_mib: int, card_slices: Mapping[CardUuid, int]
) -> Usage:
    if grant.whole:
        return Usage(card_slices.get(grant.gpu, 0), grant.memory_mib, FULL_CORES, wholes=1)
    slices = request.slices(container, slice_mib)
    return Usage(slices, grant.memory_mib, request.counted_cores(container), shares=1)
