"""Which pods of a node make room for a pod of higher priority when they are evicted. Pure.

The cost of a set of victims is compared as kube-scheduler compares nodes: fewest violated PodDisruptionBudgets, then
the lowest highest priority, then the fewest pods, then the lowest priorities, then the youngest pods. The pods of one
gang on the node leave together, as one candidate (ADR 191). `choose` first evicts all candidates and takes back one
after the other, the most important first, as kube-scheduler does. It then searches for a cheaper set. The search is
exact as long as `MAX_TRIALS` placements suffice.
"""

import itertools
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final, TypeAlias

from vgpu.domain.asks.policy import PackingPolicy
from vgpu.domain.asks.request import PodRequest
from vgpu.domain.cards.share import NO_USAGE, CardState, NodeState, Usage
from vgpu.domain.grants import usage
from vgpu.domain.grants.assignment import Assignment
from vgpu.domain.identifiers import CardUuid, PodUid
from vgpu.placement import choose as placing

MAX_TRIALS: Final = 400  # placements in one search: about 20 ms

Fits: TypeAlias = "Callable[[Sequence[EvictionCandidate]], bool]"
Cost = tuple[int, int, int, int, tuple[float, ...]]
Budgets = Mapping[str, int]  # how many more disruptions each PodDisruptionBudget allows


@dataclass(frozen=True, slots=True)
class EvictionCandidate:
    """A pod that may be evicted, or the pods of one gang on a node, which leave together.

    Attributes:
        uid: the pod's UID; of a gang, that of its most important pod.
        priority: the value of its PriorityClass.
        started: start time in seconds; the youngest pod has the largest.
        usage: what it takes of each card, by UUID.
        devices: what the kubelet counts for it, by resource.
        budgets: the PodDisruptionBudgets that an eviction of the pod would use.
        others: the UIDs of the other pods of the gang.
    """

    uid: PodUid
    priority: int = 0
    started: float = 0.0
    usage: Mapping[CardUuid, Usage] = field(default_factory=dict)
    devices: Mapping[str, int] = field(default_factory=dict)
    budgets: tuple[str, ...] = ()
    others: tuple[PodUid, ...] = ()

    @property
    def uids(self) -> tuple[PodUid, ...]:
        """The UIDs of the pods that leave."""
        return (self.uid, *self.others)

    @property
    def importance(self) -> tuple[int, float, str]:
        """The sort key: pods of high priority, then pods that run for long, are important."""
        return self.priority, -self.started, self.uid

    def replaces(self, other: "EvictionCandidate") -> bool:
        """Whether an eviction of this pod frees, and violates, the same as an eviction of another."""
        frees = self.priority, self.usage, self.budgets, len(self.uids)
        return frees == (other.priority, other.usage, other.budgets, len(other.uids))


@dataclass(frozen=True, slots=True)
class Eviction:
    """The victims, the most important first, and how many of them violate a PodDisruptionBudget."""

    victims: tuple[EvictionCandidate, ...]
    violations: int

    @property
    def uids(self) -> tuple[PodUid, ...]:
        """The UIDs of all pods that leave, those of the most important victims first."""
        return tuple(uid for victim in self.victims for uid in victim.uids)

    @property
    def cost(self) -> Cost:
        """The sort key of evictions: the smallest is the best."""
        priorities = [victim.priority for victim in self.victims for _ in victim.uids]
        started = tuple(sorted(victim.started for victim in self.victims))
        highest = max(priorities, default=-(1 << 31))
        return self.violations, highest, len(priorities), sum(priorities), tuple(-at for at in started)


def together(pods: Sequence[EvictionCandidate]) -> EvictionCandidate:
    """Return some pods as one candidate, as important as the most important of them."""
    first, *others = sorted(pods, key=lambda pod: pod.importance, reverse=True)
    return replace(
        first,
        usage=usage.total(pod.usage for pod in pods),
        devices=dict(sum((Counter(pod.devices) for pod in pods), Counter[str]())),
        budgets=tuple(name for pod in pods for name in pod.budgets),
        others=tuple(pod.uid for pod in others),
    )


def eviction(victims: Iterable[EvictionCandidate], allowed: Budgets) -> Eviction:
    """Return the eviction of a set of pods.

    A pod violates where one of its budgets was used up by more important victims: kube-scheduler's rule.
    """
    ordered = sorted(victims, key=lambda victim: victim.importance, reverse=True)
    return Eviction(tuple(ordered), len(_violating(ordered, allowed)))


def on_node(
    request: PodRequest,
    state: NodeState,
    policy: PackingPolicy,
    candidates: Sequence[EvictionCandidate],
    allowed: Budgets,
    admits: Callable[[Mapping[str, int]], bool],
) -> Eviction | None:
    """Return the cheapest eviction of pods of one node, after which the node can take a pod; None where none helps.

    `admits` says whether the kubelet would admit the pod beside devices that are in use.
    """
    evictions = []
    for part in _parts(request, state):
        cards = {card.card.uuid for card in part.cards}

        def fits(leaving: Sequence[EvictionCandidate], part: NodeState = part) -> bool:
            left = without(part, leaving)
            return admits(left.devices) and isinstance(placing.place(request, left, policy), Assignment)

        evictions.append(
            choose([candidate for candidate in candidates if cards & candidate.usage.keys()], fits, allowed)
        )
    return min(
        (possible for possible in evictions if possible is not None), key=lambda possible: possible.cost, default=None
    )


def choose(candidates: Sequence[EvictionCandidate], fits: Fits, allowed: Budgets) -> Eviction | None:
    """Return the cheapest eviction after which the pod fits, or None where no eviction helps.

    `fits` says whether the pod fits when these candidates have left; more leaving candidates never hurt.
    """
    if not fits(candidates):
        return None
    if fits(()):
        return Eviction((), 0)
    found = _reprieve(candidates, fits, allowed)
    return _EvictionSearch(candidates, fits, allowed).improve(found)


def without(state: NodeState, leaving: Iterable[EvictionCandidate]) -> NodeState:
    """Return a node's state after pods have left, in which its kubelet no longer reports their slices as held."""
    left = list(leaving)
    freed = usage.total(pod.usage for pod in left)
    devices = Counter(state.devices)
    for pod in left:
        devices.subtract(pod.devices)
    cards = tuple(_without(card, freed.get(card.card.uuid, NO_USAGE)) for card in state.cards)
    return replace(state, cards=cards, devices=dict(devices))


def usage_if_placed(request: PodRequest, state: NodeState, policy: PackingPolicy) -> dict[CardUuid, Usage] | None:
    """Return what a pod takes of each card, by UUID, once it is placed on a node; None where it does not fit."""
    chosen = placing.place(request, state, policy)
    if not isinstance(chosen, Assignment):
        return None
    return usage.of_pod(chosen, request, state.slice_mib, state.card_slices)


def with_usage(state: NodeState, taken: Mapping[CardUuid, Usage]) -> NodeState:
    """Return a node's state with more taken of its cards."""
    cards = tuple(card.with_usage(taken[card.card.uuid]) if card.card.uuid in taken else card for card in state.cards)
    return replace(state, cards=cards)


def _parts(request: PodRequest, state: NodeState) -> Iterable[NodeState]:
    """Return the parts of a node that can be searched apart: each card, where the pod needs one card only."""
    usable = [card for card in state.cards if request.options.selector.refusal(card.card) is None]
    if len(request.containers) > 1 or request.anchor.gpus > 1:
        return [replace(state, cards=tuple(usable))]
    return [replace(state, cards=(card,)) for card in usable]


def _without(state: CardState, freed: Usage) -> CardState:
    if freed == NO_USAGE:
        return state
    held = max(0, state.card.held_slices - freed.slices)
    card = replace(state.card, held_slices=held, held_whole=state.card.held_whole and not freed.wholes)
    return CardState(card, state.slice_mib, state.usage - freed)


def _count(candidates: Iterable[EvictionCandidate]) -> int:
    return sum(len(candidate.uids) for candidate in candidates)


def _violating(ordered: Iterable[EvictionCandidate], allowed: Budgets) -> list[EvictionCandidate]:
    """Return the pods that violate a budget, when all are evicted; the most important pod comes first."""
    left = dict(allowed)
    found = []
    for pod in ordered:
        for name in pod.budgets:
            left[name] = left.get(name, 0) - 1
        if any(left[name] < 0 for name in pod.budgets):
            found.append(pod)
    return found


def _reprieve(candidates: Sequence[EvictionCandidate], fits: Fits, allowed: Budgets) -> Eviction:
    ordered = sorted(candidates, key=lambda pod: pod.importance, reverse=True)
    violating = _violating(ordered, allowed)
    victims = list(ordered)
    for pod in (*violating, *(other for other in ordered if other not in violating)):
        rest = [other for other in victims if other is not pod]
        if fits(rest):
            victims = rest
    return eviction(victims, allowed)


class _EvictionSearch:
    """Looks for a cheaper eviction by violations, highest priority and count, in this order."""

    def __init__(self, candidates: Sequence[EvictionCandidate], fits: Fits, allowed: Budgets) -> None:
        self._ordered = sorted(candidates, key=lambda pod: pod.importance)
        self._fits = fits
        self._allowed = allowed
        self._trials = MAX_TRIALS

    def improve(self, found: Eviction) -> Eviction:
        """Return the cheapest eviction; `found` where there is none cheaper, or the trials are used up."""
        priorities = sorted({pod.priority for pod in self._ordered})
        for level in itertools.product(range(found.violations + 1), priorities):
            if level > found.cost[:2]:
                break
            better = self._on_level(*level, found)
            if better is not None:
                return min(better, found, key=lambda possible: possible.cost)
        return found

    def _on_level(self, violations: int, highest: int, found: Eviction) -> Eviction | None:
        """Return the best eviction of pods up to a priority that has at most so many violations."""
        usable = [pod for pod in self._ordered if pod.priority <= highest]
        if not self._try(usable):
            return None
        most = found.cost[2] if (violations, highest) == found.cost[:2] else _count(usable)
        for count in range(1, most + 1):
            best = self._extend((), usable, count, violations, None)
            if best is not None:
                return best
        return None

    def _extend(
        self,
        chosen: tuple[EvictionCandidate, ...],
        rest: Sequence[EvictionCandidate],
        count: int,
        violations: int,
        best: Eviction | None,
    ) -> Eviction | None:
        """Return the better of `best` and every eviction that adds candidates of `count` pods to the chosen ones."""
        if not count:
            return self._better(eviction(chosen, self._allowed), violations, best)
        if count > 1 and not self._try((*chosen, *rest)):
            return best
        for at, candidate in enumerate(rest):
            if _count(rest[at:]) < count:
                break
            is_repeated = at and rest[at - 1].replaces(candidate)  # the younger of two equal pods was tried
            left = count - len(candidate.uids)
            if not is_repeated and left >= 0 and self._trials > 0:
                best = self._extend((*chosen, candidate), rest[at + 1 :], left, violations, best)
        return best

    def _better(self, new: Eviction, violations: int, best: Eviction | None) -> Eviction | None:
        if new.violations > violations or (best is not None and best.cost <= new.cost):
            return best
        return new if self._try(new.victims) else best

    def _try(self, leaving: Sequence[EvictionCandidate]) -> bool:
        """Whether the pod fits; False when the trials are used up."""
        self._trials -= 1
        return self._trials >= 0 and self._fits(leaving)
