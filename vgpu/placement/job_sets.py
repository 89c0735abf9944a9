"""Which cards of a node a job gets beside other jobs: the same cards as another job has, or none of its cards. Pure.

A job has its turns on all of its cards at the same moment (ADR 179). Jobs on the same cards take turns; jobs on
different cards do not meet. Two jobs that have only some cards in common exclude each other: while one has its turn,
the other cards of the other one stand idle, and the guarantees of both shrink in proportion (ADR 192).
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import combinations, islice
from typing import Final, TypeAlias

from vgpu.domain.cards.share import CardState
from vgpu.domain.grants.assignment import Assignment, Grant
from vgpu.domain.identifiers import CardUuid

MAX_SETS: Final = 1_000  # that are looked at, about 2 ms: all sets of up to twelve cards

CardSet: TypeAlias = frozenset[CardUuid]
Jobs: TypeAlias = Sequence[CardSet]


def overlaps(cards: CardSet, jobs: Iterable[CardSet]) -> list[CardSet]:
    """Return the jobs that have some cards of a set, and not the same cards."""
    return [job for job in jobs if job != cards and not job.isdisjoint(cards)]


def of_grants(grants: Sequence[Grant]) -> CardSet | None:
    """Return the cards of a container with shares of several cards; None for another one."""
    cards = frozenset(grant.gpu for grant in grants if not grant.whole)
    return cards if len(cards) > 1 else None


def of_assignment(assignment: Assignment) -> Iterator[CardSet]:
    """Yield the cards of each container that has shares of several cards."""
    for grants in assignment.containers.values():
        if (cards := of_grants(grants)) is not None:
            yield cards


def overlapped(assignment: Assignment, jobs: Jobs) -> int:
    """Return with how many jobs an assignment overlaps, over all of its containers."""
    return sum(len(overlaps(cards, jobs)) for cards in of_assignment(assignment)) if jobs else 0


def fewest_overlaps(
    ordered: Sequence[CardState],
    best: Sequence[CardState],
    jobs: Jobs,
    is_as_good: Callable[[Sequence[CardState]], bool],
) -> list[CardState]:
    """Return the cards for a job: the first set with the fewest overlaps, `best` where no other set has fewer.

    Args:
        ordered: the cards that fit, in the policy's order.
        best: the policy's own choice.
        jobs: the cards of each job on the node.
        is_as_good: whether the policy may take a set instead of its own choice.
    """
    chosen, fewest = list(best), len(overlaps(_uuids(best), jobs))
    for cards in _candidates(ordered, len(best), jobs) if fewest else ():
        count = len(overlaps(_uuids(cards), jobs))
        if count < fewest and is_as_good(cards):
            chosen, fewest = list(cards), count
        if not fewest:
            break
    return chosen


def _candidates(ordered: Sequence[CardState], count: int, jobs: Jobs) -> Iterator[Sequence[CardState]]:
    """Yield sets in the policy's order, and then those of other jobs, which may lie beyond `MAX_SETS`."""
    yield from islice(combinations(ordered, count), MAX_SETS)
    for job in jobs:
        same = [state for state in ordered if state.card.uuid in job]
        if len(same) == len(job) == count:
            yield same


def _uuids(cards: Iterable[CardState]) -> CardSet:
    return frozenset(state.card.uuid for state in cards)
