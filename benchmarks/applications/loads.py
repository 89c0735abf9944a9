"""Pairs of C loads that behave like programs: short requests with pauses, and very long kernels beside short ones."""

import functools
import statistics
from collections.abc import Sequence
from typing import Any

from benchmarks.compute.load import Load, Timed, run_together
from benchmarks.compute.node import Place
from benchmarks.compute.scenario import SHOWN, Figures, Scenario, at_least, at_most, near
from benchmarks.container import native_env

REQUEST_US, LONG_US, SHORT_US = 460, 700_000, 500
RESTING = Timed("rest", REQUEST_US)  # two kernels, a wait for them, then 8 ms of sleep
BURNER = Load("work", REQUEST_US)
LONG_SECONDS = 20.0  # 0.7 s are 3.5 % of this time


def scenarios(seconds: float) -> list[Scenario]:
    """Return the pairs."""
    return [_resting(seconds), _long()]


def _resting(seconds: float) -> Scenario:
    def measure(place: Place) -> Figures:
        envs = [place.container(40, "burst"), place.container(None, "best-effort")]
        requests, burner = run_together([(RESTING, envs[0]), (BURNER, envs[1])], seconds)
        (p50, p99), (alone50, alone99) = _percentiles(requests["times_us"]), _alone(seconds)
        share = 100 * burner["count"] * BURNER.us * 1000 / burner["ns"]
        return {"p50 over alone": p50 / alone50, "p99 over alone": p99 / alone99, "p50 ms": p50, "burner %": share}

    goals = {"p50 over alone": at_most(1.25), "p99 over alone": at_most(1.6), "p50 ms": SHOWN}
    return Scenario("loads", "two kernels, then 8 ms of sleep", {**goals, "burner %": at_least(86)}, measure)


@functools.cache
def _alone(seconds: float) -> tuple[float, float]:
    return _percentiles(run_together([(RESTING, native_env())], seconds)[0]["times_us"])


def _percentiles(times_us: Sequence[int]) -> tuple[float, float]:
    cuts = statistics.quantiles(times_us, n=100)
    return cuts[49] / 1000, cuts[98] / 1000


def _long() -> Scenario:
    def measure(place: Place) -> Figures:
        envs = [place.container(30), place.container(60)]
        loads = [Timed("steady", SHORT_US), Timed("steady", LONG_US)]
        answers = run_together(list(zip(loads, envs, strict=True)), LONG_SECONDS)
        return {
            f"fixed {cores} %": share(each, load.us) for cores, each, load in zip((30, 60), answers, loads, strict=True)
        }

    goals = {"fixed 30 %": near(30, 3), "fixed 60 %": near(60, 3)}
    return Scenario("loads", "kernels of 0.5 ms beside kernels of 0.7 s", goals, measure)


def share(answer: dict[str, Any], us: int) -> float:
    """Return the percentage of the time that kernels of `us` took, from the end of the first to that of the last."""
    ends = answer["times_us"]
    return float(100 * us * (len(ends) - 1) / (ends[-1] - ends[0]))
