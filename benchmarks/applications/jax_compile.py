"""The compilation of a training step in JAX, whose autotuner times kernels behind delay kernels.

python -m benchmarks.applications.jax_compile

A phase compiles one model's step once: perceptron, transformer or convolutions. Only the first one of a process is not
served from XLA's memory. BENCH_XLA_CHOICES names the file into which XLA writes its choices.
"""

import importlib
import itertools
import os
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from benchmarks.applications import choices
from benchmarks.applications.phases import LoadPhase, serve

os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")  # read by JAX when it is imported
jax: Any = importlib.import_module("jax")  # not installed where types are checked
jnp = jax.numpy

WIDTHS, BATCH, RATE = (512, 1024, 2048, 1536, 512), 256, 1e-3
WIDTH, HEADS, LENGTH, SEQUENCES = 512, 8, 256, 8
CHANNELS, PIXELS, IMAGES = (16, 64, 128, 64), 56, 32

Forward = Callable[[list[Any], Any], Any]


def perceptron(weights: list[Any], x: Any) -> Any:
    """Return the output of a multilayer perceptron."""
    for weight in weights:
        x = jax.nn.gelu(x @ weight)
    return x


def transformer(weights: list[Any], x: Any) -> Any:
    """Return the output of a layer of a transformer."""
    into, out, up, down = weights
    heads = (x @ into).reshape(SEQUENCES, LENGTH, 3, HEADS, WIDTH // HEADS)
    query, key, value = heads[:, :, 0], heads[:, :, 1], heads[:, :, 2]
    scores = jax.nn.softmax(jnp.einsum("bqhd,bkhd->bhqk", query, key), axis=-1)
    x = x + jnp.einsum("bhqk,bkhd->bqhd", scores, value).reshape(SEQUENCES, LENGTH, WIDTH) @ out
    return x + jax.nn.gelu(x @ up) @ down


def convolutions(weights: list[Any], x: Any) -> Any:
    """Return the output of a convolutional network."""
    for weight in weights:
        layout = ("NHWC", "HWIO", "NHWC")
        x = jax.nn.relu(jax.lax.conv_general_dilated(x, weight, (1, 1), "SAME", dimension_numbers=layout))
    return x


def step_of(forward: Forward) -> Callable[[list[Any], Any], list[Any]]:
    """Return the function of a step of gradient descent: it returns the new weights."""

    def loss(weights: list[Any], batch: Any) -> Any:
        return jnp.mean(forward(weights, batch).astype(jnp.float32) ** 2)

    def update(weights: list[Any], batch: Any) -> list[Any]:
        slopes = jax.grad(loss)(weights, batch)
        return [weight - RATE * slope for weight, slope in zip(weights, slopes, strict=True)]

    return update


def compile_once(forward: Forward, shapes: Sequence[tuple[int, ...]], batch: tuple[int, ...], phase: LoadPhase) -> None:
    """Compile the step of a model, and read what XLA has chosen."""
    weights = [jax.ShapeDtypeStruct(shape, jnp.bfloat16) for shape in shapes]
    begun = time.monotonic_ns()
    jax.jit(step_of(forward)).lower(weights, jax.ShapeDtypeStruct(batch, jnp.bfloat16)).compile()
    phase.add(begun)
    path = Path(os.environ.get("BENCH_XLA_CHOICES", "/dev/null"))
    phase.choices |= choices.of_xla(path.read_text()) if path.exists() else {}


def main() -> None:
    """Make the context and serve phases."""
    jnp.ones(8).block_until_ready()
    dense = list(itertools.pairwise(WIDTHS))
    layer = [(WIDTH, 3 * WIDTH), (WIDTH, WIDTH), (WIDTH, 4 * WIDTH), (4 * WIDTH, WIDTH)]
    filters = [(3, 3, *pair) for pair in itertools.pairwise(CHANNELS)]
    image = (IMAGES, PIXELS, PIXELS, CHANNELS[0])
    serve(
        {
            "perceptron": lambda phase: compile_once(perceptron, dense, (BATCH, WIDTHS[0]), phase),
            "transformer": lambda phase: compile_once(transformer, layer, (SEQUENCES, LENGTH, WIDTH), phase),
            "convolutions": lambda phase: compile_once(convolutions, filters, image, phase),
        }
    )


if __name__ == "__main__":
    main()
