"""What the limiter adds to each call: native and limited by turns in one run, medians over many rounds."""

import contextlib
import json
import statistics
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from benchmarks.limiter import build
from benchmarks.limiter.leaks import assert_limited
from benchmarks.limiter.programs import Program
from benchmarks.limiter.worker import MIB, Container, Worker, native_env

LIMIT_MIB = 64 << 10  # in nobody's way
CALLS = {  # figure: the goal for its ratio to native, where there is one
    "launch": 1.03,
    "alloc+free 4 KiB": 1.02,
    "alloc+free 20 MiB": 1.02,
    "async 20 MiB": 1.1,
    "pool 20 MiB": 1.1,
    "create+release 20 MiB": None,
    "cuMemGetInfo": 1.0,
}
TOGETHER = (1, 10, 100, 300)


@dataclass(frozen=True, slots=True)
class Cost:
    """One figure: medians in nanoseconds, spread as the middle half's width over the median, and the ratio."""

    name: str
    native_ns: float
    limited_ns: float
    native_spread: float
    limited_spread: float
    goal: float | None
    failed: tuple[int, int] = (0, 0)

    @property
    def ratio(self) -> float:
        """Limited over native."""
        return self.limited_ns / self.native_ns

    def as_json(self) -> dict[str, Any]:
        """Return the figure for machines."""
        return asdict(self) | {"ratio": self.ratio}


def measure(*, quick: bool) -> Iterator[Cost]:
    """Yield each figure as it is known."""
    with Container(f"{LIMIT_MIB}") as container:
        with Worker(container.env) as worker:
            assert_limited(worker, LIMIT_MIB * MIB)
        envs = (native_env(), container.env)
        yield from _calls(envs, 8 if quick else 60)
        yield from _starts(envs, 3 if quick else 15)
        yield _program_start(envs, 20 if quick else 300)
        for count in TOGETHER[:2] if quick else TOGETHER:
            yield _together(envs, count, 1 if count > TOGETHER[1] else 3)


def _ask(server: Program, figure: str) -> float:
    answer = server.ask(figure)
    if answer["result"]:
        raise RuntimeError(f"{figure}: {answer}")
    return float(answer["ns"])


def _calls(envs: Sequence[Mapping[str, str]], rounds: int) -> Iterator[Cost]:
    with contextlib.ExitStack() as stack:
        servers = [stack.enter_context(Program(env, "cost")) for env in envs]
        for figure, goal in CALLS.items():
            both = [[_ask(server, figure) for server in servers] for _ in range(rounds + 1)]
            yield _cost(figure, both[1:], goal)  # the first turn warms up


def _starts(envs: Sequence[Mapping[str, str]], rounds: int) -> Iterator[Cost]:
    both = [[_run(env, "begin") for env in envs] for _ in range(rounds)]
    for figure, name in (("init", "cuInit"), ("context", "primary context")):
        yield _cost(name, [[answer[figure] for answer in turn] for turn in both])


def _program_start(envs: Sequence[Mapping[str, str]], rounds: int) -> Cost:
    both = [[_run(env, "spawn", "/bin/true")["ns"] for env in envs] for _ in range(rounds)]
    return _cost("/bin/true", both)


def _together(envs: Sequence[Mapping[str, str]], count: int, rounds: int) -> Cost:
    both = [[_run(env, "together", str(count)) for env in envs] for _ in range(rounds)]
    cost = _cost(f"{count} starting together", [[answer["ns"] for answer in turn] for turn in both])
    native, limited = (sum(answer["failed"] for answer in side) for side in zip(*both, strict=True))
    return replace(cost, failed=(native, limited))


def _run(env: Mapping[str, str], *arguments: str) -> dict[str, Any]:
    command = [str(build.program("cost")), *arguments]
    done = subprocess.run(
        command, env=dict(env), stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, check=False
    )
    answer: dict[str, Any] = json.loads(done.stdout)
    return answer


def _cost(name: str, turns: Sequence[Sequence[float]], goal: float | None = None) -> Cost:
    native, limited = zip(*turns, strict=True)
    middle = (statistics.median(native), statistics.median(limited))
    return Cost(name, *middle, _spread(native), _spread(limited), goal)


def _spread(times: Sequence[float]) -> float:
    if len(times) == 1:
        return 0.0
    low, middle, high = statistics.quantiles(times, n=4)
    return (high - low) / middle
