"""Data-parallel training by JAX's `pmap` in one process: each card has the whole model.

    python -m benchmarks.card_jobs.pmap RANK RANKS CARD CARDS FOLDER nccl|gloo TIMES

On two H200 a step is 15 to 20 ms. JAX keeps `pmap` for old programs only.
"""

from functools import partial
from typing import Any

from benchmarks.card_jobs import jax_cards
from benchmarks.card_jobs.jax_cards import AXIS, ArrayTraining, jax
from benchmarks.card_jobs.rank_steps import serve
from benchmarks.card_jobs.seat import Seat


def make(seat: Seat) -> ArrayTraining:
    """Return the training."""
    width, tokens = jax_cards.sizes_of(seat)
    mapped = partial(jax.pmap, axis_name=AXIS, devices=jax_cards.devices_of(seat))
    numbers = jax.numpy.arange(seat.cards)

    def batch(number: Any) -> Any:
        return jax.random.normal(jax.random.key(number), (tokens, width), jax.numpy.bfloat16)

    weights = mapped(lambda _: jax_cards.new_weights(1, width))(numbers)
    return ArrayTraining(mapped(jax_cards.updated), weights, mapped(batch)(numbers))


if __name__ == "__main__":
    serve(make)
