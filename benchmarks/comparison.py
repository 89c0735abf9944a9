"""Native and limited by turns: a figure is the median of the ratios within rounds that favour neither side.

Whoever is asked first is slower, and the machine's clock drifts: so a round asks native, limited, limited, native.
"""

import statistics
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Any, TypeVar

Pair = tuple[float, float]  # native, limited
Answer = TypeVar("Answer")


@dataclass(frozen=True, slots=True)
class Cost:
    """One figure: medians in nanoseconds, and the rounds' ratios of limited to native.

    Attributes:
        name: the call.
        native_ns: of all rounds.
        limited_ns: likewise.
        ratio: the median of the rounds' ratios.
        middle: between which the middle half of them lies; the spread.
        goal: for the ratio, where there is one.
        failed: how many programs could not start, natively and limited.
    """

    name: str
    native_ns: float
    limited_ns: float
    ratio: float
    middle: Pair
    goal: float | None = None
    failed: tuple[int, int] = (0, 0)

    def as_json(self) -> dict[str, Any]:
        """Return the figure for machines."""
        return asdict(self)


def by_turns(ask: Callable[[int], Answer], pairs: int) -> list[tuple[Answer, Answer]]:
    """Ask both sides, 0 and 1, so many times, in the order 0 1 1 0 0 1 1 0."""
    found = []
    for number in range(pairs):
        first = number % 2
        answers = {side: ask(side) for side in (first, 1 - first)}
        found.append((answers[0], answers[1]))
    return found


def cost_of(name: str, pairs: Sequence[Pair]) -> Cost:
    """Return the figure; two pairs that follow each other are a round."""
    native, limited = zip(*pairs, strict=True)
    ratios = [_ratio(pairs[first : first + 2]) for first in range(0, len(pairs), 2)]
    return Cost(name, statistics.median(native), statistics.median(limited), statistics.median(ratios), _middle(ratios))


def _ratio(of_round: Sequence[Pair]) -> float:
    natively, limited = (sum(times) for times in zip(*of_round, strict=True))
    return float(limited / natively)


def _middle(ratios: Sequence[float]) -> Pair:
    if len(ratios) == 1:
        return ratios[0], ratios[0]
    low, _, high = statistics.quantiles(ratios, n=4, method="inclusive")
    return low, high
