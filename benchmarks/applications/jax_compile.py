"""The compilation of a small training step in JAX, whose autotuner times kernels behind delay kernels.

python -m benchmarks.applications.jax_compile

A phase of the kind `compile` compiles it once; only the first one of a process is not served from XLA's memory.
"""

import importlib
import itertools
import os
import time
from typing import Any

from benchmarks.applications.phases import LoadPhase, serve

os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")  # read by JAX when it is imported
jax: Any = importlib.import_module("jax")  # not installed where types are checked
jnp = jax.numpy

WIDTHS, BATCH, RATE = (512, 1024, 2048, 1536, 512), 256, 1e-3


def loss(weights: list[Any], batch: Any) -> Any:
    """Return the mean square of the distance between output and input."""
    x = batch
    for weight in weights:
        x = jax.nn.gelu(x @ weight)
    return jnp.mean((x - batch) ** 2)


def update(weights: list[Any], batch: Any) -> list[Any]:
    """Return the weights after one step of gradient descent."""
    return [weight - RATE * slope for weight, slope in zip(weights, jax.grad(loss)(weights, batch), strict=True)]


def compile_once(phase: LoadPhase) -> None:
    """Compile the step."""
    shapes = [jax.ShapeDtypeStruct(shape, jnp.bfloat16) for shape in itertools.pairwise(WIDTHS)]
    batch = jax.ShapeDtypeStruct((BATCH, WIDTHS[0]), jnp.bfloat16)
    begun = time.monotonic_ns()
    jax.jit(update).lower(shapes, batch).compile()
    phase.add(begun)


def main() -> None:
    """Make the context and serve phases."""
    jnp.ones(8).block_until_ready()
    serve({"compile": compile_once})


if __name__ == "__main__":
    main()
