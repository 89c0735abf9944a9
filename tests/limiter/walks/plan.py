"""What one random program does, and what happens around it: all of it follows from a seed."""

import random
from dataclasses import dataclass, replace
from enum import StrEnum

from tests.limiter.walks.programs import Build


class ArbiterFate(StrEnum):
    """What is done to the arbiter while a program runs."""

    ABSENT = "absent"
    STEADY = "steady"
    KILLED = "killed"
    RESTARTED = "restarted"
    STOPPED = "stopped"  # SIGSTOP, and SIGCONT a while later


@dataclass(frozen=True, slots=True)
class Plan:
    """One program and its surroundings.

    Attributes:
        seed: what the plan and the program's calls follow from.
        is_tight: the limit is smaller than what the program asks for, so that calls are refused.
        has_neighbour: another container launches on the same card meanwhile.
        has_victim: a first program of the container is killed before this one begins.
        is_paused: the program itself is stopped and continued at times.
    """

    seed: int
    build: Build
    threads: int
    steps: int
    rounds: int
    policy: str
    cores: int | None
    context_mib: int
    is_tight: bool
    has_signals: bool
    by_query: bool
    has_exec: bool
    arbiter: ArbiterFate
    has_neighbour: bool
    has_victim: bool
    is_paused: bool

    @property
    def memory(self) -> str:
        """The container's limit."""
        return "160MiB" if self.is_tight else "24GiB"

    @property
    def arguments(self) -> tuple[str, ...]:
        """The arguments of the walk program; main.c explains them."""
        words = {
            "tight": self.is_tight,
            "signals": self.has_signals,
            "query": self.by_query and self.build is Build.PRELOADED,
            "exec": self.has_exec,
            "context": self.context_mib > 0,
        }
        numbers = (self.seed, self.rounds, self.threads, self.steps)
        return (*map(str, numbers), *(word for word, is_given in words.items() if is_given))


_POLICIES = (("fixed", 25), ("fixed", 60), ("fixed", 100), ("burst", 40), ("burst", None), ("best-effort", None))


def plan(seed: int, build: Build | None = None) -> Plan:
    """Return the plan of a seed; `build` replaces the one that the seed chooses."""
    chance = random.Random(seed)
    chosen = chance.choice(tuple(Build))
    policy, cores = chance.choice(_POLICIES)
    drawn = Plan(
        seed=seed,
        build=build or chosen,
        threads=chance.choice((1, 1, 2, 4)),
        steps=chance.choice((20, 60, 150)),
        rounds=chance.choice((2, 3, 5)),
        policy=policy,
        cores=cores,
        context_mib=chance.choice((0, 4)),
        is_tight=chance.random() < 0.25,
        has_signals=chance.random() < 0.4,
        by_query=chance.random() < 0.5,
        has_exec=chance.random() < 0.2,
        arbiter=chance.choice(tuple(ArbiterFate)),
        has_neighbour=chance.random() < 0.5,
        has_victim=chance.random() < 0.2,
        is_paused=chance.random() < 0.2,
    )
    return replace(drawn, has_neighbour=False) if drawn.is_tight else drawn  # the card's peak would be of both
