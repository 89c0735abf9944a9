"""Training of a multilayer perceptron in JAX: a phase counts steps.

python -m benchmarks.applications.jax_train
"""

import importlib
import os
import time
from typing import Any

from benchmarks.applications.phases import LoadPhase, serve

os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")  # read by JAX when it is imported
jax: Any = importlib.import_module("jax")  # not installed where types are checked
jnp = jax.numpy

LAYERS, WIDTH, BATCH, RATE = 12, 4096, 2048, 1e-3


def loss(weights: list[Any], batch: Any) -> Any:
    """Return the mean square of the distance between output and input."""
    x = batch
    for weight in weights:
        x = jax.nn.gelu(x @ weight)
    return jnp.mean((x - batch) ** 2)


@jax.jit  # type: ignore[untyped-decorator]  # JAX is untyped here
def update(weights: list[Any], batch: Any) -> list[Any]:
    """Return the weights after one step of gradient descent."""
    return [weight - RATE * slope for weight, slope in zip(weights, jax.grad(loss)(weights, batch), strict=True)]


def steps(weights: list[Any], batch: Any, phase: LoadPhase) -> None:
    """Train until the phase ends; the host is one step ahead of the card."""
    former = weights
    while not phase.is_over():
        begun = time.monotonic_ns()
        weights = update(weights, batch)
        former[0].block_until_ready()
        former = weights
        phase.add(begun)
    former[0].block_until_ready()


def main() -> None:
    """Build the weights and serve phases."""
    keys = jax.random.split(jax.random.key(1), LAYERS + 1)
    weights = [jax.random.normal(key, (WIDTH, WIDTH), jnp.bfloat16) * 0.02 for key in keys[1:]]
    batch = jax.random.normal(keys[0], (BATCH, WIDTH), jnp.bfloat16)
    update(weights, batch)[0].block_until_ready()
    serve({"steps": lambda phase: steps(weights, batch, phase)})


if __name__ == "__main__":
    main()
