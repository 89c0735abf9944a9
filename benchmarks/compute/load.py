"""Loads of the card: `feed.c` natively or in a container with a share, one process or several."""

import json
import shutil
import subprocess
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

from benchmarks.limiter import build
from benchmarks.limiter.worker import native_env
from limiter import launch
from vgpu import region

WARM_NS = 1_000_000_000


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
class Fed:
    """What came of it: what the kernels took together over the time, the longest launch, the whole time."""

    share: float
    longest_ms: float
    seconds: float


class Container:
    """Limits and a region of their own, as files."""

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
    """A started `feed.c` that waits to be told. Raises RuntimeError where it cannot start."""

    def __init__(self, load: Load, seconds: float, env: Mapping[str, str]) -> None:
        command = load.command(seconds)
        self._process = subprocess.Popen(
            command, env=dict(env), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        self.started = self.answer()

    def go(self, begin_ns: int | None = None) -> None:
        """Let it feed, and count from that moment of the monotonic clock; where none is named, after a second."""
        assert self._process.stdin is not None
        self._process.stdin.write(f"{begin_ns or ''}\n")
        self._process.stdin.flush()

    def answer(self) -> dict[str, Any]:
        """Return the next line that it says."""
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        said: dict[str, Any] = json.loads(line or '{"result": -1, "function": "the start"}')
        if said["result"]:
            raise RuntimeError(f"{said['function']}: {said['result']}")
        return said

    def end(self) -> None:
        """Wait until it has ended."""
        self._process.communicate()


def feed(load: Load, seconds: float, env: Mapping[str, str], processes: int = 1) -> Fed:
    """Feed the card from so many processes at once; their shares are added."""
    feeders = [Feeder(load, seconds, env) for _ in range(processes)]
    begin_ns = time.monotonic_ns() + WARM_NS if processes > 1 else None
    begun = time.monotonic()
    for feeder in feeders:
        feeder.go(begin_ns)
    answers = [feeder.answer() for feeder in feeders]
    seconds = time.monotonic() - begun
    for feeder in feeders:
        feeder.end()
    share = sum(answer["count"] * load.us * 1000 / answer["ns"] for answer in answers)
    return Fed(share, max(answer["longest_ns"] for answer in answers) / 1e6, seconds)
