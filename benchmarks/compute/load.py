"""Loads: the programs `feed.c`, `timed.c` and `self_launch.cu`, in one process or in several."""

import functools
import json
import os
import select
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from benchmarks.compute.scenario import SkippedError
from benchmarks.container import native_env
from benchmarks.programs import build

WARM_NS = 1_000_000_000
TAIL_NS = 200_000_000  # as in feed.c
ANSWER_TIMEOUT_S, END_TIMEOUT_S = 60.0, 10.0
LATE = 1.5  # over its seconds, for what a program still has in flight at their end
ALONE_S = 3.0


@dataclass(frozen=True, slots=True)
class FeederLoad:
    """The work of one process of `feed.c`.

    Attributes:
        kind: as in feed.c.
        us: duration of a kernel or a graph.
        streams: number of streams.
        idle_us: pause after each launch that is waited for.
    """

    kind: str
    us: int
    streams: int = 1
    idle_us: int = 0

    def command(self, seconds: float) -> list[str]:
        """Return the command line."""
        sizes = (self.us, self.streams, seconds, self.idle_us)
        return [str(build.program("feed")), self.kind, *map(str, sizes)]


@dataclass(frozen=True, slots=True)
class TimedLoad:
    """The work of one process of `timed.c`, which measures the time of each piece of work."""

    kind: str
    us: int

    def command(self, seconds: float) -> list[str]:
        """Return the command line."""
        return [str(build.program("timed")), self.kind, str(self.us), str(seconds)]


@dataclass(frozen=True, slots=True)
class SelfLaunching:
    """The work of one process of `self_launch.cu`: a CUDA graph that launches itself on the card.

    Attributes:
        us: duration of the graph's kernel.
        rounds: how often the graph runs after a launch by the host.
    """

    us: int
    rounds: int = 1

    def command(self, seconds: float) -> list[str]:
        """Return the command line. Raises SkippedError where the program cannot be built or run."""
        program = None if "SIMGPU_STATE" in os.environ else build.cuda_program("self_launch")
        if program is None:
            raise SkippedError("needs nvcc and a real card")
        return [str(program), str(self.us), str(self.rounds), str(seconds)]


class FeederWork(Protocol):
    """What a program does that `Feeder` starts."""

    def command(self, seconds: float) -> list[str]:
        """Return the command line."""


@dataclass(frozen=True, slots=True)
class Fed:
    """The outcome: the share of the time that the kernels took, the longest launch, and the time in all."""

    share: float
    longest_ms: float
    seconds: float


class Feeder:
    """A running program of a load, which starts and waits for a line. Raises RuntimeError when it reports a failure."""

    def __init__(self, load: FeederWork, seconds: float, env: Mapping[str, str]) -> None:
        command = load.command(seconds)
        self._timeout_s = ANSWER_TIMEOUT_S + LATE * seconds
        self._process = subprocess.Popen(
            command, env=dict(env), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

    def await_start(self) -> dict[str, Any]:
        """Wait until it is ready, and return its first answer."""
        return self.answer()

    def go(self, begin_ns: int | None = None) -> None:
        """Let it run, and count from `begin_ns` of the monotonic clock on, or after a second."""
        assert self._process.stdin is not None
        self._process.stdin.write(f"{begin_ns or ''}\n")
        self._process.stdin.flush()

    def answer(self) -> dict[str, Any]:
        """Return its next answer. A program that does not answer in time is killed."""
        assert self._process.stdout is not None
        if not select.select([self._process.stdout], [], [], self._timeout_s)[0]:
            self._process.kill()
            raise RuntimeError(f"no answer in {self._timeout_s:g} s: the program was killed")
        line = self._process.stdout.readline()
        answer: dict[str, Any] = json.loads(line or '{"result": -1, "function": "the start"}')
        if answer["result"] or answer.get("ready") is False:
            raise RuntimeError(f"{answer['function'] or 'no CUDA driver'}: {answer['result']}")
        return answer

    @property
    def pid(self) -> int:
        """Its process ID."""
        return self._process.pid

    def send_signal(self, number: int) -> None:
        """Send it a signal."""
        self._process.send_signal(number)

    def wait(self) -> int:
        """Wait for its end and return its exit status. Raises RuntimeError when it does not end in time."""
        try:
            return self._process.wait(END_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            raise RuntimeError(f"a program did not end in {END_TIMEOUT_S:g} s") from None

    def end(self) -> None:
        """Close its input and wait for its end; kill it after a timeout."""
        try:
            self._process.communicate(timeout=END_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.communicate()


def feed(load: FeederLoad, seconds: float, env: Mapping[str, str], processes: int = 1) -> Fed:
    """Run the load in one process, or in several of one container, whose shares are added."""
    if processes > 1:
        results = feed_together([(load, env)] * processes, seconds)
        spent = seconds + (WARM_NS + TAIL_NS) / 1e9
        return Fed(sum(fed.share for fed in results), max(fed.longest_ms for fed in results), spent)
    feeder = Feeder(load, seconds, _calibrated(load, env))
    feeder.await_start()
    begun = time.monotonic()
    feeder.go()
    answer, spent = feeder.answer(), time.monotonic() - begun
    feeder.end()
    return _fed(load, answer, spent)


@functools.cache
def alone_share(load: FeederLoad) -> float:
    """Return the share of the time that a load's kernels take natively, alone on the card, by their nominal duration.

    It is below 1: there are gaps between kernels, of 2 us each, and the calibration is right within 1 %.
    """
    return feed(load, ALONE_S, native_env()).share


def feed_together(
    loads: Sequence[tuple[FeederLoad, Mapping[str, str]]],
    seconds: float,
    meanwhile: Callable[[int], None] = lambda _begin_ns: None,
) -> list[Fed]:
    """Run loads of several containers at the same time; `meanwhile` is called with its begin (monotonic ns)."""
    answers = run_together(loads, seconds, meanwhile)
    return [_fed(load, answer, seconds) for (load, _), answer in zip(loads, answers, strict=True)]


def run_together(
    loads: Sequence[tuple[FeederWork, Mapping[str, str]]],
    seconds: float,
    meanwhile: Callable[[int], None] = lambda _begin_ns: None,
    warm_ns: int = WARM_NS,
) -> list[dict[str, Any]]:
    """Start all programs, let all begin at the same time, after a warm-up, and return the last answer of each."""
    feeders = [Feeder(load, seconds, _calibrated(load, env)) for load, env in loads]
    try:
        for feeder in feeders:
            feeder.await_start()
        begin_ns = time.monotonic_ns() + warm_ns
        for feeder in feeders:
            feeder.go(begin_ns)
        meanwhile(begin_ns)
        return [feeder.answer() for feeder in feeders]
    finally:
        for feeder in feeders:
            feeder.end()


def sleep_until(ns: int) -> None:
    """Sleep until a time of the monotonic clock; not at all if it is over."""
    time.sleep(max(0.0, (ns - time.monotonic_ns()) / 1e9))


def _calibrated(load: FeederWork, env: Mapping[str, str]) -> Mapping[str, str]:
    """Pass the calibration of working kernels on, because a program cannot calibrate beside others."""
    if isinstance(load, FeederLoad) and load.kind != "work":
        return env
    of_a_ms = SelfLaunching(1000) if isinstance(load, SelfLaunching) else FeederLoad("work", 1000)
    return {**env, "BENCH_LOOPS": str(loops_per_ms(of_a_ms))}


@functools.cache
def loops_per_ms(load: FeederLoad | SelfLaunching) -> float:
    """Return how many iterations of its loop the working kernel of a load of 1 ms does, alone on the card."""
    feeder = Feeder(load, 0, native_env())
    loops = float(feeder.await_start()["loops"])
    feeder.end()
    return loops


def of_alone_percent(load: FeederLoad, answer: Mapping[str, Any]) -> float:
    """Return what a load did beside others, by its last answer, in percent of what it does natively alone."""
    return 100 * _share(load, answer) / alone_share(load)


def _share(load: FeederLoad, answer: Mapping[str, Any]) -> float:
    return float(answer["count"] * load.us * 1000 / answer["ns"])


def _fed(load: FeederLoad, answer: Mapping[str, Any], seconds: float) -> Fed:
    return Fed(_share(load, answer), answer["longest_ns"] / 1e6, seconds)
