"""The policy `topology`: the set of cards with the best connections, by NVLink and NUMA node (ADR 58).

A pair of cards counts by its connection (`vgpu.domain.cards.links`); the best set has the largest sum over its pairs.
The search is exact: branch and bound, in which cards with equal connections to all others are taken in one order only.
A pod of one card gets the card with the fewest connections, so that sets stay together.
"""

from collections.abc import Sequence
from itertools import accumulate
from typing import Final

from vgpu.domain.cards.device import Card
from vgpu.domain.cards.links import LinkWeights
from vgpu.domain.cards.share import CardState, NodeState
from vgpu.placement.question import Question
from vgpu.placement.room import card_room, fits

MAX_STEPS: Final = 20_000  # of the search, about 0.1 s; then the best set so far is taken
_ABOVE_SLICES: Final = 1 << 24

Weights = Sequence[Sequence[int]]


def best_cards(cards: Sequence[CardState], count: int, links: LinkWeights) -> list[CardState]:
    """Return the best set of `count` cards, by NVML's index; of one card, the one with the fewest connections.

    Of equal cards, those with the least that is free come first.
    """
    ordered = sorted(cards, key=lambda state: (state.free_slices, -state.free_cores, state.card.index))
    weights = connections(ordered, links)
    chosen = [_loneliest(weights)] if count == 1 else best_set(weights, count)
    return sorted((ordered[n] for n in chosen), key=lambda state: state.card.index)


def goodness(cards: Sequence[CardState], links: LinkWeights) -> int:
    """Return the sum over the connections of all pairs of a set."""
    return score(connections(cards, links), range(len(cards)))


def lacking(cards: Sequence[CardState], count: int, links: LinkWeights) -> int:
    """Return what the best set of `count` cards lacks to the best connection of all pairs; 0 for one card."""
    weights = connections(cards, links)
    return count * (count - 1) // 2 * links.most - score(weights, best_set(weights, count)) if count > 1 else 0


def node_cost(state: NodeState, question: Question) -> int:
    """Return the cost of a node by what the best set of its free cards lacks; above any number of free slices."""
    ask = question.ask
    free = [card for card in state.cards if fits(card_room(card, question.models), ask)] if ask.gpus > 1 else []
    return lacking(free, ask.gpus, state.links) * _ABOVE_SLICES if len(free) >= ask.gpus else 0


def connections(cards: Sequence[CardState], links: LinkWeights) -> list[list[int]]:
    """Return the weight of each pair of cards; 0 of a card with itself."""
    return [[_weight(one.card, other.card, links) for other in cards] for one in cards]


def score(weights: Weights, chosen: Sequence[int]) -> int:
    """Return the sum over the pairs of a set of positions."""
    return sum(weights[a][b] for n, a in enumerate(chosen) for b in chosen[:n])


def best_set(weights: Weights, count: int) -> list[int]:
    """Return the positions of `count` cards with the largest sum over their pairs, or all where there are fewer."""
    return _CardSetSearch(weights, count).run() if 0 < count < len(weights) else list(range(min(count, len(weights))))


class _CardSetSearch:
    """Branch and bound over sets of positions in ascending order."""

    def __init__(self, weights: Weights, count: int) -> None:
        self._weights = weights
        self._count = count
        self._twins = [_earlier_twin(weights, card) for card in range(len(weights))]
        self._most = [_most(row, count) for row in weights]
        self._steps = 0
        greedy = (_greedy(weights, start, count) for start in range(len(weights)))
        self._best = max(greedy, key=lambda chosen: score(weights, chosen))
        self._best_score = score(weights, self._best)

    def run(self) -> list[int]:
        """Return the best set."""
        self._extend([], 0, [0] * len(self._weights), 0)
        return self._best

    def _extend(self, chosen: list[int], begin: int, gains: Sequence[int], total: int) -> None:
        """Try every set that adds cards from position `begin` on. `gains` are the cards' sums with the chosen ones."""
        if len(chosen) == self._count:
            if total > self._best_score:
                self._best, self._best_score = chosen, total
            return
        for card in range(begin, len(self._weights)):
            self._steps += 1
            if self._steps > MAX_STEPS or self._bound(card, len(chosen), gains, total) <= self._best_score:
                return
            twin = self._twins[card]
            if twin is None or twin in chosen:
                after = [gain + more for gain, more in zip(gains, self._weights[card], strict=True)]
                self._extend([*chosen, card], card + 1, after, total + gains[card])

    def _bound(self, begin: int, count: int, gains: Sequence[int], total: int) -> int:
        """Return a sum that no set reaches which adds cards from `begin` on; -1 where there are too few.

        A card adds its sum with the chosen ones, and half of its largest weights with the other added ones.
        """
        more = self._count - count
        if len(gains) - begin < more:
            return -1
        doubled = sorted((2 * gains[n] + self._most[n][more - 1] for n in range(begin, len(gains))), reverse=True)
        return total + sum(doubled[:more]) // 2


def _greedy(weights: Weights, start: int, count: int) -> list[int]:
    """Return a good set: from one card on, always the card that adds most."""
    chosen, gains = [start], list(weights[start])
    while len(chosen) < count:
        card = max((n for n in range(len(weights)) if n not in chosen), key=lambda n: (gains[n], -n))
        chosen.append(card)
        gains = [gain + more for gain, more in zip(gains, weights[card], strict=True)]
    return sorted(chosen)


def _earlier_twin(weights: Weights, card: int) -> int | None:
    """Return the last card before a card that has equal connections to all others, or None."""
    others = [n for n in range(len(weights)) if n != card]
    return next(
        (n for n in range(card - 1, -1, -1) if all(weights[n][k] == weights[card][k] for k in others if k != n)), None
    )


def _most(row: Sequence[int], count: int) -> list[int]:
    """Return the sums of the 0, 1, 2 ... largest weights of a card."""
    return list(accumulate(sorted(row, reverse=True)[: count - 1], initial=0))


def _loneliest(weights: Weights) -> int:
    return min(range(len(weights)), key=lambda n: (sum(weights[n]), n))


def _weight(one: Card, other: Card, links: LinkWeights) -> int:
    if one.uuid == other.uuid:
        return 0
    if other.uuid in one.nvlink_peers or one.uuid in other.nvlink_peers:
        return links.nvlink
    return links.same_numa if one.numa_node == other.numa_node else links.other_numa
