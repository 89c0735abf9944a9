"""Convolutions whose algorithms cuDNN chooses by timing them, as `torch.backends.cudnn.benchmark` asks for.

python -m benchmarks.applications.cudnn_tune

A phase of the kind `compile` runs the first step of each convolution, forward and backward; only the first one of a
process is tuned. What was chosen are the names of the kernels that the profiler sees in a further step.
"""

import importlib
import time
from typing import Any

from benchmarks.applications.phases import LoadPhase, serve

torch: Any = importlib.import_module("torch")  # not installed where types are checked

BATCH = 32
# Channels in and out, pixels of a side, pixels of the filter's side.
SHAPES = ((16, 64, 112, 7), (64, 64, 56, 3), (64, 128, 56, 3), (128, 128, 28, 3), (256, 256, 14, 3), (256, 512, 14, 1))


class Convolution:
    """A convolution and its input."""

    def __init__(self, into: int, out: int, pixels: int, side: int) -> None:
        self.name = f"{into} to {out} channels of {pixels}, filter {side}"
        self.layer = torch.nn.Conv2d(into, out, side, padding=side // 2, bias=False).to("cuda", torch.bfloat16)
        self.image = torch.randn(BATCH, into, pixels, pixels, device="cuda", dtype=torch.bfloat16, requires_grad=True)

    def step(self) -> None:
        """Run it forward and backward."""
        self.layer(self.image).sum().backward()
        torch.cuda.synchronize()

    def kernels(self) -> str:
        """Return the names of the kernels of a step."""
        with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CUDA]) as profiler:
            self.step()
        on_card = [event.name for event in profiler.events() if event.device_type == torch.autograd.DeviceType.CUDA]
        return ", ".join(sorted(set(on_card)))


def tune_once(every: list[Convolution], phase: LoadPhase) -> None:
    """Run the first steps, and note the kernels of further ones."""
    torch.backends.cudnn.benchmark = True
    begun = time.monotonic_ns()
    for one in every:
        one.step()
    phase.add(begun)
    phase.choices |= {one.name: one.kernels() for one in every}


def main() -> None:
    """Make the convolutions and serve phases."""
    every = [Convolution(*shape) for shape in SHAPES]
    torch.cuda.synchronize()
    serve({"compile": lambda phase: tune_once(every, phase)})


if __name__ == "__main__":
    main()
