"""What the jobs in JAX share: a model of matrix products, waiting for a step, and traces of kernels."""

import gzip
import importlib
import json
import os
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

from benchmarks.card_jobs.kernel_spans import CardSpans
from benchmarks.card_jobs.kernel_traces import jax_kernels
from benchmarks.card_jobs.seat import Seat

os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")  # read by JAX when it is imported
jax: Any = importlib.import_module("jax")  # not installed where types are checked
jnp = jax.numpy

LAYERS: Final = 12
WIDTH: Final = 4096
TOKENS: Final = 6144  # of each card
TINY: Final = 64
RATE: Final = 1e-3
AXIS: Final = "cards"


def devices_of(seat: Seat) -> list[Any]:
    """Return the devices of a seat. Raises RuntimeError where JAX does not use cards."""
    found = jax.devices()
    if seat.is_on_cards and found[0].platform != "gpu":
        raise RuntimeError(f"JAX uses {found[0].platform}")
    return list(found[: seat.cards])


def sizes_of(seat: Seat) -> tuple[int, int]:
    """Return width and tokens."""
    return (WIDTH, TOKENS) if seat.is_on_cards else (TINY, TINY)


def new_weights(seed: int, width: int) -> list[Any]:
    """Return the weights of each layer."""
    return [
        jax.random.normal(key, (width, width), jnp.bfloat16) * 0.02
        for key in jax.random.split(jax.random.key(seed), LAYERS)
    ]


def updated(weights: list[Any], tokens: Any) -> list[Any]:
    """Return the weights after one step of gradient descent, with the mean of all cards' gradients."""
    slopes = jax.lax.pmean(jax.grad(_loss)(weights, tokens), AXIS)
    return [weight - RATE * slope for weight, slope in zip(weights, slopes, strict=True)]


def _loss(weights: list[Any], tokens: Any) -> Any:
    values = tokens
    for weight in weights:
        values = jax.nn.gelu(values @ weight)
    return jnp.mean((values - tokens) ** 2)


class ArrayTraining:
    """Training by a function that returns the next weights. The host is one step ahead."""

    ahead = 1

    def __init__(self, update: Callable[[Any, Any], Any], weights: Any, tokens: Any) -> None:
        self._update, self._weights, self._tokens = update, weights, tokens

    def step(self) -> Callable[[], object]:
        """Launch a step, and return what waits for its end."""
        self._weights = self._update(self._weights, self._tokens)
        wait: Callable[[], object] = self._weights[0].block_until_ready
        return wait

    def trace(self, run: Callable[[], None]) -> CardSpans:
        """Run a function and return the kernels that cards had meanwhile."""
        with tempfile.TemporaryDirectory() as folder:
            with jax.profiler.trace(folder):
                run()
            found = {}
            for path in Path(folder).rglob("*.trace.json.gz"):
                found = jax_kernels(json.loads(gzip.decompress(path.read_bytes())))
            return found
