"""What a training step of PyTorch takes under a limit, without a share, over native.

    python -m benchmarks.limiter.torch_step --json FILE --quick

The steps are so small that the processor is what they wait for. Each time both sides are started anew, and then asked
by turns; a line for each of PyTorch's allocators, and for native in both places.
"""

import argparse
import contextlib
import importlib
import json
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks import provenance
from benchmarks.limiter.programs import Speaker
from benchmarks.limiter.turns import Cost, Pair, by_turns, cost_of
from benchmarks.limiter.worker import MIB, Container, native_env

LIMIT_MIB = 16 << 10
REPEATABLE = {"CUBLAS_WORKSPACE_CONFIG": ":4096:8"}
ALLOCATOR = "PYTORCH_CUDA_ALLOC_CONF"
ALLOCATORS = {"native allocator": "", "cudaMallocAsync": "backend:cudaMallocAsync"}
STARTS, PAIRS = 4, 20  # both even: two pairs are a round
STEPS, WARM_UP = 50, 100
WIDTH = 1024


def main() -> int:
    """Measure, print a line for each comparison, and return 1 where a result differs from native."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--json", type=Path, help="every figure, into this file")
    parser.add_argument("--quick", action="store_true", help="fewer rounds")
    asked = parser.parse_args()
    starts, pairs = (1, 4) if asked.quick else (STARTS, PAIRS)
    found = []
    losses: set[float] = set()
    with Container(str(LIMIT_MIB)) as container:
        found.append(compare("native beside itself", (native_env(), native_env()), 1, pairs, losses))
        for name, settings in ALLOCATORS.items():
            envs = [{**env, ALLOCATOR: settings} for env in (native_env(), container.env)]
            found.append(compare(name, envs, starts, pairs, losses))
    print("all learn the same" if len(losses) == 1 else f"they do not learn the same: {losses}")
    if asked.json:
        figures = {"steps": [cost.as_json() for cost in found]}
        asked.json.write_text(json.dumps(provenance.of_this_machine() | figures, indent=1))
    return 0 if len(losses) == 1 else 1


def compare(name: str, envs: Sequence[Mapping[str, str]], starts: int, pairs: int, losses: set[float]) -> Cost:
    """Return what a step takes, and print it; the losses after the warm-ups are added."""
    cost = cost_of(name, [pair for _ in range(starts) for pair in run(envs, pairs, losses)])
    times = f"{cost.native_ns / 1000:.0f} us natively, {cost.limited_ns / 1000:.0f} limited"
    print(f"{name}: {times}, ratio {cost.ratio:.3f} ({cost.middle[0]:.3f} to {cost.middle[1]:.3f})", flush=True)
    return cost


def run(envs: Sequence[Mapping[str, str]], pairs: int, losses: set[float]) -> list[Pair]:
    """Start both, and return what each says a step takes, in nanoseconds."""
    command = (sys.executable, "-m", "benchmarks.limiter.torch_step", "serve")
    with contextlib.ExitStack() as stack:
        sides = [stack.enter_context(Speaker({**env, **REPEATABLE}, *command)) for env in envs]
        for env, side in zip(envs, sides, strict=True):
            losses.add(_started(side.hear(), is_limited="VGPU_REGION_FILE" in env))
        found: list[Pair] = by_turns(lambda side: float(sides[side].ask("steps")["ns"]), pairs)
    return found


def _started(said: Mapping[str, Any], *, is_limited: bool) -> float:
    if (said["total"] == LIMIT_MIB * MIB) != is_limited:
        raise RuntimeError(f"the limiter is {'not ' * is_limited}at work: {said}")
    return float(said["loss"])


def serve() -> None:
    """Train for a while at each line that is heard."""
    torch: Any = importlib.import_module("torch")  # in no environment of ours
    torch.manual_seed(1)
    torch.use_deterministic_algorithms(mode=True)
    layers = torch.nn.Linear(WIDTH, WIDTH), torch.nn.ReLU(), torch.nn.Linear(WIDTH, WIDTH)
    model = torch.nn.Sequential(*layers).cuda()
    optimizer = torch.optim.AdamW(model.parameters())
    data = torch.randn(512, WIDTH, device="cuda")

    def train(steps: int) -> Any:
        for _ in range(steps):
            optimizer.zero_grad()
            loss = (model(data) - data).square().mean()
            loss.backward()
            optimizer.step()
        torch.cuda.synchronize()
        return loss

    print(json.dumps({"loss": float(train(WARM_UP)), "total": torch.cuda.mem_get_info()[1]}), flush=True)
    for _ in sys.stdin:
        begun = time.monotonic_ns()
        train(STEPS)
        print(json.dumps({"ns": (time.monotonic_ns() - begun) / STEPS}), flush=True)


if __name__ == "__main__":
    if "serve" in sys.argv:
        serve()
    else:
        sys.exit(main())
