"""Shares of two containers while the arbiter is killed, stopped, or has hostile or many clients."""

import signal
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from benchmarks.compute.load import feed_together, sleep_until
from benchmarks.compute.node import BenchmarkNode, LaunchPlace
from benchmarks.compute.scenario import SHOWN, Figures, Scenario, near
from benchmarks.compute.several_containers import LONGEST, WORK
from limiter import local_state

CORES = (30, 50)
HOSTILE_CORES = 5
POINTS = 3.0
CONTAINERS, CLIENTS = 2, 300
SOON_S, LATER_S = 0.3, 0.9

Fault = Callable[[BenchmarkNode, int], None]


def faults(seconds: float) -> list[Scenario]:
    """Each fault, while two containers keep the card busy."""
    return [
        _scenario("the arbiter is killed", seconds, _killed),
        _scenario("the arbiter is killed, and another one started", seconds, _restarted),
        _scenario("the arbiter is stopped", seconds, _stopped),
        _scenario("the arbiter is stopped, and goes on", seconds, _resumed),
        _scenario("a client floods it", seconds, attack=("flood", 1, 1)),
        _scenario("a client takes each turn and ends none", seconds, attack=("keep", 1, 1)),
        _scenario("a client takes each turn and says that its work is long", seconds, attack=("hold", 1, 1)),
        _scenario("a client comes each 10 ms, and does nothing", seconds, attack=("regular", 1, 1)),
        _scenario(f"{CLIENTS} clients ask all the time", seconds, attack=("ask", CONTAINERS, CLIENTS)),
    ]


def _nothing(_node: BenchmarkNode, _begin_ns: int) -> None:
    """Do nothing."""


def _scenario(
    name: str, seconds: float, happens: Fault = _nothing, attack: tuple[str, int, int] | None = None
) -> Scenario:
    def measure(place: LaunchPlace) -> Figures:
        assert isinstance(place, BenchmarkNode)
        envs = [place.container(cores) for cores in CORES]
        hostile = _start_hostile(place, *attack) if attack else []
        try:
            every = feed_together([(WORK, env) for env in envs], seconds, lambda begin_ns: happens(place, begin_ns))
        finally:
            for client in hostile:
                client.kill()
                client.wait()
        shares = {f"fixed {cores} %": 100 * fed.share for cores, fed in zip(CORES, every, strict=True)}
        return {**shares, LONGEST: max(fed.longest_ms for fed in every)}

    goals = {f"fixed {cores} %": near(cores, POINTS) for cores in CORES}
    return Scenario("arbiter", name, {**goals, LONGEST: SHOWN}, measure, has_native=False)


def _start_hostile(node: BenchmarkNode, kind: str, containers: int, clients: int) -> list[subprocess.Popen[bytes]]:
    sockets = [local_state.socket_of(node.allocate(HOSTILE_CORES)) for _ in range(containers)]
    return [_hostile_client(kind, socket, clients // containers) for socket in sockets]


def _hostile_client(kind: str, socket: Path, clients: int) -> subprocess.Popen[bytes]:
    command: Sequence[str] = (
        sys.executable,
        "-m",
        "benchmarks.compute.hostile_client",
        kind,
        str(socket),
        str(clients),
    )
    return subprocess.Popen(command)


def _after(begin_ns: int, seconds: float) -> None:
    sleep_until(begin_ns + round(seconds * 1e9))


def _killed(node: BenchmarkNode, begin_ns: int) -> None:
    _after(begin_ns, SOON_S)
    node.signal_arbiter(signal.SIGKILL)


def _restarted(node: BenchmarkNode, begin_ns: int) -> None:
    _killed(node, begin_ns)
    _after(begin_ns, LATER_S)
    node.start_arbiter()


def _stopped(node: BenchmarkNode, begin_ns: int) -> None:
    _after(begin_ns, SOON_S)
    node.signal_arbiter(signal.SIGSTOP)


def _resumed(node: BenchmarkNode, begin_ns: int) -> None:
    _stopped(node, begin_ns)
    _after(begin_ns, LATER_S)
    node.signal_arbiter(signal.SIGCONT)
