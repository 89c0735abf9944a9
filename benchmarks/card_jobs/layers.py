"""Layers of matrix products in PyTorch, and their training."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Final, Self

from benchmarks.card_jobs import torch_cards
from benchmarks.card_jobs.kernel_spans import CardSpans
from benchmarks.card_jobs.seat import Seat
from benchmarks.card_jobs.torch_cards import torch

RATE: Final = 1e-4


@dataclass(frozen=True, slots=True)
class LayerSizes:
    """How many layers, how wide, and how many tokens a step has."""

    layers: int
    width: int
    tokens: int

    def of(self, seat: Seat) -> Self:
        """Return the sizes of a seat: tiny ones on the processor."""
        if not seat.is_on_cards:
            return replace(self, width=64, tokens=32)
        return replace(self, tokens=seat.times * self.tokens)


# On an H200 about 16 ms of a training step, and half a gigabyte of gradients.
TRAINING_SIZES: Final = LayerSizes(layers=16, width=4096, tokens=5120)


def layers(count: int, width: int, device: Any) -> Any:
    """Return layers of a product and an activation each."""
    return torch.nn.Sequential(*[_layer(width, device) for _ in range(count)])


def _layer(width: int, device: Any) -> Any:
    product = torch.nn.Linear(width, width, bias=False, device=device, dtype=torch.bfloat16)
    return torch.nn.Sequential(product, torch.nn.GELU())


def batch(sizes: LayerSizes, device: Any) -> Any:
    """Return the tokens of a step."""
    return torch.randn(sizes.tokens, sizes.width, device=device, dtype=torch.bfloat16)


class LayerTraining:
    """Training of a model by gradient descent with one batch that lies on the card."""

    ahead = 2

    def __init__(self, model: Any, tokens: Any) -> None:
        self._model, self._batch = model, tokens
        self._optimizer = torch.optim.SGD(model.parameters(), lr=RATE)

    def step(self) -> Callable[[], object]:
        """Launch a step, and return what waits for its end."""
        self._optimizer.zero_grad()
        (self._model(self._batch) - self._batch).square().mean().backward()
        self._optimizer.step()
        return torch_cards.waits_for(self._batch.device)

    def trace(self, run: Callable[[], None]) -> CardSpans:
        """Run a function and return the kernels that cards had meanwhile."""
        return torch_cards.traced(run)
