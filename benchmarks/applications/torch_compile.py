"""The compilation of a small network by `torch.compile` with autotuning, and its first steps.

python -m benchmarks.applications.torch_compile

A phase of the kind `compile` compiles it once; only the first one of a process is not served from memory.
"""

import importlib
import time
from collections.abc import Mapping
from typing import Any

from benchmarks.applications.phases import LoadPhase, serve

torch: Any = importlib.import_module("torch")  # not installed where types are checked
nn: Any = torch.nn

WIDTH, INNER, BATCH, STEPS = 1024, 4096, 512, 3


def note_choices(phase: LoadPhase) -> None:
    """Let PyTorch tell the fastest candidate of each operation that it tunes."""

    def note(timings: Mapping[Any, float], name: str, *_: object) -> None:
        best = min(timings, key=lambda choice: timings[choice])
        described = getattr(best, "description", "") or best.name
        phase.choices[f"{name} {len(phase.choices)}"] = f"{type(best).__name__} {described}"

    importlib.import_module("torch._inductor.select_algorithm").add_feedback_saver(note)


def compile_once(model: Any, batch: Any, phase: LoadPhase) -> None:
    """Compile the network and run its first steps."""
    note_choices(phase)
    begun = time.monotonic_ns()
    compiled = torch.compile(model, mode="max-autotune")
    for _ in range(STEPS):
        compiled(batch)
    torch.cuda.synchronize()
    phase.add(begun)


def main() -> None:
    """Make the network and serve phases."""
    with torch.inference_mode():
        layers = (nn.Linear(WIDTH, INNER), nn.GELU(), nn.Linear(INNER, WIDTH))
        model = nn.Sequential(*layers).to("cuda", torch.bfloat16)
        batch = torch.randn(BATCH, WIDTH, device="cuda", dtype=torch.bfloat16)
        model(batch)
        torch.cuda.synchronize()
        serve({"compile": lambda phase: compile_once(model, batch, phase)})


if __name__ == "__main__":
    main()
