"""Kernels that wait for their host (ADR 170).

An autotuner's timings, spin flags, and a program that gains what it can by such kernels.
"""

import functools
import itertools
import statistics
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from benchmarks.compute.load import FeederLoad, FeederWork, TimedLoad, loops_per_ms, run_together, sleep_until
from benchmarks.compute.node import Env, LaunchPlace, gpu_seconds
from benchmarks.compute.scenario import SHOWN, Figures, Goal, Scenario, at_most, near
from benchmarks.container import native_env
from benchmarks.programs import build

PART: Final = "delays"
ASKED: Final = ((20, "fixed"), (40, "fixed"), (60, "fixed"), (40, "burst"))
TUNED_US, NEIGHBOUR_US = 100, 1000
ALONE_S, BESIDE_S = 1.0, 3.0
SLOWER: Final = 1.2  # most that timings may take, over natively by the share
FIXED_NEIGHBOUR: Final = 50
SCARCE: Final = 20  # percent, of the program that overdraws
OVERDRAWN_S: Final = 30.0

# What the card may be used beyond the share (ADR 170): 10 ms, one kernel, which gives up after 0.1 s, the overdraft of
# 50 ms, and in those 0.1 s and while it is repaid, what comes back to it.
BOUND_S: Final = 0.01 + 0.1 + 0.05 + 0.05


@dataclass(frozen=True, slots=True)
class DelayedLoad:
    """The work of one process of `delayed.c`."""

    kind: str
    us: int

    def command(self, seconds: float) -> list[str]:
        """Return the command line."""
        return [str(build.program("delayed")), self.kind, str(self.us), str(seconds)]


TUNER: Final = DelayedLoad("timings", TUNED_US)
FLAGS: Final = DelayedLoad("flags", TUNED_US)
WAITING: Final = DelayedLoad("waiting", 500)


def timings() -> list[Scenario]:
    """Return timings and flags alone, and timings beside a neighbour that keeps the card busy.

    Measures both natively first.
    """
    return [
        *(_alone(load, cores, policy) for load in (TUNER, FLAGS) for cores, policy in ASKED),
        *(_beside(cores, policy) for cores, policy in ASKED),
        *(_fixed_neighbour(policy) for policy in ("fixed", "burst")),
    ]


def overdrafts(seconds: float = OVERDRAWN_S) -> list[Scenario]:
    """Return programs that use the overdraft as much as they can, at a fixed share."""
    return [_overdrawn("waiting", 500, seconds), _overdrawn("unknown", 4000, seconds)]


def _alone(load: DelayedLoad, cores: int, policy: str) -> Scenario:
    def measure(place: LaunchPlace) -> Figures:
        answer = _native_alone(load) if place.native else _run_alone(load, place.container(cores, policy))
        return timing_figures(load, answer)

    goals = timing_goals(load, _seconds(_native_alone(load)), cores, policy)
    return Scenario(PART, alone_name(load, cores, policy), goals, measure)


def alone_name(load: DelayedLoad, cores: int, policy: str) -> str:
    """Return the name in the table of timings or flags alone on the card."""
    return f"20 {load.kind}, {policy} {cores}"


@functools.cache
def _native_alone(load: DelayedLoad) -> dict[str, Any]:
    return _run_alone(load, native_env())


def _run_alone(load: DelayedLoad, env: Env) -> dict[str, Any]:
    return run_together([(load, env)], ALONE_S)[0]


def timing_goals(load: DelayedLoad, native_s: float, cores: int, policy: str) -> dict[str, Goal]:
    """Return the goals of a container that is alone on the card, where 20 timings or flags take `native_s` natively."""
    most = SLOWER * native_s / (1.0 if policy == "burst" else cores / 100)
    return {f"20 {load.kind} ms": at_most(1e3 * most), "given up": at_most(0), "measured ms": SHOWN}


def timing_figures(load: DelayedLoad, answer: Mapping[str, Any]) -> dict[str, float]:
    """Return the ms of 20 timings or flags, the kernels that gave up, and what was measured."""
    return {
        f"20 {load.kind} ms": 1e3 * _seconds(answer),
        "given up": float(answer["given_up"]),
        "measured ms": statistics.median(answer["times_us"]) / 1e3,
    }


def _seconds(answer: Mapping[str, Any]) -> float:
    return float(statistics.median(answer["rounds_us"])) / 1e6


def _beside(cores: int, policy: str) -> Scenario:
    neighbour = _beside_cores(cores)

    def measure(place: LaunchPlace) -> Figures:
        if place.native:
            return _native_beside()
        return _tune_beside(place.container(cores, policy), place.container(neighbour, "burst"))

    goals = {"20 timings ms": SHOWN, "given up": SHOWN, "measured ms": SHOWN, "neighbour %": SHOWN}
    goals |= {"neighbour charged %": SHOWN, "neighbour p50 ms": SHOWN, "neighbour p99 ms": SHOWN}
    return Scenario(PART, beside_name(cores, policy), goals, measure)


def beside_name(cores: int, policy: str) -> str:
    """Return the name in the table of timings beside a neighbour."""
    return f"{alone_name(TUNER, cores, policy)}, beside burst {_beside_cores(cores)}"


def _beside_cores(cores: int) -> int:
    return min(60, 100 - cores)


def _fixed_neighbour(policy: str) -> Scenario:
    """Return a neighbour with a fixed share, which would be charged for what it measures of the kernels that wait."""

    def measure(place: LaunchPlace) -> Figures:
        return _work_beside(WAITING, place.container(40, policy), place.container(FIXED_NEIGHBOUR))[1]

    goals = {"neighbour %": near(FIXED_NEIGHBOUR, 3), "neighbour charged %": SHOWN, "neighbour p99 ms": SHOWN}
    return Scenario(PART, fixed_name(policy), goals, measure, has_native=False)


def fixed_name(policy: str) -> str:
    """Return the name in the table of kernels that wait beside a neighbour with a fixed share."""
    return f"kernels that wait all the time, {policy} 40, beside fixed {FIXED_NEIGHBOUR}"


@functools.cache
def _native_beside() -> Figures:
    return _tune_beside(native_env(), native_env())


def _tune_beside(env: Env, neighbour: Env) -> Figures:
    tuned, beside = _work_beside(TUNER, env, neighbour)
    return timing_figures(TUNER, tuned) | beside


def _work_beside(load: DelayedLoad, env: Env, neighbour: Env) -> tuple[dict[str, Any], dict[str, float]]:
    """Return the last answer of a load, and the figures of the neighbour."""
    calibrated = {**neighbour, "BENCH_LOOPS": str(loops_per_ms(FeederLoad("work", 1000)))}
    loads: list[tuple[FeederWork, Env]] = [(load, env), (TimedLoad("steady", NEIGHBOUR_US), calibrated)]
    charged: list[float] = []
    answer, steady = run_together(loads, BESIDE_S, lambda begin_ns: charged.append(_charged(neighbour, begin_ns)))
    beside = neighbour_figures(steady["times_us"]) | {"neighbour charged %": 100 * charged[0] / BESIDE_S}
    return answer, beside


def _charged(env: Env, begin_ns: int) -> float:
    """Return the GPU time that a container is charged while the figures are measured; 0 natively."""
    sleep_until(begin_ns)
    before = gpu_seconds(env)
    time.sleep(BESIDE_S)
    return gpu_seconds(env) - before


def neighbour_figures(ends_us: Sequence[int]) -> dict[str, float]:
    """Return the neighbour's share of the card, and how long it waits from one kernel's end to the next one's."""
    gaps = [after - before for before, after in itertools.pairwise(ends_us)]
    return {
        "neighbour %": 100 * NEIGHBOUR_US * len(gaps) / max(1, ends_us[-1] - ends_us[0]),
        "neighbour p50 ms": statistics.median(gaps) / 1e3,
        "neighbour p99 ms": statistics.quantiles(gaps, n=100)[98] / 1e3,
    }


def _overdrawn(kind: str, us: int, seconds: float) -> Scenario:
    def measure(place: LaunchPlace) -> Figures:
        env = place.container(SCARCE)
        (answer,) = run_together([(DelayedLoad(kind, us), env)], seconds)
        return used_figures(answer, seconds) | {"charged in all s": gpu_seconds(env)}

    goals = {
        "card used %": at_most(SCARCE + 100 * BOUND_S / seconds),
        "kernels %": SHOWN,
        "worst 10 s %": at_most(SCARCE + 100 * BOUND_S / min(10.0, seconds)),
        "charged in all s": SHOWN,
    }
    return Scenario(
        "overdraft", f"{kind} kernels of {us / 1000:g} ms, fixed {SCARCE}", goals, measure, has_native=False
    )


def used_figures(answer: Mapping[str, Any], seconds: float) -> dict[str, float]:
    """Return how much of the card the kernels, and the delay kernels beside them, used: in all and in any 10 s."""
    us = answer["kernel_us"]
    kernels = [(end - us, float(end)) for end in answer["ends_us"]]
    waits = list(zip(answer["waits_us"][::2], answer["waits_us"][1::2], strict=False))
    used, total = union([*kernels, *waits]), seconds * 1e6
    starts = [at * 1e6 for at in range(max(1, int(seconds) - 9))]
    span = min(10e6, total)
    return {
        "card used %": 100 * within(used, 0.0, total) / total,
        "kernels %": 100 * within(union(kernels), 0.0, total) / total,
        "worst 10 s %": max(100 * within(used, start, start + span) / span for start in starts),
    }


def union(spans: Sequence[tuple[float, float]]) -> list[tuple[float, float]]:
    """Return the time that is in any of the spans, as spans that do not meet."""
    found: list[tuple[float, float]] = []
    for begin, end in sorted(spans):
        if found and begin <= found[-1][1]:
            found[-1] = (found[-1][0], max(found[-1][1], end))
        else:
            found.append((begin, end))
    return found


def within(spans: Sequence[tuple[float, float]], begin: float, end: float) -> float:
    """Return how much of the spans lies between two times."""
    return sum(max(0.0, min(last, end) - max(first, begin)) for first, last in spans)
