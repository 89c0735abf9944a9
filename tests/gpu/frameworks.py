"""On a real GPU: each framework computes equal results under a limit, and raises its own error there.

    python3 -m tests.gpu.frameworks [CASE ...]

Prints a line for each case; the exit status is 1 if one fails. What cannot run natively is left out, with the
reason. Needs `limiter/libvgpushare.so` and, for each case, its framework.
"""

import json
import subprocess
import sys
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any

from tests.gpu.container import Container, native_env

MIB = 1 << 20
LIMIT_MIB = 6144
PAST = (LIMIT_MIB + 1024) * MIB
TIMEOUT_S = 200
AT_ONCE = 4


@dataclass(frozen=True)
class Trial:
    """One of `framework_programs.CASES`, the error by which its framework says that memory is out, and its environment.

    `is_own` where the framework takes a part of what it sees there is, and asks the driver for no more.
    """

    case: str
    error: tuple[str, ...]
    env: Mapping[str, str] = field(default_factory=dict)
    is_own: bool = False


TORCH = ("OutOfMemoryError",)
JAX = ("XlaRuntimeError", "JaxRuntimeError")
REPEATABLE = "--xla_gpu_deterministic_ops=true"
ALLOCATOR = "PYTORCH_CUDA_ALLOC_CONF"
TRIALS = {
    "torch": Trial("torch", TORCH),
    "torch expandable_segments": Trial("torch", TORCH, {ALLOCATOR: "expandable_segments:True"}),
    "torch cudaMallocAsync": Trial("torch", TORCH, {ALLOCATOR: "backend:cudaMallocAsync"}),
    "torch graph": Trial("graph", TORCH),
    "torch graph, cudaMallocAsync": Trial("graph", TORCH, {ALLOCATOR: "backend:cudaMallocAsync"}),
    "torch compile": Trial("compile", TORCH),
    "torch DataLoader": Trial("loader", TORCH),
    "torch DDP, gloo": Trial("ddp", TORCH),
    "torch DDP, NCCL": Trial("nccl", TORCH),
    "CuPy": Trial("cupy", ("OutOfMemoryError",)),
    "Numba": Trial("numba", ("CudaAPIError", "CUDA_ERROR_OUT_OF_MEMORY")),
    "JAX": Trial("jax", JAX, {"XLA_FLAGS": REPEATABLE}, is_own=True),
    "JAX, allocating as needed": Trial(
        "jax", JAX, {"XLA_FLAGS": REPEATABLE, "XLA_PYTHON_CLIENT_ALLOCATOR": "platform"}
    ),
    "driver, per-thread": Trial("driver", ("OutOfMemory",)),
    "runtime, per-thread": Trial("runtime", ("cudaErrorMemoryAllocation",)),
}


def run(trial: Trial, env: Mapping[str, str], *past: str) -> dict[str, Any] | str:
    """Output of the case, or the reason why it has none."""
    command = [sys.executable, "-m", "tests.gpu.framework_programs", trial.case, *past]
    full = {**env, **trial.env, "CUBLAS_WORKSPACE_CONFIG": ":4096:8"}
    try:
        done = subprocess.run(command, env=full, capture_output=True, text=True, check=False, timeout=TIMEOUT_S)
    except subprocess.TimeoutExpired:
        return f"not done after {TIMEOUT_S} s"
    if done.returncode:
        return (done.stderr.strip().splitlines() or [f"exit code {done.returncode}"])[-1]
    answer: dict[str, Any] = json.loads(done.stdout.strip().splitlines()[-1])
    return answer


def judge(trial: Trial) -> str:
    """Empty if the trial passes; else the faults, or `left out: ...`."""
    native = run(trial, native_env())
    if isinstance(native, str):
        return f"left out: {native}"
    with Container(str(LIMIT_MIB)) as container:
        limited = run(trial, container.env, str(PAST))
        refusals = sum(card.refusals for card in container.region().cards)
    if isinstance(limited, str):
        return f"does not run: {limited}"
    faults = [
        "" if limited["values"] == native["values"] else "other results",
        "" if limited["stopped"] in trial.error else f"stopped by {limited['stopped']}",
        "" if limited["after"] == native["after"] else "does not go on",
        "" if refusals or trial.is_own else "the limiter refused nothing",
    ]
    return ", ".join(filter(None, faults))


def main(names: list[str]) -> int:
    """Judge the trials, all by default, a few at once: each has its own container."""
    chosen = names or list(TRIALS)
    wrong = 0
    with ThreadPoolExecutor(AT_ONCE) as pool:
        for name, fault in zip(chosen, pool.map(judge, map(TRIALS.__getitem__, chosen)), strict=True):
            wrong += bool(fault) and not fault.startswith("left out")
            sys.stdout.write(f"{name}: {fault or 'same results, stopped by its own error, goes on'}\n")
            sys.stdout.flush()
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
