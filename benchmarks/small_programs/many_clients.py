"""Three hundred clients on one card: programs, and connections that take turns and launch nothing."""

import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from benchmarks import arbiter
from benchmarks.compute import hostile_client
from benchmarks.compute.load import sleep_until
from benchmarks.compute.node import BenchmarkNode, LaunchPlace
from benchmarks.compute.scenario import SHOWN, Figures, Scenario, at_most
from benchmarks.programs import build
from benchmarks.small_programs import requests_load
from benchmarks.small_programs.requests_load import TurnCount
from limiter import local_state

PART: Final = "clients"
CLIENTS: Final = 300
PROGRAMS: Final = 20  # a context takes half a GiB of a card
SECONDS: Final = 10.0
HOLD_US, REST_US = 300, 20_000
JOINS: Final = 1  # ARBITRATION_JOINS: knows joint turns
WITHOUT: Final = "clients without a turn"
WAIT: Final = "longest wait of a connection ms"


def clients() -> list[Scenario]:
    """Twenty programs and 280 connections, which know joint turns or do not, all without a share.

    Beside guarantees those without a share would get the turns of the starvation floor only, one each 0.3 s.
    """
    name = f"{PROGRAMS} small programs and {CLIENTS - PROGRAMS} connections"
    return [_scenario(f"{name} that know joint turns", JOINS), _scenario(f"{name} that do not", 0)]


@dataclass(frozen=True, slots=True)
class ConnectionTurns:
    """What one connection got."""

    turns: int
    longest_ms: float


class Connections:
    """A running process of `turn_waits.c`, with a container of its own for each connection to the card."""

    def __init__(self, sockets: Sequence[Path], card: bytes, abilities: int) -> None:
        sizes = (card.hex(), abilities, HOLD_US, REST_US)
        command = [str(build.program("turn_waits")), *map(str, (*sizes, *sockets))]
        pipe = subprocess.PIPE
        self._process = subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True)
        assert self._process.stdout
        if self._process.stdout.readline() != "ready\n":
            raise RuntimeError(f"turn_waits ended with {self._process.wait()}")

    def go(self, begin_ns: int, end_ns: int) -> None:
        """Let them take turns; those between the times count."""
        assert self._process.stdin
        self._process.stdin.write(f"{begin_ns} {end_ns}\n")
        self._process.stdin.flush()

    def answer(self) -> list[ConnectionTurns]:
        """Return what each got, at the end."""
        assert self._process.stdout
        return read_turns(self._process.stdout)

    def end(self) -> None:
        """End it."""
        self._process.kill()
        self._process.communicate()


def read_turns(lines: Iterator[str]) -> list[ConnectionTurns]:
    """Read the lines of `turn_waits.c`."""
    return [ConnectionTurns(int(turns), int(us) / 1000) for turns, us in (line.split() for line in lines)]


@contextmanager
def _connected(place: LaunchPlace, count: int, abilities: int) -> Iterator[Connections | None]:
    """Connect as many clients, each in a container without a share. Natively there are none."""
    if not isinstance(place, BenchmarkNode):
        yield None
        return
    sockets = [local_state.socket_of(place.allocate(None, "burst")) for _ in range(count)]
    running = Connections(sockets, hostile_client.first_card(), abilities)
    try:
        yield running
    finally:
        running.end()


def _scenario(name: str, abilities: int) -> Scenario:
    load = requests_load.small_program(PROGRAMS)

    def measure(place: LaunchPlace) -> Figures:
        envs = [place.container(None, "burst") for _ in range(PROGRAMS)]
        turns = TurnCount([] if place.native else envs)
        used_ns = 0
        got: list[ConnectionTurns] = []
        with _connected(place, CLIENTS - PROGRAMS, abilities) as connections:

            def meanwhile(begin_ns: int) -> None:
                nonlocal used_ns
                end_ns = begin_ns + round(SECONDS * 1e9)
                if connections:
                    connections.go(begin_ns, end_ns)
                sleep_until(begin_ns)
                before = _arbiter_ns(place)
                turns.watch(begin_ns, SECONDS)
                used_ns = _arbiter_ns(place) - before
                if connections:
                    got.extend(connections.answer())

            every = requests_load.serve_together([(load, env) for env in envs], SECONDS, meanwhile)
        figures = requests_load.rate_figures(every)
        without = sum(requests.rate() == 0 for requests in every) + sum(one.turns == 0 for one in got)
        return {**figures, WITHOUT: without, **connection_figures(got), "turns of programs each s": turns.each_s} | {
            "arbiter's processor %": used_ns / SECONDS / 1e7
        }

    shown = dict.fromkeys(
        (*requests_load.RATES, WAIT, "least turns of a connection", "turns of connections each s"), SHOWN
    )
    shown |= dict.fromkeys(("turns of programs each s", "arbiter's processor %"), SHOWN)
    return Scenario(PART, name, {WITHOUT: at_most(0), **shown}, measure)


def connection_figures(got: Sequence[ConnectionTurns]) -> dict[str, float]:
    """Return the longest wait, the fewest turns of one, and the turns a second of all of them."""
    return {
        WAIT: max((one.longest_ms for one in got), default=0),
        "least turns of a connection": min((one.turns for one in got), default=0),
        "turns of connections each s": sum(one.turns for one in got) / SECONDS,
    }


def _arbiter_ns(place: LaunchPlace) -> int:
    process = place.arbiter if isinstance(place, BenchmarkNode) else None
    return arbiter.processor_ns(process.pid) if process else 0
