"""Data-parallel training by PyTorch's DistributedDataParallel: each rank has a card and the whole model.

    python -m benchmarks.card_jobs.ddp RANK RANKS CARD CARDS FOLDER nccl|gloo TIMES

On two H200 a step is about 16 ms of products and 1.7 ms of the all-reduce behind them, because all gradients but the
first ones are in one bucket.
"""

from typing import Final

from benchmarks.card_jobs import torch_cards
from benchmarks.card_jobs.layers import TRAINING_SIZES, LayerTraining, batch, layers
from benchmarks.card_jobs.rank_steps import serve
from benchmarks.card_jobs.seat import Seat
from benchmarks.card_jobs.torch_cards import torch

BUCKET_MIB: Final = 4096


def make(seat: Seat) -> LayerTraining:
    """Join the other ranks and return the training."""
    device, sizes = torch_cards.join(seat), TRAINING_SIZES.of(seat)
    model = layers(sizes.layers, sizes.width, device)
    parallel = torch.nn.parallel.DistributedDataParallel(
        model, bucket_cap_mb=BUCKET_MIB, gradient_as_bucket_view=True, static_graph=True
    )
    return LayerTraining(parallel, batch(sizes, device))


if __name__ == "__main__":
    serve(make)
