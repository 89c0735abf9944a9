"""A tensor-parallel decoder in PyTorch: a CUDA graph of a token, with an all-reduce behind each layer.

    python -m benchmarks.card_jobs.decoder RANK RANKS CARD CARDS FOLDER nccl|gloo TIMES

On two H200 a token is about 0.65 ms. The host waits for each token.
"""

from collections.abc import Callable
from typing import Any, Final

from benchmarks.card_jobs import torch_cards
from benchmarks.card_jobs.kernel_spans import CardSpans
from benchmarks.card_jobs.rank_steps import serve
from benchmarks.card_jobs.seat import Seat
from benchmarks.card_jobs.torch_cards import distributed, torch

LAYERS: Final = 24
SEQUENCES: Final = 8
WIDTH: Final = 4096  # of the hidden values
PART: Final = 3072  # of a layer's inner values: those of one rank
TINY: Final = 64
WARM_TOKENS: Final = 3


class ParallelDecoder:
    """The rank's part of the layers, and the graph of a token."""

    ahead = 0

    def __init__(self, seat: Seat) -> None:
        self._device = torch_cards.join(seat)
        width, part = (WIDTH, PART) if seat.is_on_cards else (TINY, TINY)
        self._layers = [(self._weight(part, width), self._weight(width, part)) for _ in range(LAYERS)]
        self._values = torch.randn(SEQUENCES, width, device=self._device, dtype=torch.bfloat16)
        self._token = self._captured() if seat.is_on_cards else self._compute

    def step(self) -> Callable[[], object]:
        """Launch a token, and return what waits for its end."""
        self._token()
        return torch_cards.waits_for(self._device)

    def trace(self, run: Callable[[], None]) -> CardSpans:
        """Run a function and return the kernels that cards had meanwhile."""
        return torch_cards.traced(run)

    def _weight(self, *shape: int) -> Any:
        return torch.randn(*shape, device=self._device, dtype=torch.bfloat16) * 0.02

    @torch.no_grad()  # type: ignore[untyped-decorator]  # torch is untyped here
    def _compute(self) -> None:
        functional = torch.nn.functional
        values = self._values
        for up, down in self._layers:
            inner = functional.gelu(functional.linear(functional.rms_norm(values, values.shape[-1:]), up))
            change = functional.linear(inner, down)
            distributed.all_reduce(change)
            values = values + change
        self._values.copy_(functional.rms_norm(values, values.shape[-1:]))

    def _captured(self) -> Callable[[], None]:
        """Return a function that computes a token by one graph launch.

        The thread of PyTorch that watches NCCL may ask for events meanwhile: that must not end the capture.
        """
        for _ in range(WARM_TOKENS):
            self._compute()
        torch.cuda.synchronize()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph, capture_error_mode="thread_local"):
            self._compute()
        replay: Callable[[], None] = graph.replay
        return replay


if __name__ == "__main__":
    serve(ParallelDecoder)
