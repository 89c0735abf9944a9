"""Affinity between pods on one card: which cards a pod must be on, or off, for the pods that are there (ADR 72).

Pods of other namespaces are never looked at: callers give those of one namespace. Anti-affinity counts in both
directions: a pod that is on a card keeps others off it. The verbs and simulations use this one code.

Members of a group in space (ADR 174) attract each other: a pod prefers cards with members of its group, and cannot be
on a card on which its group has as many containers as an MPS server serves. A group of the cluster has members in
several namespaces, so they are counted apart from the neighbours.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace

from vgpu.domain.asks import space
from vgpu.domain.asks.policy import Labels
from vgpu.domain.asks.request import PodRequest
from vgpu.domain.asks.space import SpaceGroup
from vgpu.domain.grants.assignment import Assignment
from vgpu.domain.identifiers import CardUuid, Namespace


@dataclass(frozen=True, slots=True)
class CardTenant:
    """A pod that holds cards.

    Attributes:
        labels: of the pod.
        anti_affinity: the labels of pods that it keeps off its cards.
        held: what it holds.
        group: its group in space; None where it is in none.
        members: the cards of its containers that are members of the group, one for each container.
    """

    labels: Mapping[str, str]
    anti_affinity: Labels
    held: Assignment
    group: SpaceGroup | None = None
    members: tuple[CardUuid, ...] = ()


def tenant(namespace: Namespace, labels: Mapping[str, str], request: PodRequest | None, held: Assignment) -> CardTenant:
    """Return a pod that holds cards, as others look at it; `request` is what it asks for, None where unknown."""
    if request is None:
        return CardTenant(labels, frozenset(), held)
    options = request.options
    if options.space is None:
        return CardTenant(labels, options.anti_affinity, held)
    grants = (grant for asked in request.choosers for grant in held.containers.get(asked.name, ()))
    members = tuple(grant.gpu for grant in grants)
    return CardTenant(labels, options.anti_affinity, held, options.space.group(namespace), members)


def members_of(group: SpaceGroup | None, tenants: Iterable[CardTenant]) -> list[CardUuid]:
    """Return the cards of a group's members, one for each container; nothing for no group."""
    return [card for other in tenants if group is not None and other.group == group for card in other.members]


def required(
    request: PodRequest,
    labels: Mapping[str, str],
    others: Iterable[CardTenant],
    members: Iterable[CardUuid] = (),
    of_gang: Iterable[CardUuid] = (),
) -> PodRequest:
    """Return what a pod with these labels asks for, with the cards that it must be on, and off, beside other pods.

    `members` are the cards of the other members of its group in space, one for each container. The pod's containers
    count as if they were on one card. `of_gang` are the cards of pods of its gang that it must not be beside.
    """
    known, options, wanted = list(others), request.options, len(request.choosers)
    beside = _beside(labels, options.affinity, known)
    apart = _apart(labels, options.anti_affinity, known).union(of_gang)
    full = frozenset(card for card, count in Counter(members).items() if space.clients_left(count) < wanted)
    selector = replace(options.selector, beside=beside, apart=apart, full_groups=full)
    return replace(request, options=replace(options, selector=selector))


def preferred(
    request: PodRequest, labels: Mapping[str, str], others: Iterable[CardTenant], members: Iterable[CardUuid] = ()
) -> PodRequest | None:
    """Return what `required` returned, with the cards that the pod prefers too; None where it prefers none now.

    Cards with members of its group in space count where they are among those that its affinity prefers, or where that
    prefers none.
    """
    known, options, selector = list(others), request.options, request.options.selector
    beside = _beside(labels, options.preferred_affinity, known) or None  # no such pod yet: no preference
    if together := frozenset(members) - selector.full_groups:
        beside = together if beside is None else beside & together or beside
    apart = selector.apart | _apart(labels, options.preferred_anti_affinity, known)
    if beside is None and apart == selector.apart:
        return None
    if beside is not None and selector.beside is not None:
        beside &= selector.beside
    narrowed = replace(selector, beside=selector.beside if beside is None else beside, apart=apart)
    return replace(request, options=replace(options, selector=narrowed))


def off(request: PodRequest, cards: frozenset[CardUuid]) -> PodRequest:
    """Return what a pod asks for, on no card of `cards`."""
    options = request.options
    if cards <= options.selector.apart:
        return request
    selector = replace(options.selector, apart=options.selector.apart | cards)
    return replace(request, options=replace(options, selector=selector))


def _beside(labels: Mapping[str, str], affinity: Labels, others: Iterable[CardTenant]) -> frozenset[CardUuid] | None:
    """Return the cards with pods that a pod must be beside; None where it may be anywhere.

    The first one of pods that must be beside each other may be anywhere, as with kube-scheduler's affinity.
    """
    if not affinity:
        return None
    found = frozenset(uuid for other in others if _matches(affinity, other.labels) for uuid in other.held.gpus())
    return None if not found and _matches(affinity, labels) else found


def _apart(labels: Mapping[str, str], anti_affinity: Labels, others: Iterable[CardTenant]) -> frozenset[CardUuid]:
    return frozenset(_kept_off(labels, anti_affinity, others))


def _kept_off(labels: Mapping[str, str], anti_affinity: Labels, others: Iterable[CardTenant]) -> Iterator[CardUuid]:
    for other in others:
        if _matches(anti_affinity, other.labels) or _matches(other.anti_affinity, labels):
            yield from other.held.gpus()


def _matches(wanted: Labels, labels: Mapping[str, str]) -> bool:
    """Whether a pod has all of the labels; without labels none is meant."""
    return bool(wanted) and all(labels.get(key) == value for key, value in wanted)
