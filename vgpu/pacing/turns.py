"""Which entries of a bounded list are kept, where owners have turns: the crowd of one displaces none of the others'."""

from collections import Counter
from collections.abc import Callable, Hashable, Iterable
from typing import TypeVar

V = TypeVar("V")


def taken(values: Iterable[V], owner: Callable[[V], Hashable], most: int) -> list[V]:
    """Return at most `most` of the values, in their order.

    The first one of each owner is kept before the second one of any, and so on: an owner keeps its earliest values, and
    what others add never displaces more of it than their equal part.
    """
    counts = Counter[Hashable]()
    ranked: list[tuple[int, int, V]] = []
    for place, value in enumerate(values):
        of = owner(value)
        ranked.append((counts[of], place, value))
        counts[of] += 1
    ranked.sort(key=lambda entry: entry[:2])
    return [value for _, _, value in sorted(ranked[:most], key=lambda entry: entry[1])]
