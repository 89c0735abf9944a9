"""Small programs in C: requests of many short kernels, one after the other, and what is read of them.

A request is 60 kernels of 9 us, as that of a small model in eager mode (`benchmarks.applications.small_model`). Where
there are fewer processors than programs it is a few longer kernels, of as much GPU time, and a sleep: otherwise
programs would wait for a processor, and not for the card.
"""

import os
import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

from benchmarks.compute.load import run_together, sleep_until
from benchmarks.compute.node import Env, cards_of
from benchmarks.programs import build

# The arbiter finds out within two seconds how programs share the card best.
WARM_NS: Final = 4_000_000_000


@dataclass(frozen=True, slots=True)
class RequestLoad:
    """The work of one process of `requests.c`.

    Attributes:
        launches: kernels of a request.
        us: duration of each.
        host_us: the host's work for each.
        rest_us: sleep after each request.
        first_us: kernels before the first request.
    """

    launches: int = 60
    us: int = 9
    host_us: int = 10
    rest_us: int = 0
    first_us: tuple[int, ...] = ()

    @property
    def kernels_us(self) -> int:
        """GPU time of a request."""
        return self.launches * self.us

    def command(self, seconds: float) -> list[str]:
        """Return the command line."""
        sizes = (self.launches, self.us, self.host_us, self.rest_us, seconds, *self.first_us)
        return [str(build.program("requests")), *map(str, sizes)]


EAGER: Final = RequestLoad()
FEW_PROCESSORS: Final = RequestLoad(launches=6, us=90, host_us=0, rest_us=600)


def small_program(programs: int, first_us: tuple[int, ...] = ()) -> RequestLoad:
    """Return the load of each of `programs` programs. Its first kernels take `first_us` us each."""
    load = EAGER if (os.cpu_count() or 1) >= programs else FEW_PROCESSORS
    return replace(load, first_us=first_us)


@dataclass(frozen=True, slots=True)
class Requests:
    """The requests of one program that ended in the time that counts, or later.

    Attributes:
        ends_us: when each ended, since the begin.
        times_us: how long each took.
        seconds: of the time that counts.
    """

    ends_us: Sequence[int]
    times_us: Sequence[int]
    seconds: float

    @classmethod
    def of(cls, answer: Mapping[str, Any], seconds: float) -> "Requests":
        """Read a program's last answer."""
        return cls(answer["ends_us"], answer["times_us"], seconds)

    @property
    def longest_ms(self) -> float:
        """The longest request; the whole time where none ended, and all that followed the last one at least."""
        last_us = self.ends_us[-1] if self.ends_us else 0
        return max([*self.times_us, self.seconds * 1e6 - last_us]) / 1000

    def longest_since_ms(self, since_us: float) -> float:
        """Return the longest request that ended after a time, or would have."""
        later = [took for end, took in zip(self.ends_us, self.times_us, strict=True) if end >= since_us]
        last_us = self.ends_us[-1] if self.ends_us else 0
        return max([*later, self.seconds * 1e6 - last_us]) / 1000

    def rate(self, since_us: float = 0, until_us: float | None = None) -> float:
        """Return the requests a second that ended in a part of the time."""
        until = self.seconds * 1e6 if until_us is None else until_us
        return sum(since_us <= end < until for end in self.ends_us) / ((until - since_us) / 1e6)


@dataclass(slots=True)
class TurnCount:
    """How many turns containers take in a second, by their regions: few while turns are joint, because they last."""

    envs: Sequence[Env]
    each_s: float = field(default=0.0, init=False)

    def watch(self, begin_ns: int, seconds: float) -> None:
        """Wait until the begin, and then for the seconds."""
        sleep_until(begin_ns)
        before = self._turns()
        sleep_until(begin_ns + round(seconds * 1e9))
        self.each_s = (self._turns() - before) / seconds

    def _turns(self) -> int:
        return sum(card.activity.turns for env in self.envs for card in cards_of(env))


def serve_together(
    work: Sequence[tuple[RequestLoad, Env]], seconds: float, meanwhile: Callable[[int], None]
) -> list[Requests]:
    """Run programs at the same time, and return their requests."""
    answers = run_together(work, seconds, meanwhile, WARM_NS)
    return [Requests.of(answer, seconds) for answer in answers]


def p99_ms(every: Sequence[Requests]) -> float:
    """Return p99 of all programs' requests."""
    times = [took for requests in every for took in requests.times_us]
    return statistics.quantiles(times, n=100)[98] / 1000 if len(times) > 1 else max(times, default=0) / 1000


RATES: Final = ("longest request ms", "p99 ms", "requests each s", "least of one each s", "most of one each s")


def rate_figures(every: Sequence[Requests]) -> dict[str, float]:
    """Return the longest request of anybody, p99, and the requests a second: of all, the fewest and the most of one."""
    rates = [requests.rate() for requests in every]
    longest = max(requests.longest_ms for requests in every)
    return dict(zip(RATES, (longest, p99_ms(every), sum(rates), min(rates), max(rates)), strict=True))
