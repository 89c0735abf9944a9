"""Prefill of a transformer of 24 layers, width 2048, 8 x 512 tokens: a phase counts requests.

    python -m benchmarks.applications.prefill

Kind: requests = 4 a second at random moments, by a seeded random process, whose times count from their arrival. A
request is about 17 ms of large kernels on an H200, and the host waits for its end.
"""

import importlib
import random
import time
from typing import Any

from benchmarks.applications.phases import LoadPhase, serve

torch: Any = importlib.import_module("torch")  # not installed where types are checked
functional = torch.nn.functional

LAYERS, WIDTH, HEADS, BATCH, LENGTH = 24, 2048, 16, 8, 512
PER_SECOND = 4


class PrefillLayer:
    """One layer's weights."""

    def __init__(self) -> None:
        self.into, self.out = _weight(3 * WIDTH, WIDTH), _weight(WIDTH, WIDTH)
        self.up, self.down = _weight(4 * WIDTH, WIDTH), _weight(WIDTH, 4 * WIDTH)

    def forward(self, x: Any) -> Any:
        """Return the layer's output."""
        heads = functional.linear(x, self.into).view(BATCH, LENGTH, 3, HEADS, WIDTH // HEADS)
        mixed = functional.scaled_dot_product_attention(*heads.permute(2, 0, 3, 1, 4), is_causal=True)
        x = x + functional.linear(mixed.transpose(1, 2).reshape(BATCH, LENGTH, WIDTH), self.out)
        return x + functional.linear(functional.gelu(functional.linear(x, self.up)), self.down)


class Prefill:
    """The transformer and its input."""

    def __init__(self) -> None:
        self.layers = [PrefillLayer() for _ in range(LAYERS)]
        self.prompt = torch.randn(BATCH, LENGTH, WIDTH, device="cuda", dtype=torch.bfloat16)
        self.request()

    def request(self) -> None:
        """Serve one request, and wait for its end."""
        x = self.prompt
        for layer in self.layers:
            x = layer.forward(x)
        torch.cuda.synchronize()


def _weight(*shape: int) -> Any:
    return torch.randn(*shape, device="cuda", dtype=torch.bfloat16) * 0.02


def at_random(model: Prefill, phase: LoadPhase) -> None:
    """Serve requests in the order of their arrival."""
    arrivals, at = random.Random(1), time.monotonic_ns()
    while not phase.is_over():
        at += int(arrivals.expovariate(PER_SECOND) * 1e9)
        time.sleep(max(0, at - time.monotonic_ns()) / 1e9)
        model.request()
        phase.add(at)


def main() -> None:
    """Build the model and serve phases."""
    with torch.inference_mode():
        model = Prefill()
        serve({"requests": lambda phase: at_random(model, phase)})


if __name__ == "__main__":
    main()
