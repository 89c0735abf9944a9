"""What the limiter adds to each call: native and limited, interleaved in one run, on one processor."""

import contextlib
import json
import os
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from benchmarks.comparison import Cost, cost_of, interleave
from benchmarks.container import LimitedContainer, native_env
from benchmarks.memory.leaks import assert_limited
from benchmarks.memory.worker import MIB, Worker
from benchmarks.programs import build
from benchmarks.programs.process import CompiledProgram

CALLS = {  # figure: goal for its ratio to native, None = no goal
    "launch": 1.03,
    "alloc+free 4 KiB": 1.02,
    "alloc+free 20 MiB": 1.02,
    "async 20 MiB": 1.1,
    "pool 20 MiB": 1.1,
    "create+release 20 MiB": None,
    "cuMemGetInfo": 1.0,
}
TOGETHER = {1: 8, 10: 4}  # programs that start at the same time: pairs
CROWDS = {100: 1, 250: 1}  # each context takes half a gigabyte: a card of 141 GiB has room for 250


def measure(*, quick: bool) -> Iterator[Cost]:
    """Yield each figure as soon as it is measured."""
    with _limited() as env:
        envs = (native_env(), env)
        with _on_one_processor():
            yield from _calls(envs, 8 if quick else 60)
            yield _program_start(envs, 20 if quick else 300)
        yield from _starts(envs, 4 if quick else 20)
        yield from (_together(envs, count, pairs) for count, pairs in TOGETHER.items())


def measure_twins(*, quick: bool) -> Iterator[Cost]:
    """Yield the figures of the calls with native on both sides: the noise of a ratio in this run."""
    with _on_one_processor():
        yield from _calls((native_env(), native_env()), 8 if quick else 60)


def measure_crowds(*, quick: bool) -> Iterator[Cost]:
    """Yield how long many programs take that start at the same time."""
    crowds = {count // 10: pairs for count, pairs in CROWDS.items()} if quick else CROWDS
    with _limited() as env:
        yield from (_together((native_env(), env), count, pairs) for count, pairs in crowds.items())


@contextlib.contextmanager
def _limited() -> Iterator[Mapping[str, str]]:
    """Yield an environment with a limit of the whole card, which refuses nothing."""
    with Worker(native_env()) as worker:
        whole_mib = worker.ask("info")["whole"] // MIB
    with LimitedContainer(str(whole_mib)) as container:
        with Worker(container.env) as worker:
            assert_limited(worker, whole_mib * MIB)
        yield container.env


@contextlib.contextmanager
def _on_one_processor() -> Iterator[None]:
    """Keep this thread, and the programs it starts, on its last processor."""
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {max(before)})
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)


def _measure(servers: Sequence[CompiledProgram], figure: str, side: int) -> float:
    answer = servers[side].ask(figure)
    if answer["result"]:
        raise RuntimeError(f"{figure}: {answer}")
    return float(answer["ns"])


def _calls(envs: Sequence[Mapping[str, str]], pairs: int) -> Iterator[Cost]:
    with contextlib.ExitStack() as stack:
        servers = [stack.enter_context(CompiledProgram(env, "cost")) for env in envs]
        for figure, goal in CALLS.items():
            found = interleave(partial(_measure, servers, figure), pairs + 2)
            yield replace(cost_of(figure, found[2:]), goal=goal)  # the first round warms up


def _starts(envs: Sequence[Mapping[str, str]], pairs: int) -> Iterator[Cost]:
    found = interleave(lambda side: _run(envs[side], "begin"), pairs)
    for figure, name in (("init", "cuInit"), ("context", "primary context")):
        yield cost_of(name, [(native[figure], limited[figure]) for native, limited in found])


def _program_start(envs: Sequence[Mapping[str, str]], pairs: int) -> Cost:
    return cost_of("/bin/true", interleave(lambda side: _run(envs[side], "spawn", "/bin/true")["ns"], pairs))


def _together(envs: Sequence[Mapping[str, str]], count: int, pairs: int) -> Cost:
    found = interleave(lambda side: _run(envs[side], "together", str(count)), pairs)
    cost = cost_of(f"{count} starting together", [(native["ns"], limited["ns"]) for native, limited in found])
    native, limited = (sum(answer["failed"] for answer in side) for side in zip(*found, strict=True))
    return replace(cost, failed=(native, limited))


def _run(env: Mapping[str, str], *arguments: str) -> dict[str, Any]:
    command = [str(build.program("cost")), *arguments]
    done = subprocess.run(
        command, env=dict(env), stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, check=False
    )
    answer: dict[str, Any] = json.loads(done.stdout)
    return answer
