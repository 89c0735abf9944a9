"""Pairs of C loads that behave like programs.

Short requests with pauses beside a burner; very long kernels beside short ones; and a graph that launches itself on the
card beside copies, which needs nvcc.
"""

import functools
import statistics
import time
from collections.abc import Sequence
from typing import Any

from benchmarks.compute.load import FeederLoad, SelfLaunching, TimedLoad, of_alone_percent, run_together, sleep_until
from benchmarks.compute.node import Env, LaunchPlace, gpu_seconds
from benchmarks.compute.scenario import SHOWN, Figures, Scenario, at_least, at_most, near
from benchmarks.container import native_env

REQUEST_US, SHORT_US = 460, 500
RESTING = TimedLoad("rest", REQUEST_US)  # two kernels, a wait for them, then 8 ms of sleep
BURNER = FeederLoad("work", REQUEST_US)
EAGER = TimedLoad("eager", 4)  # 360 kernels of 4 us, with 11 us of host work for each
SELF_LAUNCHING = SelfLaunching(500, rounds=20)  # 10 ms a launch by the host
COPIES = FeederLoad("copy", 500)
LONG_KERNELS = {100_000: 20.0, 700_000: 20.0, 3_000_000: 300.0}  # us of a kernel, seconds of the measurement
LONG_SHARES = ((30, 60), (10, 80), (80, 10))  # of the short kernels, of the long ones


def scenarios(seconds: float) -> list[Scenario]:
    """Return the pairs."""
    return [
        _beside_burner("two kernels, then 8 ms of sleep", RESTING, (1.25, 1.6, 86), seconds),
        _beside_burner("360 launches a token", EAGER, (1.15, 1.5, 70), seconds),
        _long(700_000, 30, 60),
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


def long_kernels() -> list[Scenario]:
    """Return the pairs of short and long kernels."""
    return [_long(us, *both) for us in LONG_KERNELS for both in LONG_SHARES]


def _long(us: int, short: int, long: int) -> Scenario:
    def measure(place: LaunchPlace) -> Figures:
        envs = [place.container(short), place.container(long)]
        loads = [TimedLoad("steady", SHORT_US), TimedLoad("steady", us)]
        answers = run_together(list(zip(loads, envs, strict=True)), LONG_KERNELS[us])
        return {
            f"fixed {cores} %": share(answer, load.us)
            for cores, answer, load in zip((short, long), answers, loads, strict=True)
        }

    goals = {f"fixed {cores} %": near(cores, 3) for cores in (short, long)}
    return Scenario("loads", f"kernels of 0.5 ms beside kernels of {us / 1e6:g} s", goals, measure)


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


def share(answer: dict[str, Any], us: int) -> float:
    """Return the percentage of the time that kernels of `us` took, from the end of the first to that of the last."""
    ends = answer["times_us"]
    return float(100 * us * (len(ends) - 1) / (ends[-1] - ends[0]))
