"""What a training step of PyTorch costs under a memory limit, compared with native.

    python -m benchmarks.memory.torch_step --json FILE --quick

A small step is bound by the processor, a large one by the card. Each comparison starts both sides again on the same
processors and interleaves their steps. There is a line for each of PyTorch's allocators, and for native on both sides.
"""

import argparse
import contextlib
import importlib
import json
import os
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from benchmarks.comparison import Cost, Pair, cost_of, interleave
from benchmarks.container import LimitedContainer, native_env
from benchmarks.memory.worker import MIB
from benchmarks.programs.process import LineProcess
from benchmarks.record import recorder
from benchmarks.record.recorder import ResultRecorder

LIMIT_MIB = 16 << 10
REPEATABLE = {"CUBLAS_WORKSPACE_CONFIG": ":4096:8"}
ALLOCATOR = "PYTORCH_CUDA_ALLOC_CONF"
ASYNC = "backend:cudaMallocAsync"
PROCESSORS = 2  # the backward pass runs in a second thread
WARM_UP = 100
GOAL = 1.01


@dataclass(frozen=True, slots=True)
class StepWork:
    """Number of neurons of a layer, and of steps that are timed together."""

    width: int
    steps: int


SMALL, LARGE = StepWork(1024, 20), StepWork(8192, 5)


@dataclass(frozen=True, slots=True)
class StepComparison:
    """A comparison: both sides are started `starts` times, and measured in `pairs` pairs each time."""

    name: str
    work: StepWork
    allocator: str = ""
    starts: int = 1
    pairs: int = 100
    is_native: bool = False


CASES = (
    StepComparison("small steps, native beside itself", SMALL, is_native=True),
    StepComparison("small steps", SMALL, starts=2),
    StepComparison("small steps, cudaMallocAsync", SMALL, ASYNC, starts=2),
    StepComparison("large steps", LARGE, pairs=40),
)


def main() -> int:
    """Measure, print a line for each comparison, and return 1 where a result differs from native."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--json", type=Path, help=recorder.JSON_HELP)
    parser.add_argument("--quick", action="store_true", help="fewer rounds")
    asked = parser.parse_args()
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[-PROCESSORS:])
    cases = [replace(case, starts=1, pairs=4) for case in CASES] if asked.quick else CASES
    losses: dict[StepWork, set[float]] = {work: set() for work in (SMALL, LARGE)}
    record = ResultRecorder(asked.json, "memory.torch_step", recorder.MEMORY_SOURCES)
    with LimitedContainer(str(LIMIT_MIB)) as container:
        for case in cases:
            record.add(compare(case, container.env, losses[case.work]).as_row("torch-step"))
    is_same = all(len(loss) == 1 for loss in losses.values())
    print("all losses are equal" if is_same else f"losses differ: {losses}")
    return 0 if is_same else 1


def compare(case: StepComparison, limited: Mapping[str, str], losses: set[float]) -> Cost:
    """Print and return the cost of a step; add the losses after the warm-ups to `losses`."""
    sides = (native_env(), native_env() if case.is_native else limited)
    envs = [{**env, ALLOCATOR: case.allocator} for env in sides]
    found = [pair for _ in range(case.starts) for pair in run(case, envs, losses)]
    cost = replace(cost_of(case.name, found), goal=GOAL)
    times = f"{cost.native_ns / 1000:.0f} us natively, {cost.limited_ns / 1000:.0f} limited"
    spread = f"{cost.middle[0]:.3f} to {cost.middle[1]:.3f}; goal {GOAL}"
    print(f"{case.name}: {times}, ratio {cost.ratio:.3f} ({spread})", flush=True)
    return cost


def run(case: StepComparison, envs: Sequence[Mapping[str, str]], losses: set[float]) -> list[Pair]:
    """Start both sides and return the nanoseconds of a step, by pairs."""
    work = map(str, (case.work.width, case.work.steps))
    command = (sys.executable, "-m", "benchmarks.memory.torch_step", "serve", *work)
    with contextlib.ExitStack() as stack:
        sides = [stack.enter_context(LineProcess({**env, **REPEATABLE}, *command)) for env in envs]
        for env, side in zip(envs, sides, strict=True):
            losses.add(_loss(side.read(), is_limited="VGPU_REGION_FILE" in env))
        found: list[Pair] = interleave(lambda side: float(sides[side].ask("steps")["ns"]), case.pairs)
    return found


def _loss(answer: Mapping[str, Any], *, is_limited: bool) -> float:
    """Return the loss after the warm-up. Raises RuntimeError when the side is not limited as it should be."""
    if (answer["total"] == LIMIT_MIB * MIB) != is_limited:
        raise RuntimeError(f"the limiter is {'not ' * is_limited}loaded: {answer}")
    return float(answer["loss"])


def serve(width: int, steps: int) -> None:
    """Train `steps` steps at each line of standard input."""
    torch: Any = importlib.import_module("torch")  # in no environment of ours
    torch.manual_seed(1)
    torch.use_deterministic_algorithms(mode=True)
    layers = torch.nn.Linear(width, width), torch.nn.ReLU(), torch.nn.Linear(width, width)
    model = torch.nn.Sequential(*layers).cuda()
    optimizer = torch.optim.AdamW(model.parameters())
    data = torch.randn(512, width, device="cuda")

    def train(count: int) -> Any:
        for _ in range(count):
            optimizer.zero_grad()
            loss = (model(data) - data).square().mean()
            loss.backward()
            optimizer.step()
        torch.cuda.synchronize()
        return loss.detach()

    print(json.dumps({"loss": float(train(WARM_UP)), "total": torch.cuda.mem_get_info()[1]}), flush=True)
    for _ in sys.stdin:
        begun = time.monotonic_ns()
        train(steps)
        print(json.dumps({"ns": (time.monotonic_ns() - begun) / steps}), flush=True)


if __name__ == "__main__":
    if "serve" in sys.argv:
        serve(*map(int, sys.argv[2:]))
    else:
        sys.exit(main())
