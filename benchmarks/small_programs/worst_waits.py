"""The longest request of anybody among many small programs on one card, with turns apart and with joint turns."""

from collections.abc import Sequence
from typing import Final

from benchmarks.compute.node import LaunchPlace
from benchmarks.compute.scenario import SHOWN, Figures, Scenario, at_least, at_most
from benchmarks.small_programs import requests_load
from benchmarks.small_programs.requests_load import Requests, TurnCount

PART: Final = "waits"
SIXTEEN, CORES = 16, 6
SECONDS: Final = 10.0
STARTS_WITH_US: Final = (8000, 40_000)  # kernels of the program that starts
BOUND_MS: Final = 300.0  # ADR 184: of a tenant that has had its guarantee; one that is behind waits for 0.1 s
FEW_TURNS, MANY_TURNS = 40.0, 200.0  # in a second: of 16 joint turns, and of turns apart
LONGEST, *RATES = requests_load.RATES
STARTED: Final = "longest request of the program with long first kernels ms"
TURNS: Final = "turns each s"
OF_ONE: Final = "longest of program "


def waits() -> list[Scenario]:
    """Sixteen programs that may hold turns jointly, and sixteen of which one has another priority, so that none may."""
    joint = _sixteen(f"{SIXTEEN} small programs, burst {CORES}", 0)
    apart = _sixteen(f"{SIXTEEN} small programs, burst {CORES}, one with another priority", 1)
    return [joint, apart]


def _sixteen(name: str, priority: int) -> Scenario:
    """Return sixteen programs. The first one starts with long kernels, the last one has the priority."""
    loads = [requests_load.small_program(SIXTEEN, STARTS_WITH_US if first else ()) for first in _flags(SIXTEEN)]

    def measure(place: LaunchPlace) -> Figures:
        priorities = [0] * (SIXTEEN - 1) + [priority]
        envs = [place.container(CORES, "burst", wanted) for wanted in priorities]
        turns = TurnCount([] if place.native else envs)
        work = list(zip(loads, envs, strict=True))
        every = requests_load.serve_together(work, SECONDS, lambda begin_ns: turns.watch(begin_ns, SECONDS))
        return {**wait_figures(every), TURNS: turns.each_s}

    goals = {LONGEST: at_most(BOUND_MS), STARTED: at_most(BOUND_MS)}
    goals |= {_of(number): at_most(BOUND_MS) for number in range(2, SIXTEEN + 1)}
    shown = dict.fromkeys(RATES, SHOWN)
    is_joint = at_most(FEW_TURNS) if priority == 0 else at_least(MANY_TURNS)
    return Scenario(PART, name, {**goals, **shown, TURNS: is_joint}, measure)


def wait_figures(every: Sequence[Requests]) -> dict[str, float]:
    """Return the longest request of each program, of which the first one started with long kernels, and the rates."""
    longest = [requests.longest_ms for requests in every]
    rates = requests_load.rate_figures(every)
    return {**rates, STARTED: longest[0]} | {_of(number): took for number, took in enumerate(longest[1:], 2)}


def _of(number: int) -> str:
    return f"{OF_ONE}{number} ms"


def _flags(programs: int) -> list[bool]:
    return [True] + [False] * (programs - 1)
