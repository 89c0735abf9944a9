"""How much larger a quantile of times is under a fault, with the interval in which the ratio lies.

The rounds of one run alternate between healthy and failing, so that what else the machine does meets both. The interval
is a bootstrap over rounds (Efron and Tibshirani, An Introduction to the Bootstrap, chapter 13): calls of one round are
not independent of each other, rounds are.
"""

import random
import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Final

SAMPLES: Final = 2_000
OUTSIDE: Final = 0.025  # of the samples, on each side of the interval


@dataclass(frozen=True, slots=True)
class CallRound:
    """The times of the calls of one round."""

    healthy: Sequence[float]
    failing: Sequence[float]


@dataclass(frozen=True, slots=True)
class Ratio:
    """A ratio, and the limits of the interval that has it with a probability of 95 %."""

    value: float
    low: float
    high: float

    def verdict(self, goal: float) -> str:
        """Say whether the ratio is at most the goal."""
        if self.high <= goal:
            return "held"
        return "missed" if self.low > goal else "not decided"


def p99(times: Sequence[float]) -> float:
    """Return the 99th percentile of at least two times."""
    return statistics.quantiles(times, n=100)[98]


def of(rounds: Sequence[CallRound], seed: int = 1) -> Ratio:
    """Return the 99th percentile of all failing calls, divided by that of all healthy ones."""
    choose = random.Random(seed)
    samples = sorted(_ratio(choose.choices(rounds, k=len(rounds))) for _ in range(SAMPLES))
    outside = int(OUTSIDE * SAMPLES)
    return Ratio(_ratio(rounds), samples[outside], samples[-outside - 1])


def _ratio(rounds: Sequence[CallRound]) -> float:
    failing = list(chain.from_iterable(calls.failing for calls in rounds))
    return p99(failing) / p99(list(chain.from_iterable(calls.healthy for calls in rounds)))
