"""Data-parallel training by JAX's `shard_map` in one process: each card has the whole model.

    python -m benchmarks.card_jobs.shard_map RANK RANKS CARD CARDS FOLDER nccl|gloo TIMES

On two H200 a step is 15 to 20 ms.
"""

from benchmarks.card_jobs import jax_cards
from benchmarks.card_jobs.jax_cards import AXIS, ArrayTraining, jax
from benchmarks.card_jobs.rank_steps import serve
from benchmarks.card_jobs.seat import Seat


def make(seat: Seat) -> ArrayTraining:
    """Return the training. The gradients' mean is written out, so JAX must not add its own (`check_vma`)."""
    width, tokens = jax_cards.sizes_of(seat)
    cards = jax.sharding.Mesh(jax_cards.devices_of(seat), (AXIS,))
    every, parted = jax.sharding.PartitionSpec(), jax.sharding.PartitionSpec(AXIS)
    update = jax.shard_map(jax_cards.updated, mesh=cards, in_specs=(every, parted), out_specs=every, check_vma=False)
    weights = jax.device_put(jax_cards.new_weights(1, width), jax.sharding.NamedSharding(cards, every))
    batch = jax.random.normal(jax.random.key(2), (seat.cards * tokens, width), jax.numpy.bfloat16)
    return ArrayTraining(jax.jit(update), weights, jax.device_put(batch, jax.sharding.NamedSharding(cards, parted)))


if __name__ == "__main__":
    serve(make)
