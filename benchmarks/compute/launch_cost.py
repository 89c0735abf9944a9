"""What a launch without a share costs the host, compared with native."""

import os

from benchmarks.comparison import Cost, cost_of, interleave
from benchmarks.compute.load import Feeder, FeederLoad
from benchmarks.compute.node import Env, LaunchPlace
from benchmarks.compute.scenario import SHOWN, Figures, Scenario, at_most
from benchmarks.container import native_env

GOAL = 1.03
LOAD = FeederLoad("launch", 1)
QUICK, FULL = 20, 100  # pairs


def costs(*, quick: bool) -> list[Scenario]:
    """One container alone on the card. The native figure is native on both sides: the noise of the ratio."""

    def measure(place: LaunchPlace) -> Figures:
        cost = _compare(native_env(), place.container(None, "burst"), QUICK if quick else FULL)
        return {"ratio": cost.ratio, "ns": cost.limited_ns}

    return [Scenario("costs", "a launch without a share", {"ratio": at_most(GOAL), "ns": SHOWN}, measure)]


def _compare(native: Env, other: Env, pairs: int) -> Cost:
    """Measure both sides on one processor, interleaved."""
    processors = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {min(processors)})
    feeders = [Feeder(LOAD, 1, env) for env in (native, other)]
    for feeder in feeders:
        feeder.await_start()
    found = interleave(lambda side: _launch_ns(feeders[side]), pairs)
    for feeder in feeders:
        feeder.end()
    os.sched_setaffinity(0, processors)
    return cost_of(LOAD.kind, found)


def _launch_ns(feeder: Feeder) -> float:
    feeder.go()
    answer = feeder.answer()
    return float(answer["ns"] / answer["count"])
