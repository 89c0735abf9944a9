"""One container alone on the card: the share of the card's time it gets, for kernels, streams, graphs and processes.

Kernels spin for a fixed time of the card's own clock, so the share is measured without the limiter's figures.
"""

import functools
from dataclasses import dataclass

from benchmarks.compute.load import Fed, FeederLoad, feed
from benchmarks.compute.node import LaunchPlace, gpu_seconds
from benchmarks.compute.scenario import SHOWN, Figures, Goal, Scenario, at_least, at_most, near
from benchmarks.container import native_env

HALF_MS = FeederLoad("kernel", 500)
ASKED = (5, 10, 20, 30, 50, 80, 95)
QUICK = (10, 50)
STALL_MS = 20.0  # goal for kernels of at most 1 ms and shares of at least 10 %
SHORT_US = 1000
LONG_S = 5.0
STALLS = (10, 20, 50)
PACED = 94.0  # percent of its native work: two points of thirty
OF_NATIVE, LONGEST = "of native %", "longest launch ms"


@dataclass(frozen=True, slots=True)
class LoadCase:
    """A load under a share. The share it gets may differ from `cores` by `points` percent of the card."""

    name: str
    load: FeederLoad
    cores: int = 30
    processes: int = 1
    points: float = 2.0
    long: bool = False
    paced: bool = False  # the load needs less than its share

    @property
    def waits(self) -> bool:
        """Whether the load is idle natively too: then its share is of the time, and not of its native work."""
        return self.load.kind == "sync" and not self.paced

    @property
    def longest(self) -> Goal:
        """Return the goal for the longest launch."""
        is_bound = self.load.us <= SHORT_US and self.processes == 1 and self.cores >= SHORT_US // 100
        return at_most(STALL_MS) if is_bound else SHOWN


SHAPES = (
    LoadCase("10 us kernels", FeederLoad("kernel", 10)),
    LoadCase("100 us kernels", FeederLoad("kernel", 100)),
    LoadCase("5 ms kernels", FeederLoad("kernel", 5000)),
    LoadCase("23 ms kernels", FeederLoad("kernel", 23000)),
    LoadCase("100 ms kernels", FeederLoad("kernel", 100000), long=True),
    LoadCase("16 streams", FeederLoad("kernel", 500, 16)),
    LoadCase("cooperative", FeederLoad("cooperative", 500)),
    LoadCase("graphs of 1,000 kernels", FeederLoad("graph", 10000)),
    LoadCase("per-thread stream", FeederLoad("thread", 500)),
    LoadCase("each waited for", FeederLoad("sync", 500)),
    LoadCase("8 processes", HALF_MS, processes=8),
    LoadCase("at leisure, half of 60 %", FeederLoad("sync", 500, idle_us=1000), cores=60, paced=True),
)


def curve(seconds: float, *, quick: bool) -> list[Scenario]:
    """0.5 ms kernels at every share."""
    asked = QUICK if quick else ASKED
    cases = [LoadCase(f"0.5 ms kernels at {cores} %", HALF_MS, cores, points=1.5) for cores in asked]
    return [_scenario("curve", case, seconds) for case in cases]


def shapes(seconds: float) -> list[Scenario]:
    """Each kind of load at one share."""
    return [_scenario("shapes", case, seconds) for case in SHAPES]


def stalls(seconds: float) -> list[Scenario]:
    """The longest launch, for the longest kernels that have a goal."""
    cases = [LoadCase(f"1 ms kernels at {cores} %, alone", FeederLoad("kernel", SHORT_US), cores) for cores in STALLS]
    return [_scenario("stall", case, seconds) for case in cases]


def _scenario(part: str, case: LoadCase, seconds: float) -> Scenario:
    span = max(seconds, LONG_S) if case.long else seconds

    def measure(place: LaunchPlace) -> Figures:
        native = _natively(case.load, span)
        if place.native:
            return {"share %": 100 * native.share, OF_NATIVE: 100.0, LONGEST: native.longest_ms}
        env = place.container(case.cores)
        fed = feed(case.load, span, env, case.processes)
        part_of = 100 * fed.share / (1 if case.waits else native.share)
        counted = 100 * gpu_seconds(env) / fed.seconds
        return {"share %": part_of, OF_NATIVE: part_of, LONGEST: fed.longest_ms, "counted %": counted}

    share = {OF_NATIVE: at_least(PACED)} if case.paced else {"share %": near(case.cores, case.points)}
    return Scenario(part, case.name, {**share, LONGEST: case.longest, "counted %": SHOWN}, measure)


@functools.cache
def _natively(load: FeederLoad, seconds: float) -> Fed:
    return feed(load, seconds, native_env())
