"""Fully sharded training by PyTorch's `fully_shard`: each rank has a part of each block's weights.

    python -m benchmarks.card_jobs.fsdp RANK RANKS CARD CARDS FOLDER nccl|gloo TIMES

On two H200 a step is about 20 ms: all-gathers before each block, forwards and backwards, and a reduce-scatter behind
it, beside the products.
"""

import importlib
from typing import Any, Final

from benchmarks.card_jobs import torch_cards
from benchmarks.card_jobs.layers import LayerSizes, LayerTraining, batch, layers
from benchmarks.card_jobs.rank_steps import serve
from benchmarks.card_jobs.seat import Seat

sharding: Any = importlib.import_module("torch.distributed.fsdp")

SIZES: Final = LayerSizes(layers=20, width=4096, tokens=4608)
OF_A_BLOCK: Final = 2  # layers


def make(seat: Seat) -> LayerTraining:
    """Join the other ranks and return the training."""
    device, sizes = torch_cards.join(seat), SIZES.of(seat)
    model = layers(sizes.layers, sizes.width, device)
    blocks = [model[first : first + OF_A_BLOCK] for first in range(0, sizes.layers, OF_A_BLOCK)]
    whole = torch_cards.torch.nn.Sequential(*blocks)
    for block in [*blocks, whole]:
        sharding.fully_shard(block)
    return LayerTraining(whole, batch(sizes, device))


if __name__ == "__main__":
    serve(make)
