"""Affinity between pods on one card: which cards a pod must be on, or off, for the pods that are there (ADR 72).

Pods of other namespaces are never looked at: callers give those of one namespace. Anti-affinity counts in both
directions: a pod that is on a card keeps others off it. The verbs and simulations use this one code.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace

from vgpu.domain.asks.policy import Labels
from vgpu.domain.asks.request import PodRequest
from vgpu.domain.grants.assignment import Assignment
from vgpu.domain.identifiers import CardUuid


@dataclass(frozen=True, slots=True)
class CardTenant:
    """A pod that holds cards: its labels, the labels of pods that it keeps off its cards, and what it holds."""

    labels: Mapping[str, str]
    anti_affinity: Labels
    held: Assignment


def required(request: PodRequest, labels: Mapping[str, str], others: Iterable[CardTenant]) -> PodRequest:
    """Return what a pod with these labels asks for, with the cards that it must be on, and off, beside other pods."""
    known, options = list(others), request.options
    beside = _beside(labels, options.affinity, known)
    selector = replace(options.selector, beside=beside, apart=_apart(labels, options.anti_affinity, known))
    return replace(request, options=replace(options, selector=selector))


def preferred(request: PodRequest, labels: Mapping[str, str], others: Iterable[CardTenant]) -> PodRequest | None:
    """Return what `required` returned, with the cards that the pod prefers too; None where it prefers none now."""
    known, options, selector = list(others), request.options, request.options.selector
    beside = _beside(labels, options.preferred_affinity, known) or None  # no such pod yet: no preference
    apart = selector.apart | _apart(labels, options.preferred_anti_affinity, known)
    if beside is None and apart == selector.apart:
        return None
    if beside is not None and selector.beside is not None:
        beside &= selector.beside
    narrowed = replace(selector, beside=selector.beside if beside is None else beside, apart=apart)
    return replace(request, options=replace(options, selector=narrowed))


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
