"""Containers that still run an earlier release's limiter, beside new ones and while the arbiter is replaced.

Limiters before joint turns do not know them, so turns stay apart beside one.
"""

import signal
import statistics
from collections.abc import Callable, Sequence
from typing import Final

from benchmarks.compute.load import feed_together, sleep_until
from benchmarks.compute.node import BenchmarkNode, Env, LaunchPlace
from benchmarks.compute.scenario import SHOWN, Figures, Scenario, SkippedError, at_least, at_most, near
from benchmarks.compute.several_containers import LONGEST, WORK
from benchmarks.programs.old_limiters import COMMITS, OldLimiter
from benchmarks.small_programs import joint_faults, requests_load
from benchmarks.small_programs.requests_load import Requests, TurnCount

PART: Final = "old"
FIXED: Final = (30, 50)
POINTS: Final = 3.0
PROGRAMS, CORES = 4, 25
SECONDS: Final = 6.0
KNOWS_JOINT_TURNS: Final = {"0.1.0": False, "0.2.0": True}
MANY_TURNS: Final = 100.0
OLD, NEW = "old: requests each s", "new, mean: requests each s"
OLD_LOSES, NEW_LOSES = "old, of all new %", "new, of all new %"
TURNS: Final = "turns of the new each s"

Meanwhile = Callable[[int], None]


def beside_old(seconds: float) -> list[Scenario]:
    """For each release: fixed shares and small programs beside new ones, and both while the arbiter is replaced."""
    makers = (_fixed, _upgrade_of_fixed)
    return [
        scenario
        for version in COMMITS
        for scenario in (
            *(make(OldLimiter(version), seconds) for make in makers),
            _small(OldLimiter(version)),
            _upgrade_of_small(OldLimiter(version)),
        )
    ]


def _built(place: LaunchPlace, old: OldLimiter) -> BenchmarkNode:
    """Return the node. Raises SkippedError where the release is not built."""
    assert isinstance(place, BenchmarkNode)
    if not old.is_built:
        raise SkippedError("needs `python -m benchmarks.programs.old_limiters`, where there is git and a compiler")
    return place


def _fixed(old: OldLimiter, seconds: float) -> Scenario:
    def measure(place: LaunchPlace) -> Figures:
        node = _built(place, old)
        return _shares([node.old_container(old, FIXED[0]), node.container(FIXED[1])], seconds)

    return _of_shares(f"fixed {FIXED[0]} of {old.version} beside fixed {FIXED[1]}", measure)


def _upgrade_of_fixed(old: OldLimiter, seconds: float) -> Scenario:
    def measure(place: LaunchPlace) -> Figures:
        node = _with_old_arbiter(place, old)
        envs = [node.old_container(old, cores) for cores in FIXED]
        return _shares(envs, seconds, lambda begin_ns: _replace(node, begin_ns, seconds / 3))

    return _of_shares(f"fixed {FIXED[0]} and {FIXED[1]} of {old.version}, its arbiter is replaced", measure)


def _nothing(_begin_ns: int) -> None:
    """Do nothing."""


def _shares(envs: Sequence[Env], seconds: float, meanwhile: Meanwhile = _nothing) -> Figures:
    every = feed_together([(WORK, env) for env in envs], seconds, meanwhile)
    shares = {f"fixed {cores} %": 100 * fed.share for cores, fed in zip(FIXED, every, strict=True)}
    return {**shares, LONGEST: max(fed.longest_ms for fed in every)}


def _of_shares(name: str, measure: Callable[[LaunchPlace], Figures]) -> Scenario:
    goals = {f"fixed {cores} %": near(cores, POINTS) for cores in FIXED}
    return Scenario(PART, name, {**goals, LONGEST: SHOWN}, measure, has_native=False)


def _small(old: OldLimiter) -> Scenario:
    """Return small programs of which the first is old; what it and the others lose is compared with all new."""

    def measure(place: LaunchPlace) -> Figures:
        if place.native:
            return small_figures(_serve([place.container(CORES, "burst") for _ in range(PROGRAMS)]))
        node = _built(place, old)
        mixed = [
            node.old_container(old, CORES, "burst"),
            *(node.container(CORES, "burst") for _ in range(PROGRAMS - 1)),
        ]
        turns = TurnCount(mixed[1:])
        found = small_figures(_serve(mixed, turns))
        all_new = _serve([node.container(CORES, "burst") for _ in range(PROGRAMS)])
        return {**found, TURNS: turns.each_s, **lost(found, all_new)}

    shown = dict.fromkeys((OLD, NEW, OLD_LOSES, NEW_LOSES, "longest request ms"), SHOWN)
    goal = SHOWN if KNOWS_JOINT_TURNS[old.version] else at_least(MANY_TURNS)
    return Scenario(PART, f"4 small programs, burst {CORES}, one of {old.version}", {**shown, TURNS: goal}, measure)


def _serve(envs: Sequence[Env], turns: TurnCount | None = None) -> list[Requests]:
    load = requests_load.small_program(PROGRAMS)
    watched = turns or TurnCount([])
    return requests_load.serve_together(
        [(load, env) for env in envs], SECONDS, lambda begin_ns: watched.watch(begin_ns, SECONDS)
    )


def small_figures(every: Sequence[Requests]) -> dict[str, float]:
    """Return the rate of the first program, the mean rate of the others, and the longest request."""
    first, *others = every
    mean = statistics.fmean(requests.rate() for requests in others)
    return {OLD: first.rate(), NEW: mean, "longest request ms": max(requests.longest_ms for requests in every)}


def lost(mixed: Figures, all_new: Sequence[Requests]) -> dict[str, float]:
    """Return what the old one and the new ones do beside each other, in percent of what all do where all are new."""
    mean = statistics.fmean(requests.rate() for requests in all_new)
    return {OLD_LOSES: 100 * mixed[OLD] / mean, NEW_LOSES: 100 * mixed[NEW] / mean}


def _upgrade_of_small(old: OldLimiter) -> Scenario:
    def measure(place: LaunchPlace) -> Figures:
        node = _with_old_arbiter(place, old)
        envs = [node.old_container(old, CORES, "burst") for _ in range(PROGRAMS)]
        load = requests_load.small_program(PROGRAMS)
        every = requests_load.serve_together(
            [(load, env) for env in envs],
            joint_faults.SECONDS,
            lambda begin_ns: _replace(node, begin_ns, joint_faults.FAULT_S),
        )
        return joint_faults.fault_figures(every)

    goals = {
        joint_faults.STALL: at_most(joint_faults.STALL_MS),
        joint_faults.STUCK: at_most(0),
        joint_faults.LEAST_OF: at_least(joint_faults.LEAST),
    }
    name = f"4 small programs of {old.version}, its arbiter is replaced"
    return Scenario(PART, name, {**goals, **dict.fromkeys(joint_faults.AFTER, SHOWN)}, measure, has_native=False)


def _with_old_arbiter(place: LaunchPlace, old: OldLimiter) -> BenchmarkNode:
    node = _built(place, old)
    node.signal_arbiter(signal.SIGKILL)
    node.start_arbiter(old.arbiter)
    return node


def _replace(node: BenchmarkNode, begin_ns: int, after_s: float) -> None:
    """Replace the old arbiter by the new one, as an upgrade of the node does."""
    sleep_until(begin_ns + round(after_s * 1e9))
    node.signal_arbiter(signal.SIGKILL)
    node.start_arbiter()
