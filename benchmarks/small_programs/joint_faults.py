"""Small programs that hold turns jointly, while their arbiter is killed, stopped or replaced."""

import signal
from collections.abc import Callable, Sequence
from typing import Final

from benchmarks.compute.load import sleep_until
from benchmarks.compute.node import BenchmarkNode, LaunchPlace
from benchmarks.compute.scenario import SHOWN, Figures, Scenario, at_least, at_most
from benchmarks.small_programs import requests_load
from benchmarks.small_programs.requests_load import Requests, TurnCount

PART: Final = "joint"
PROGRAMS, CORES = 4, 25
SECONDS: Final = 12.0
FAULT_S, LASTS_S, AFTERWARDS_S = 2.0, 2.0, 8.0  # after the begin
# Without a heartbeat clients go on after 60 ms. Then an emptied token bucket may have to be refilled.
STALL_MS: Final = 250.0
LEAST: Final = 80.0
STALL, STUCK = "longest request ms", "programs without a request in the last second"
AFTER: Final = ("requests each s before", "requests each s afterwards", "longest request afterwards ms")
LEAST_OF: Final = "least of one afterwards, of the mean %"
TURNS: Final = "turns each s afterwards"

ArbiterFault = Callable[[BenchmarkNode, int], None]


def faults() -> list[Scenario]:
    """Nothing, and each fault, while four small programs hold turns jointly."""
    return [
        _scenario("nothing happens", lambda _node, _begin_ns: None),
        _scenario("the arbiter is killed", _killed),
        _scenario("the arbiter is killed, and another one started after 2 s", _restarted),
        _scenario("the arbiter is replaced at once", _replaced),
        _scenario("the arbiter is stopped for 2 s", _stopped),
    ]


def _scenario(name: str, happens: ArbiterFault) -> Scenario:
    load = requests_load.small_program(PROGRAMS)
    is_native_too = name == "nothing happens"

    def measure(place: LaunchPlace) -> Figures:
        envs = [place.container(CORES, "burst") for _ in range(PROGRAMS)]
        turns = TurnCount([] if place.native else envs)

        def meanwhile(begin_ns: int) -> None:
            if isinstance(place, BenchmarkNode):
                happens(place, begin_ns)
            turns.watch(begin_ns + round(AFTERWARDS_S * 1e9), SECONDS - AFTERWARDS_S)

        every = requests_load.serve_together([(load, env) for env in envs], SECONDS, meanwhile)
        return {**fault_figures(every), TURNS: turns.each_s}

    goals = {STALL: at_most(STALL_MS), STUCK: at_most(0), LEAST_OF: at_least(LEAST)}
    return Scenario(PART, name, {**goals, **dict.fromkeys((*AFTER, TURNS), SHOWN)}, measure, is_native_too)


def fault_figures(every: Sequence[Requests]) -> dict[str, float]:
    """Return the longest request, the rates before the fault and afterwards, and how many programs are stuck."""
    after_us = AFTERWARDS_S * 1e6
    after = [requests.rate(after_us) for requests in every]
    mean = sum(after) / len(after)
    last = (SECONDS - 1) * 1e6
    return {
        STALL: max(requests.longest_ms for requests in every),
        STUCK: sum(requests.rate(last) == 0 for requests in every),
        LEAST_OF: 100 * min(after) / mean if mean else 0.0,
        AFTER[0]: sum(requests.rate(0, FAULT_S * 1e6) for requests in every),
        AFTER[1]: sum(after),
        AFTER[2]: max(requests.longest_since_ms(after_us) for requests in every),
    }


def _at(begin_ns: int, seconds: float) -> None:
    sleep_until(begin_ns + round(seconds * 1e9))


def _killed(node: BenchmarkNode, begin_ns: int) -> None:
    _at(begin_ns, FAULT_S)
    node.signal_arbiter(signal.SIGKILL)


def _restarted(node: BenchmarkNode, begin_ns: int) -> None:
    _killed(node, begin_ns)
    _at(begin_ns, FAULT_S + LASTS_S)
    node.start_arbiter()


def _replaced(node: BenchmarkNode, begin_ns: int) -> None:
    _killed(node, begin_ns)
    node.start_arbiter()


def _stopped(node: BenchmarkNode, begin_ns: int) -> None:
    _at(begin_ns, FAULT_S)
    node.signal_arbiter(signal.SIGSTOP)
    _at(begin_ns, FAULT_S + LASTS_S)
    node.signal_arbiter(signal.SIGCONT)
