"""Two applications beside each other: each alone, both natively, and both in containers with shares.

All processes of a part are started together. Each round measures all of that once, and compares only figures of the
round: the host's speed, on which a program with many launches depends, changes within minutes.
"""

import math
import statistics
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import Any, Final, Self

from benchmarks.applications.application import Application, together
from benchmarks.compute.node import BenchmarkNode, Env, cards_of
from benchmarks.compute.scenario import SHOWN, Goal, ScenarioFigure, at_least, at_most
from benchmarks.container import native_env
from vgpu.domain.formats import region

Asked = tuple[int | None, str]
BURST_40: Final[Asked] = (40, "burst")
BEST_EFFORT: Final[Asked] = (None, "best-effort")
HALF: Final[Asked] = (50, "burst")
SUM_LOSS = 0.02  # that a pair may do less than natively, of what each does alone
NEVER_WORSE = 1.0  # the goal of a latency over that of the native pair


@dataclass(frozen=True, slots=True)
class Pair:
    """Two tenants and the goals of the first one's latency, over that of it alone, and of the second one's rate.

    Attributes:
        name: in the table.
        work: module below `benchmarks.applications` and kind, of each.
        asked: cores and policy of each.
        p50: most that the first one's p50 may be, over alone; None = only shown.
        p99: the same of p99.
        second: least rate of the second one, in percent of alone; None = only shown.
        sum: least sum of both rates, each over its own alone; None = the native pair's less 0.02.
    """

    name: str
    work: tuple[tuple[str, str], tuple[str, str]]
    asked: tuple[Asked, Asked]
    p50: float | None = None
    p99: float | None = None
    second: float | None = None
    sum: float | None = None


DECODE: Final = (
    Pair(
        "eager decode beside training",
        (("decode", "eager"), ("trainer", "steps")),
        (BURST_40, BEST_EFFORT),
        1.15,
        1.5,
        70,
    ),
    Pair(
        "graph decode beside training",
        (("decode", "graph"), ("trainer", "steps")),
        (BURST_40, BEST_EFFORT),
        1.1,
        1.5,
        sum=0.98,
    ),
    Pair(
        "requests beside training",
        (("decode", "requests"), ("trainer", "steps")),
        (BURST_40, BEST_EFFORT),
        1.15,
        1.5,
        88,
    ),
)
TRAINING: Final = (
    Pair("two trainers", (("trainer", "steps"), ("trainer", "steps")), (HALF, HALF)),
    Pair("training with data loading beside training", (("trainer", "loader"), ("trainer", "steps")), (HALF, HALF)),
)
JAX: Final = (
    Pair("JAX beside PyTorch training", (("jax_train", "steps"), ("trainer", "steps")), (HALF, HALF)),
    Pair("eager decode beside JAX", (("decode", "eager"), ("jax_train", "steps")), (BURST_40, BEST_EFFORT)),
)


@dataclass(slots=True)
class Side:
    """What one tenant did: p50 and p99 of its pieces in ms, and pieces per second."""

    p50: float
    p99: float
    rate: float

    @classmethod
    def of(cls, answer: Mapping[str, Any]) -> Self:
        """Read an application's answer. A tenant that ended fewer than two pieces has the rate 0."""
        times = answer["times_ms"]
        if len(times) < 2:  # noqa: PLR2004  # a percentile needs two
            return cls(math.inf, math.inf, 0.0)
        cuts = statistics.quantiles(times, n=100)
        return cls(statistics.median(times), cuts[98], answer["per_second"])


@dataclass(frozen=True, slots=True)
class PairRound:
    """Figures of a pair that were measured one after the other: of each alone, of the native pair, and of ours."""

    alone: Sequence[Side]
    native: Mapping[str, float]
    ours: Mapping[str, float]


@dataclass(slots=True)
class PairStage:
    """The processes of a part. `nodes` are ended with it."""

    stack: ExitStack
    native: dict[tuple[str, int], Application] = field(default_factory=dict)
    ours: dict[tuple[tuple[str, Asked], ...], tuple[list[Application], list[Env]]] = field(default_factory=dict)

    def start(self, pairs: Sequence[Pair]) -> None:
        """Start every process that the pairs need, and wait until all are ready."""
        for pair in pairs:
            for place, module in enumerate(modules(pair)):
                key = (module, modules(pair)[:place].count(module))
                if key not in self.native:
                    self.native[key] = self._application(module, native_env())
            self._start_ours(pair)
        for application in [*self.native.values(), *[app for apps, _ in self.ours.values() for app in apps]]:
            application.await_ready()

    def _start_ours(self, pair: Pair) -> None:
        key = tenants(pair)
        if key in self.ours:
            return
        node = self.stack.enter_context(BenchmarkNode())
        envs = [node.container(cores, policy) for _, (cores, policy) in key]
        self.ours[key] = ([self._application(name, env) for (name, _), env in zip(key, envs, strict=True)], envs)

    def _application(self, module: str, env: Env) -> Application:
        application = Application(module, env)
        self.stack.callback(application.end)
        return application

    def alone_of(self, pair: Pair, place: int, seconds: float) -> Side:
        """Return what a tenant does alone."""
        module, kind = pair.work[place]
        return Side.of(together([(self.native[module, 0], kind)], seconds, place)[0])

    def native_pair(self, pair: Pair, seconds: float) -> list[Side]:
        """Return what both do beside each other by the card's own time slices."""
        names = modules(pair)
        work = [(self.native[name, names[:place].count(name)], pair.work[place][1]) for place, name in enumerate(names)]
        return [Side.of(answer) for answer in together(work, seconds)]

    def our_pair(self, pair: Pair, seconds: float) -> tuple[list[Side], dict[str, float]]:
        """Return what both do in their containers, and the handovers a second and waits of the first one."""
        applications, envs = self.ours[tenants(pair)]
        before, begun = [_use(env) for env in envs], time.monotonic()
        work = [(app, kind) for app, (_, kind) in zip(applications, pair.work, strict=True)]
        sides = [Side.of(answer) for answer in together(work, seconds)]
        return sides, _per_second(before, [_use(env) for env in envs], time.monotonic() - begun)

    def round(self, pair: Pair, seconds: float) -> PairRound:
        """Measure everything once."""
        alone = [self.alone_of(pair, place, seconds) for place in range(len(pair.work))]
        native = figures(alone, self.native_pair(pair, seconds))
        sides, counters = self.our_pair(pair, seconds)
        return PairRound(alone, native, figures(alone, sides) | counters)


def modules(pair: Pair) -> tuple[str, ...]:
    """Return the module of each tenant."""
    return tuple(module for module, _ in pair.work)


def tenants(pair: Pair) -> tuple[tuple[str, Asked], ...]:
    """Return module and share of each tenant: what identifies the containers of a pair."""
    return tuple(zip(modules(pair), pair.asked, strict=True))


def _use(env: Env) -> region.CardUse | None:
    return next(iter(cards_of(env)), None)


def _per_second(
    before: Sequence[region.CardUse | None], after: Sequence[region.CardUse | None], seconds: float
) -> dict[str, float]:
    """Return what the containers' counters say, per second with warm-up; nothing of one that has used no card before.

    What the first one does not use of the card is the most that the second one can reach, if its kernels fill the card.
    """
    figures = {}
    for number, (was, now) in enumerate(zip(before, after, strict=True), 1):
        if was is None or now is None:
            continue
        figures[f"card used by {number} %"] = 100 * (now.gpu_ns - was.gpu_ns) / 1e9 / seconds
        figures[f"handovers of {number} each s"] = (now.activity.handovers - was.activity.handovers) / seconds
        figures[f"waits of {number} for turns ms each s"] = (
            (now.activity.turn.ns - was.activity.turn.ns) / 1e6 / seconds
        )
    return figures


def figures(alone: Sequence[Side], both: Sequence[Side]) -> dict[str, float]:
    """Return the figures of a pair."""
    first = both[0]
    rates = [side.rate / of.rate if of.rate else 0.0 for side, of in zip(both, alone, strict=True)]
    return {
        "p50 over alone": first.p50 / alone[0].p50,
        "p99 over alone": first.p99 / alone[0].p99,
        "p50 ms": first.p50,
        "p99 ms": first.p99,
        "first %": 100 * rates[0],
        "second %": 100 * rates[1],
        "sum of both": sum(rates),
    }


def goals(pair: Pair, native: Mapping[str, float]) -> dict[str, Goal]:
    """Return the goals of a pair's figures; where it names none, the native pair's figures are to be reached."""
    worst50, worst99 = (native[name] * NEVER_WORSE for name in ("p50 over alone", "p99 over alone"))
    return {
        "p50 over alone": at_most(worst50 if pair.p50 is None else pair.p50),
        "p99 over alone": at_most(worst99 if pair.p99 is None else pair.p99),
        "second %": SHOWN if pair.second is None else at_least(pair.second),
        "sum of both": at_least(native["sum of both"] - SUM_LOSS if pair.sum is None else pair.sum),
    }


def measure(part: str, pairs: Sequence[Pair], seconds: float, rounds: int) -> Iterator[ScenarioFigure]:
    """Measure each pair and yield its figures."""
    with ExitStack() as stack:
        stage = PairStage(stack)
        stage.start(pairs)
        for pair in pairs:
            every = [stage.round(pair, seconds) for _ in range(rounds)]
            native = {name: statistics.median(measured.native[name] for measured in every) for name in every[0].native}
            wanted = goals(pair, native)
            yield from _alone_rows(part, pair, [measured.alone for measured in every])
            for name in every[0].ours:
                values = [measured.ours[name] for measured in every]
                goal = wanted.get(name, SHOWN)
                yield ScenarioFigure(part, pair.name, name, goal, native.get(name), values, seconds, 0.0)


def _alone_rows(part: str, pair: Pair, rounds: Sequence[Sequence[Side]]) -> Iterator[ScenarioFigure]:
    named = {
        "alone p50 ms": [first.p50 for first, _ in rounds],
        "alone p99 ms": [first.p99 for first, _ in rounds],
        "second alone p50 ms": [second.p50 for _, second in rounds],
    }
    for name, values in named.items():
        yield ScenarioFigure(part, pair.name, name, SHOWN, None, values, 0.0, 0.0)
