"""A model whose layers lie on several cards, in one process: each card works while the others wait.

    python -m benchmarks.card_jobs.pipeline RANK RANKS CARD CARDS FOLDER nccl|gloo TIMES

On two H200 a step is about 16.5 ms on each card, one card after the other. The host waits for each step.
"""

from collections.abc import Callable
from typing import Final

from benchmarks.card_jobs import torch_cards
from benchmarks.card_jobs.kernel_spans import CardSpans
from benchmarks.card_jobs.layers import LayerSizes, batch, layers
from benchmarks.card_jobs.rank_steps import serve
from benchmarks.card_jobs.seat import Seat
from benchmarks.card_jobs.torch_cards import torch

SIZES: Final = LayerSizes(layers=17, width=4096, tokens=16384)  # layers of each card


class CardPipeline:
    """The layers of each card."""

    ahead = 0

    def __init__(self, seat: Seat) -> None:
        sizes = SIZES.of(seat)
        self._devices = [torch_cards.device_of(seat, card) for card in range(seat.card, seat.card + seat.cards)]
        self._parts = [layers(sizes.layers, sizes.width, device) for device in self._devices]
        self._batch = batch(sizes, self._devices[0])

    @torch.inference_mode()  # type: ignore[untyped-decorator]  # torch is untyped here
    def step(self) -> Callable[[], object]:
        """Launch a step, and return what waits for its end."""
        values = self._batch
        for device, part in zip(self._devices, self._parts, strict=True):
            values = part(values.to(device, non_blocking=True))
        return torch_cards.waits_for(self._devices[-1])

    def trace(self, run: Callable[[], None]) -> CardSpans:
        """Run a function and return the kernels that cards had meanwhile."""
        return torch_cards.traced(run)


if __name__ == "__main__":
    serve(CardPipeline)
