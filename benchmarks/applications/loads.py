"""Pairs of C loads that behave like programs.

Short requests with pauses beside a burner; very long kernels beside short ones; and a graph that launches itself on the
card beside copies, which needs nvcc.
"""

import functools
import statistics
import time
from collections.abc import Sequence

from benchmarks.applications.long_loads import LongPair
from benchmarks.compute.load import FeederLoad, SelfLaunching, TimedLoad, of_alone_percent, run_together, sleep_until
from benchmarks.compute.node import Env, LaunchPlace, gpu_seconds
from benchmarks.compute.scenario import SHOWN, Figures, Scenario, at_least, at_most, near
from benchmarks.container import native_env

REQUEST_US = 460
RESTING = TimedLoad("rest", REQUEST_US)  # two kernels, a wait for them, then 8 ms of sleep
BURNER = FeederLoad("work", REQUEST_US)
EAGER = TimedLoad("eager", 4)  # 360 kernels of 4 us, with 11 us of host work for each
SELF_LAUNCHING = SelfLaunching(500, rounds=20)  # 10 ms a launch by the host
COPIES = FeederLoad("copy", 500)
LONG = LongPair(
    "loads", "kernels of 0.5 ms beside kernels of 0.7 s", TimedLoad("steady", 700_000), (30, 60), 20.0, 20.0
)


def scenarios(seconds: float) -> list[Scenario]:
    """Return the pairs."""
    return [
        _beside_burner("two kernels, then 8 ms of sleep", RESTING, (1.25, 1.6, 86), seconds),
        _beside_burner("360 launches a token", EAGER, (1.15, 1.5, 70), seconds),
        LONG.scenario(),
        _beside_copies(seconds),
    ]


def _beside_burner(name: str, load: TimedLoad, bounds: tuple[float, float, float], seconds: float) -> Scenario:
    """Return a load at burst 40 beside a best-effort burner; `bounds` of p50 and p99 over alone, and of the burner."""

    def measure(place: LaunchPlace) -> Figures:
        envs = [place.container(40, "burst"), place.container(None, "best-effort")]
        used: list[float] = []
        pieces, burner = run_together(
            [(load, envs[0]), (BURNER, envs[1])],
            seconds,
            lambda begin_ns: used.append(_used(envs[0], begin_ns, seconds)),
        )
        (p50, p99), (alone50, alone99) = _percentiles(pieces["times_us"]), _alone(load, seconds)
        figures = {"p50 over alone": p50 / alone50, "p99 over alone": p99 / alone99, "p50 ms": p50}
        figures["burner, of alone %"] = of_alone_percent(BURNER, burner)
        return figures if place.native else figures | {"card used by the first %": used[0]}

    goals = {"p50 over alone": at_most(bounds[0]), "p99 over alone": at_most(bounds[1]), "p50 ms": SHOWN}
    goals |= {"burner, of alone %": at_least(bounds[2]), "card used by the first %": SHOWN}
    return Scenario("loads", name, goals, measure)


def _used(env: Env, begin_ns: int, seconds: float) -> float:
    """Return how much of the card a container uses in the time that counts: the rest is the most the other can have."""
    sleep_until(begin_ns)
    before, begun = gpu_seconds(env), time.monotonic()
    time.sleep(seconds)
    return 100 * (gpu_seconds(env) - before) / (time.monotonic() - begun)


def _alone(load: TimedLoad, seconds: float) -> tuple[float, float]:
    return _percentiles(run_together([(load, native_env())], seconds)[0]["times_us"])


def _percentiles(times_us: Sequence[int]) -> tuple[float, float]:
    cuts = statistics.quantiles(times_us, n=100)
    return cuts[49] / 1000, cuts[98] / 1000


def _beside_copies(seconds: float) -> Scenario:
    """Return the graph and the copies, each at fixed 40.

    A share of the graph is of what it does natively alone, because the card does nothing else between two rounds.
    """
    loads: dict[str, FeederLoad | SelfLaunching] = {"graph, of alone %": SELF_LAUNCHING, "copies, of alone %": COPIES}

    def measure(place: LaunchPlace) -> Figures:
        answers = run_together([(load, place.container(40)) for load in loads.values()], seconds)
        done = zip(loads.items(), answers, strict=True)
        return {name: 100 * answer["count"] / _count_alone(load, seconds) for (name, load), answer in done}

    goals = {"graph, of alone %": near(40, 1.5), "copies, of alone %": SHOWN}
    return Scenario("loads", "a graph that launches itself beside copies", goals, measure)


@functools.cache
def _count_alone(load: FeederLoad | SelfLaunching, seconds: float) -> int:
    return int(run_together([(load, native_env())], seconds)[0]["count"])
