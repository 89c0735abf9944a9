"""Loads of the card: the programs `feed.c` and `timed.c` in containers, one process or several."""

import functools
import json
import select
import shutil
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

from benchmarks.memory.worker import native_env
from benchmarks.programs import build
from limiter import launch
from vgpu import region

WARM_NS = 1_000_000_000
TAIL_NS = 200_000_000  # as in feed.c
PATIENCE_S, END_S = 60.0, 10.0


@dataclass(frozen=True, slots=True)
class Load:
    """What one process of a load does; `kind` and `idle_us` as in feed.c, `us` is what a kernel or a graph takes."""

    kind: str
    us: int
    streams: int = 1
    idle_us: int = 0

    def command(self, seconds: float) -> list[str]:
        """Return the command that feeds the card so."""
        sizes = (self.us, self.streams, seconds, self.idle_us)
        return [str(build.program("feed")), self.kind, *map(str, sizes)]


@dataclass(frozen=True, slots=True)
class Timed:
    """What one process does whose every piece of work is timed, as in timed.c."""

    kind: str
    us: int

    def command(self, seconds: float) -> list[str]:
        """Return the command that does it."""
        return [str(build.program("timed")), self.kind, str(self.us), str(seconds)]


@dataclass(frozen=True, slots=True)
class Fed:
    """What came of it: what the kernels took together over the time, the longest launch, the whole time."""

    share: float
    longest_ms: float
    seconds: float


class Container:
    """Limits and a region of their own, as files; no arbiter."""

    def __init__(self, cores: int | None) -> None:
        self._folder = launch.write_files(launch.parse("64GiB", cores, "fixed"))
        self.env = native_env() | launch.variables(self._folder, {})

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        shutil.rmtree(self._folder)

    def gpu_seconds(self) -> float:
        """Return the GPU time that the limiter counted."""
        seen = region.decode((self._folder / "region").read_bytes())
        return sum(card.gpu_ns for card in seen.cards) / 1e9


class Feeder:
    """A program that starts, and then waits to be told. What it says raises RuntimeError where something failed."""

    def __init__(self, load: Load | Timed, seconds: float, env: Mapping[str, str]) -> None:
        command = load.command(seconds)
        self._process = subprocess.Popen(
            command, env=dict(env), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

    def await_start(self) -> dict[str, Any]:
        """Return what it says once it is ready."""
        return self.answer()

    def go(self, begin_ns: int | None = None) -> None:
        """Let it feed, and count from that moment of the monotonic clock; where none is named, after a second."""
        assert self._process.stdin is not None
        self._process.stdin.write(f"{begin_ns or ''}\n")
        self._process.stdin.flush()

    def answer(self) -> dict[str, Any]:
        """Return the next line that it says; one that says nothing for long is killed."""
        assert self._process.stdout is not None
        if not select.select([self._process.stdout], [], [], PATIENCE_S)[0]:
            self._process.kill()
            raise RuntimeError("a program hangs")
        line = self._process.stdout.readline()
        said: dict[str, Any] = json.loads(line or '{"result": -1, "function": "the start"}')
        if said["result"] or said.get("ready") is False:
            raise RuntimeError(f"{said['function'] or 'no CUDA driver'}: {said['result']}")
        return said

    def end(self) -> None:
        """Wait until it has ended, which one that is no longer told anything soon does."""
        try:
            self._process.communicate(timeout=END_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.communicate()


def feed(load: Load, seconds: float, env: Mapping[str, str], processes: int = 1) -> Fed:
    """Feed the card from so many processes of a container at once; their shares are added."""
    if processes > 1:
        each = feed_together([(load, env)] * processes, seconds)
        spent = seconds + (WARM_NS + TAIL_NS) / 1e9
        return Fed(sum(fed.share for fed in each), max(fed.longest_ms for fed in each), spent)
    feeder = Feeder(load, seconds, _knowing(load, env))
    feeder.await_start()
    begun = time.monotonic()
    feeder.go()
    answer, spent = feeder.answer(), time.monotonic() - begun
    feeder.end()
    return _fed(load, answer, spent)


def feed_together(
    loads: Sequence[tuple[Load, Mapping[str, str]]],
    seconds: float,
    meanwhile: Callable[[int], None] = lambda _begin_ns: None,
) -> list[Fed]:
    """Feed the card from several containers at once, for the same time; `meanwhile` is called with its beginning."""
    answers = run_together(loads, seconds, meanwhile)
    return [_fed(load, answer, seconds) for (load, _), answer in zip(loads, answers, strict=True)]


def run_together(
    loads: Sequence[tuple[Load | Timed, Mapping[str, str]]],
    seconds: float,
    meanwhile: Callable[[int], None] = lambda _begin_ns: None,
) -> list[dict[str, Any]]:
    """Start all, let all begin, and return what each says in the end."""
    feeders = [Feeder(load, seconds, _knowing(load, env)) for load, env in loads]
    try:
        for feeder in feeders:
            feeder.await_start()
        begin_ns = time.monotonic_ns() + WARM_NS
        for feeder in feeders:
            feeder.go(begin_ns)
        meanwhile(begin_ns)
        return [feeder.answer() for feeder in feeders]
    finally:
        for feeder in feeders:
            feeder.end()


def _knowing(load: Load | Timed, env: Mapping[str, str]) -> Mapping[str, str]:
    """Tell what works how much takes how long, so that none finds it out while others do."""
    works = isinstance(load, Timed) or load.kind == "work"
    return {**env, "BENCH_TURNS": str(turns_of_ms())} if works else env


@functools.cache
def turns_of_ms() -> float:
    """Return how many turns of its loop a kernel that works does in a millisecond, alone."""
    feeder = Feeder(Load("work", 1000), 0, native_env())
    turns = float(feeder.await_start()["turns"])
    feeder.end()
    return turns


def _fed(load: Load, answer: Mapping[str, Any], seconds: float) -> Fed:
    share = answer["count"] * load.us * 1000 / answer["ns"]
    return Fed(share, answer["longest_ns"] / 1e6, seconds)
