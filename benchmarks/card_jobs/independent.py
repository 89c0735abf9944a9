"""Training on one card, without collectives: programs of one container that have nothing to do with each other.

    python -m benchmarks.card_jobs.independent RANK RANKS CARD CARDS FOLDER nccl|gloo TIMES

On an H200 a step is about 16 ms, TIMES as much where TIMES is more than 1.
"""

from benchmarks.card_jobs import torch_cards
from benchmarks.card_jobs.layers import TRAINING_SIZES, LayerTraining, batch, layers
from benchmarks.card_jobs.rank_steps import serve
from benchmarks.card_jobs.seat import Seat


def make(seat: Seat) -> LayerTraining:
    """Return the training."""
    device, sizes = torch_cards.device_of(seat, seat.card), TRAINING_SIZES.of(seat)
    return LayerTraining(layers(sizes.layers, sizes.width, device), batch(sizes, device))


if __name__ == "__main__":
    serve(make)
