"""Inference with a small transformer in eager mode, 6 layers, width 1024, 4 x 128 tokens: a phase counts requests.

    python -m benchmarks.applications.small_model

A request is about 60 short launches, and the host waits for its end. Kinds: closed = one request after the other;
`open N` = 20 requests a second at random moments, by the random process with seed N, whose times count from their
arrival.
"""

import importlib
import random
import time
from typing import Any

from benchmarks.applications.phases import LoadPhase, serve

torch: Any = importlib.import_module("torch")  # not installed where types are checked
functional = torch.nn.functional

LAYERS, WIDTH, HEADS, BATCH, LENGTH = 6, 1024, 16, 4, 128
PER_SECOND, SEEDS = 20, 16


class SmallLayer:
    """One layer's weights."""

    def __init__(self) -> None:
        self.into, self.out = _weight(3 * WIDTH, WIDTH), _weight(WIDTH, WIDTH)
        self.up, self.down = _weight(4 * WIDTH, WIDTH), _weight(WIDTH, 4 * WIDTH)
        self.scale = torch.ones(WIDTH, device="cuda", dtype=torch.bfloat16)

    def forward(self, x: Any) -> Any:
        """Return the layer's output."""
        normed = functional.layer_norm(x, (WIDTH,), self.scale)
        heads = functional.linear(normed, self.into).view(BATCH, LENGTH, 3, HEADS, WIDTH // HEADS)
        mixed = functional.scaled_dot_product_attention(*heads.permute(2, 0, 3, 1, 4), is_causal=True)
        x = x + functional.linear(mixed.transpose(1, 2).reshape(BATCH, LENGTH, WIDTH), self.out)
        normed = functional.layer_norm(x, (WIDTH,), self.scale)
        return x + functional.linear(functional.gelu(functional.linear(normed, self.up)), self.down)


class SmallModel:
    """The transformer and its input."""

    def __init__(self) -> None:
        self.layers = [SmallLayer() for _ in range(LAYERS)]
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


def closed(model: SmallModel, phase: LoadPhase) -> None:
    """Serve request after request until the phase ends."""
    while not phase.is_over():
        begun = time.monotonic_ns()
        model.request()
        phase.add(begun)


def at_random(model: SmallModel, seed: int, phase: LoadPhase) -> None:
    """Serve requests in the order of their arrival, by a seeded random process."""
    arrivals, at = random.Random(seed), time.monotonic_ns()
    while not phase.is_over():
        at += int(arrivals.expovariate(PER_SECOND) * 1e9)
        time.sleep(max(0, at - time.monotonic_ns()) / 1e9)
        model.request()
        phase.add(at)


def main() -> None:
    """Build the model and serve phases."""
    with torch.inference_mode():
        model = SmallModel()
        seeded = {f"open {seed}": lambda phase, seed=seed: at_random(model, seed, phase) for seed in range(SEEDS)}
        serve({"closed": lambda phase: closed(model, phase)} | seeded)


if __name__ == "__main__":
    main()
