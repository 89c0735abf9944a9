"""Native and limited, interleaved: a ratio is the median of the ratios of rounds in which no side has an advantage.

The side that is measured first is slower, and the machine's clock rate drifts. So a round measures native, limited,
limited, native.
"""

import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeVar

from benchmarks.record import result

Pair = tuple[float, float]  # native, limited
Answer = TypeVar("Answer")


@dataclass(frozen=True, slots=True)
class Cost:
    """One figure: medians in nanoseconds, and the ratio of limited to native.

    Attributes:
        name: the call.
        native_ns: median of all rounds.
        limited_ns: median of all rounds.
        ratio: median of the rounds' ratios.
        middle: the first and third quartile of the rounds' ratios.
        goal: for the ratio; None = no goal.
        failed: number of programs that could not start, natively and limited.
    """

    name: str
    native_ns: float
    limited_ns: float
    ratio: float
    middle: Pair
    goal: float | None = None
    failed: tuple[int, int] = (0, 0)

    def as_row(self, part: str) -> result.ResultRow:
        """Return the row of a result: the ratio, with the medians as details. A ratio over its goal is a fault."""
        missed = self.goal is not None and self.ratio > self.goal
        return result.ResultRow(
            id=result.slug(part, self.name),
            value=self.ratio,
            unit="ratio",
            goal="" if self.goal is None else f"<= {self.goal:g}",
            fault=f"{self.ratio - (self.goal or 0):.3f} over" if missed else "",
            details={
                "name": self.name,
                "native_ns": self.native_ns,
                "limited_ns": self.limited_ns,
                "quartiles": list(self.middle),
                "failed": list(self.failed),
            },
        )


def interleave(measure: Callable[[int], Answer], pairs: int) -> list[tuple[Answer, Answer]]:
    """Measure both sides, 0 and 1, `pairs` times each, in the order 0 1 1 0 0 1 1 0; return pairs of side 0 and 1."""
    found = []
    for number in range(pairs):
        first = number % 2
        answers = {side: measure(side) for side in (first, 1 - first)}
        found.append((answers[0], answers[1]))
    return found


def cost_of(name: str, pairs: Sequence[Pair]) -> Cost:
    """Return the figure. Two consecutive pairs are a round."""
    native, limited = zip(*pairs, strict=True)
    ratios = [_ratio(pairs[first : first + 2]) for first in range(0, len(pairs), 2)]
    medians = statistics.median(native), statistics.median(limited), statistics.median(ratios)
    return Cost(name, *medians, _quartiles(ratios))


def _ratio(of_round: Sequence[Pair]) -> float:
    natively, limited = (sum(times) for times in zip(*of_round, strict=True))
    return float(limited / natively)


def _quartiles(ratios: Sequence[float]) -> Pair:
    if len(ratios) == 1:
        return ratios[0], ratios[0]
    low, _, high = statistics.quantiles(ratios, n=4, method="inclusive")
    return low, high
