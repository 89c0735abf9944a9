"""The exact search: cards for up to four containers of a pod, wherever there are any (ADR 24).

A set of containers is a bit mask. `_Room` knows for every card which sets fit on it together. `is_feasible` then
counts: it goes over the cards and keeps every combination of cards that the containers still lack, so it needs no
backtracking. Cards are chosen in the policy's order, each only if the rest remains feasible.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import Any, Final

from vgpu.domain.asks.request import ContainerKind, ContainerRequest, PodRequest
from vgpu.domain.cards.share import NO_USAGE, CardState, NodeState, Usage
from vgpu.domain.identifiers import ContainerName
from vgpu.domain.quantity import FULL_CORES
from vgpu.placement import fit

MAX_CONTAINERS: Final = 4
MAX_STEPS: Final = 50_000  # bound on the work for one node, about 10 ms; four containers on eight cards take 3,000

Lacking = tuple[int, ...]  # for each container, the number of cards that it lacks


def pack(
    request: PodRequest, node: NodeState, card_order: Callable[[CardState], Any], max_steps: int = MAX_STEPS
) -> Mapping[ContainerName, list[CardState]] | None:
    """Return the cards of each container, in the policy's order; None where there are none (or after `max_steps`).

    `card_order` is the policy's sort key.
    """
    containers = request.choosers
    room = _Room(request, node, max_steps)
    taken = [0] * len(node.cards)
    lacking = tuple(container.gpus for container in containers)
    if not room.is_feasible(taken, lacking):
        return None
    chosen: dict[ContainerName, list[CardState]] = {container.name: [] for container in containers}
    for index, container in enumerate(containers):
        for card in room.by_policy(taken, card_order):
            after, rest = _with(taken, card, 1 << index), _less(lacking, 1 << index)
            if lacking[index] and room.fits(card, after[card]) and room.is_feasible(after, rest):
                taken, lacking = after, rest
                chosen[container.name].append(node.cards[card])
    return None if any(lacking) else chosen


def share(request: PodRequest, containers: Sequence[ContainerRequest], slice_mib: int) -> Usage:
    """Return what the shares of containers take together of one card; the anchor brings the init containers.

    Init containers end before the app containers start, and sidecars run beside both: the rule of `usage.of_pod`.
    """
    app, sidecar, init = NO_USAGE, NO_USAGE, NO_USAGE
    for container in containers:
        if container.kind is ContainerKind.SIDECAR:
            sidecar += _alone(request, container, slice_mib)
        elif container.kind is ContainerKind.APP:
            app += _alone(request, container, slice_mib)
        if container is request.anchor:
            init = _largest_init(request, slice_mib)
    return sidecar + init.larger(app)


def _largest_init(request: PodRequest, slice_mib: int) -> Usage:
    """Return the most that an init container takes; they run one after the other."""
    largest = NO_USAGE
    for container in request.containers:
        if container.kind is ContainerKind.INIT:
            largest = largest.larger(_alone(request, container, slice_mib))
    return largest


def whole(state: CardState) -> Usage:
    """Return what holding a card whole takes of it."""
    return Usage(state.total_slices, state.card.memory_mib, FULL_CORES, wholes=1)


class _Room:
    """Which sets of containers fit on which card of a node."""

    def __init__(self, request: PodRequest, node: NodeState, max_steps: int) -> None:
        containers = request.choosers
        self._cards = node.cards
        self._wholes = sum(1 << n for n, container in enumerate(containers) if container.whole)
        self._needs = _needs(request, node.slice_mib)
        self._alone = [self._alone_on(state, request, containers) for state in node.cards]
        self._fitting: dict[int, frozenset[int]] = {}
        self._options: dict[tuple[int, int], tuple[int, ...]] = {}
        self._steps, self._max_steps = 0, max_steps

    def fits(self, card: int, mask: int) -> bool:
        """Whether a set of containers fits on a card."""
        return mask in self._sets(card)

    def by_policy(self, taken: Sequence[int], card_order: Callable[[CardState], Any]) -> list[int]:
        """Return the cards in the policy's order, beside the sets that were put on them."""
        states = [state.with_usage(self._need(state, mask)) for state, mask in zip(self._cards, taken, strict=True)]
        return sorted(range(len(states)), key=lambda card: card_order(states[card]))

    def is_feasible(self, taken: Sequence[int], lacking: Lacking) -> bool:
        """Whether all cards that the containers lack can be found beside what is taken."""
        if any(count > sum(alone >> n & 1 for alone in self._alone) for n, count in enumerate(lacking)):
            return False
        complete = (0,) * len(lacking)
        reached = {lacking}
        for card, mask in enumerate(taken):
            if complete in reached or self._steps > self._max_steps:
                break
            options = self._largest_options(card, mask)
            self._steps += len(reached) * len(options)
            reached = {_less(left, option) for left in reached for option in options}
        return complete in reached

    def _largest_options(self, card: int, taken: int) -> tuple[int, ...]:
        """Return the largest sets that fit on a card beside the set that is taken: a smaller set is never better."""
        key = card, taken
        if key not in self._options:
            more = [mask & ~taken for mask in self._sets(card) if mask & taken == taken]
            self._options[key] = tuple(one for one in more if not any(one & other == one != other for other in more))
        return self._options[key]

    def _sets(self, card: int) -> frozenset[int]:
        """Return the sets that fit on a card: of containers that fit alone, and that fit together."""
        if card not in self._fitting:
            state, alone = self._cards[card], self._alone[card]
            room = state.free_slices, state.free_mib, state.free_cores
            self._fitting[card] = frozenset(
                mask
                for mask, need in enumerate(self._needs)
                if mask & ~alone == 0 and (not mask & (mask - 1) or self._fit_together(mask, need, room))
            )
        return self._fitting[card]

    def _fit_together(self, mask: int, need: Usage, room: tuple[int, int, int]) -> bool:
        slices, mib, cores = room
        has_room = need.slices <= slices and need.memory_mib <= mib and need.cores <= cores
        return has_room and not mask & self._wholes

    def _alone_on(self, state: CardState, request: PodRequest, containers: Sequence[ContainerRequest]) -> int:
        """Return the set of the containers that fit on a card, each by itself."""
        selector, fitting = request.options.selector, 0
        for n, container in enumerate(containers):
            if fit.refusal(container, selector, self._need(state, 1 << n), state) is None:
                fitting |= 1 << n
        return fitting

    def _need(self, state: CardState, mask: int) -> Usage:
        return whole(state) if mask & self._wholes else self._needs[mask]


@lru_cache(maxsize=64)
def _needs(request: PodRequest, slice_mib: int) -> tuple[Usage, ...]:
    """Return what each set of the pod's containers takes together of one card."""
    containers = request.choosers
    members = ([c for n, c in enumerate(containers) if mask >> n & 1] for mask in range(1 << len(containers)))
    return tuple(share(request, member, slice_mib) for member in members)


def _alone(request: PodRequest, container: ContainerRequest, slice_mib: int) -> Usage:
    slices = request.slices(container, slice_mib)
    return Usage(slices, container.memory_mib, request.counted_cores(container), shares=1)


def _with(taken: Sequence[int], card: int, mask: int) -> list[int]:
    return [*taken[:card], taken[card] | mask, *taken[card + 1 :]]


def _less(lacking: Lacking, mask: int) -> Lacking:
    return tuple(count - 1 if count and mask >> n & 1 else count for n, count in enumerate(lacking))
