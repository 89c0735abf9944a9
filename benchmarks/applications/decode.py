"""Decoding by a transformer of 24 layers, width 2048, batch 8, context 512: a phase counts tokens, or requests.

    python -m benchmarks.applications.decode

Kinds: eager = about 360 launches a token; graph = one CUDA graph a token; requests = 8 graph tokens at random moments,
12 requests a second on average, whose times count from their arrival. The host waits for each token.
"""

import importlib
import random
import time
from collections.abc import Callable
from typing import Any

from benchmarks.applications.phases import LoadPhase, serve

torch: Any = importlib.import_module("torch")  # not installed where types are checked
functional = torch.nn.functional

LAYERS, WIDTH, HEADS, BATCH, CONTEXT, VOCABULARY = 24, 2048, 16, 8, 512, 32000
HEAD = WIDTH // HEADS
TOKENS, PER_SECOND = 8, 12


class DecodeLayer:
    """One layer's weights and its cache of keys and values."""

    def __init__(self) -> None:
        self.into = _weight(3 * WIDTH, WIDTH)
        self.out = _weight(WIDTH, WIDTH)
        self.up = _weight(4 * WIDTH, WIDTH)
        self.down = _weight(WIDTH, 4 * WIDTH)
        self.scale = torch.ones(WIDTH, device="cuda", dtype=torch.bfloat16)
        self.keys, self.values = (
            torch.zeros(BATCH, HEADS, CONTEXT, HEAD, device="cuda", dtype=torch.bfloat16) for _ in range(2)
        )

    def forward(self, x: Any, position: Any) -> Any:
        """Return the layer's output for one token of each sequence."""
        normed = functional.layer_norm(x, (WIDTH,), self.scale)
        query, key, value = functional.linear(normed, self.into).view(BATCH, 3 * HEADS, 1, HEAD).chunk(3, 1)
        self.keys.index_copy_(2, position, key)
        self.values.index_copy_(2, position, value)
        scores = torch.softmax(query @ self.keys.transpose(2, 3) * HEAD**-0.5, -1)
        x = x + functional.linear((scores @ self.values).reshape(BATCH, WIDTH), self.out)
        normed = functional.layer_norm(x, (WIDTH,), self.scale)
        return x + functional.linear(functional.gelu(functional.linear(normed, self.up)), self.down)


class DecodeModel:
    """The transformer, and one CUDA graph of a token."""

    def __init__(self) -> None:
        self.layers = [DecodeLayer() for _ in range(LAYERS)]
        self.words = _weight(VOCABULARY, WIDTH)
        self.token = torch.zeros(BATCH, device="cuda", dtype=torch.int64)
        self.position = torch.zeros(1, device="cuda", dtype=torch.int64)

    def step(self) -> None:
        """Compute the next token of each sequence."""
        x = functional.embedding(self.token, self.words)
        for layer in self.layers:
            x = layer.forward(x, self.position)
        self.token.copy_(torch.argmax(functional.linear(x, self.words), -1))
        self.position.add_(1).remainder_(CONTEXT)

    def captured(self) -> Callable[[], None]:
        """Return a function that computes the next token by one graph launch."""
        for _ in range(3):
            self.step()
        torch.cuda.synchronize()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            self.step()
        replay: Callable[[], None] = graph.replay
        return replay


def _weight(*shape: int) -> Any:
    return torch.randn(*shape, device="cuda", dtype=torch.bfloat16) * 0.02


def tokens(step: Callable[[], None], model: DecodeModel, phase: LoadPhase) -> None:
    """Decode token by token until the phase ends."""
    while not phase.is_over():
        begun = time.monotonic_ns()
        step()
        model.token.tolist()
        phase.add(begun)


def requests(step: Callable[[], None], model: DecodeModel, phase: LoadPhase) -> None:
    """Serve requests in the order of their arrival, by a seeded random process."""
    arrivals = random.Random(1)
    at = time.monotonic_ns()
    while not phase.is_over():
        at += int(arrivals.expovariate(PER_SECOND) * 1e9)
        time.sleep(max(0, at - time.monotonic_ns()) / 1e9)
        at = max(at, time.monotonic_ns() - 1_000_000)  # a request that finds another one under way waits for no third
        for _ in range(TOKENS):
            step()
            model.token.tolist()
        phase.add(at)


def main() -> None:
    """Build the model and serve phases."""
    with torch.inference_mode():
        model = DecodeModel()
        replay = model.captured()
        serve(
            {
                "eager": lambda phase: tokens(model.step, model, phase),
                "graph": lambda phase: tokens(replay, model, phase),
                "requests": lambda phase: requests(replay, model, phase),
            }
        )


if __name__ == "__main__":
    main()
