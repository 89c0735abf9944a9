"""What the limiter adds to each call: native and limited by turns in one run.

Whoever is asked first is slower, and the machine's clock drifts: so a round asks native, limited, limited, native, all
on one processor, and a figure is the median of the rounds' own ratios.
"""

import contextlib
import json
import os
import statistics
import subprocess
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, TypeVar

from benchmarks.limiter import build
from benchmarks.limiter.leaks import assert_limited
from benchmarks.limiter.programs import Program
from benchmarks.limiter.worker import MIB, Container, Worker, native_env

CALLS = {  # figure: the goal for its ratio to native, where there is one
    "launch": 1.03,
    "alloc+free 4 KiB": 1.02,
    "alloc+free 20 MiB": 1.02,
    "async 20 MiB": 1.1,
    "pool 20 MiB": 1.1,
    "create+release 20 MiB": None,
    "cuMemGetInfo": 1.0,
}
TOGETHER = (1, 10, 100, 250)  # with half a gigabyte for each one's context, so many as a card of 141 GiB has room for
FEW = 10  # are started together more than once

Pair = tuple[float, float]  # native, limited
Answer = TypeVar("Answer")


@dataclass(frozen=True, slots=True)
class Cost:
    """One figure: medians in nanoseconds, and the rounds' ratios of limited to native.

    Attributes:
        name: the call.
        native_ns: of all rounds.
        limited_ns: likewise.
        ratio: the median of the rounds' ratios.
        middle: between which the middle half of them lies; the spread.
        goal: for the ratio, where there is one.
        failed: how many programs could not start, natively and limited.
    """

    name: str
    native_ns: float
    limited_ns: float
    ratio: float
    middle: Pair
    goal: float | None = None
    failed: tuple[int, int] = (0, 0)

    def as_json(self) -> dict[str, Any]:
        """Return the figure for machines."""
        return asdict(self)


def measure(*, quick: bool) -> Iterator[Cost]:
    """Yield each figure as it is known."""
    with Worker(native_env()) as worker:
        whole_mib = worker.ask("info")["whole"] // MIB  # is in nobody's way
    with Container(str(whole_mib)) as container:
        with Worker(container.env) as worker:
            assert_limited(worker, whole_mib * MIB)
        yield from compare((native_env(), container.env), quick=quick)


def measure_twins(*, quick: bool) -> Iterator[Cost]:
    """Yield the same figures with native in both places: what 1.00 looks like in this run."""
    yield from compare((native_env(), native_env()), quick=quick)


def compare(envs: Sequence[Mapping[str, str]], *, quick: bool) -> Iterator[Cost]:
    """Yield each figure, of the second environment over the first."""
    with _on_one_processor():
        yield from _calls(envs, 8 if quick else 60)
        yield from _starts(envs, 4 if quick else 16)
        yield _program_start(envs, 20 if quick else 300)
    for count in TOGETHER[:2] if quick else TOGETHER:
        yield _together(envs, count, 8 if count <= FEW else 1)


@contextlib.contextmanager
def _on_one_processor() -> Iterator[None]:
    """Keep this thread, and what it starts, on its last processor."""
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {max(before)})
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)


def _by_turns(ask: Callable[[int], Answer], pairs: int) -> list[tuple[Answer, Answer]]:
    """Ask both sides, 0 and 1, so many times, in the order 0 1 1 0 0 1 1 0."""
    found = []
    for number in range(pairs):
        first = number % 2
        answers = {side: ask(side) for side in (first, 1 - first)}
        found.append((answers[0], answers[1]))
    return found


def _ask(server: Program, figure: str) -> float:
    answer = server.ask(figure)
    if answer["result"]:
        raise RuntimeError(f"{figure}: {answer}")
    return float(answer["ns"])


def _calls(envs: Sequence[Mapping[str, str]], pairs: int) -> Iterator[Cost]:
    with contextlib.ExitStack() as stack:
        servers = [stack.enter_context(Program(env, "cost")) for env in envs]
        for figure, goal in CALLS.items():
            found = _by_turns(lambda side, figure=figure: _ask(servers[side], figure), pairs + 2)
            yield replace(_cost(figure, found[2:]), goal=goal)  # the first round warms up


def _starts(envs: Sequence[Mapping[str, str]], pairs: int) -> Iterator[Cost]:
    found = _by_turns(lambda side: _run(envs[side], "begin"), pairs)
    for figure, name in (("init", "cuInit"), ("context", "primary context")):
        yield _cost(name, [(native[figure], limited[figure]) for native, limited in found])


def _program_start(envs: Sequence[Mapping[str, str]], pairs: int) -> Cost:
    return _cost("/bin/true", _by_turns(lambda side: _run(envs[side], "spawn", "/bin/true")["ns"], pairs))


def _together(envs: Sequence[Mapping[str, str]], count: int, pairs: int) -> Cost:
    found = _by_turns(lambda side: _run(envs[side], "together", str(count)), pairs)
    cost = _cost(f"{count} starting together", [(native["ns"], limited["ns"]) for native, limited in found])
    native, limited = (sum(answer["failed"] for answer in side) for side in zip(*found, strict=True))
    return replace(cost, failed=(native, limited))


def _run(env: Mapping[str, str], *arguments: str) -> dict[str, Any]:
    command = [str(build.program("cost")), *arguments]
    done = subprocess.run(
        command, env=dict(env), stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, check=False
    )
    answer: dict[str, Any] = json.loads(done.stdout)
    return answer


def _cost(name: str, pairs: Sequence[Pair]) -> Cost:
    native, limited = zip(*pairs, strict=True)
    ratios = [_ratio(pairs[first : first + 2]) for first in range(0, len(pairs), 2)]
    return Cost(name, statistics.median(native), statistics.median(limited), statistics.median(ratios), _middle(ratios))


def _ratio(of_round: Sequence[Pair]) -> float:
    native, limited = zip(*of_round, strict=True)
    return sum(limited) / sum(native)


def _middle(ratios: Sequence[float]) -> Pair:
    if len(ratios) == 1:
        return ratios[0], ratios[0]
    low, _, high = statistics.quantiles(ratios, n=4, method="inclusive")
    return low, high
