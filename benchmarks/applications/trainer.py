"""Training of a transformer of 12 layers, width 2048, with AdamW: a phase counts steps.

    python -m benchmarks.applications.trainer

Kinds: steps = batches that lie on the card; loader = batches that worker processes make, and that are copied to the
card from pinned memory. The host is at most two steps ahead of the card.
"""

import collections
import importlib
import itertools
import time
from collections.abc import Iterator
from typing import Any

from benchmarks.applications.phases import LoadPhase, serve

torch: Any = importlib.import_module("torch")  # not installed where types are checked
nn: Any = torch.nn

LAYERS, WIDTH, HEADS, BATCH, LENGTH, WORKERS = 12, 2048, 16, 4, 512, 4
AHEAD = 2


class TrainerBlock(nn.Module):  # type: ignore[misc]  # torch is untyped here
    """One layer."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.into, self.out = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)
        self.up, self.down = nn.Linear(WIDTH, 4 * WIDTH), nn.Linear(4 * WIDTH, WIDTH)

    def forward(self, x: Any) -> Any:
        """Return the layer's output."""
        heads = self.into(self.first(x)).view(-1, LENGTH, 3, HEADS, WIDTH // HEADS).permute(2, 0, 3, 1, 4)
        mixed = nn.functional.scaled_dot_product_attention(*heads, is_causal=True)
        x = x + self.out(mixed.transpose(1, 2).reshape(-1, LENGTH, WIDTH))
        return x + self.down(nn.functional.gelu(self.up(self.second(x))))


class Batches(torch.utils.data.IterableDataset):  # type: ignore[misc]  # torch is untyped here
    """Batches without end, made by the processor."""

    def __iter__(self) -> Iterator[Any]:
        for seed in itertools.count():
            yield torch.randn(LENGTH, WIDTH, generator=torch.Generator().manual_seed(seed)).bfloat16()


def on_card() -> Iterator[Any]:
    """Yield one batch that lies on the card, again and again."""
    return itertools.repeat(torch.randn(BATCH, LENGTH, WIDTH, device="cuda", dtype=torch.bfloat16))


def loaded() -> Iterator[Any]:
    """Yield batches of worker processes, copied to the card."""
    loader = torch.utils.data.DataLoader(Batches(), BATCH, num_workers=WORKERS, pin_memory=True)
    return (batch.to("cuda", non_blocking=True) for batch in loader)


class Trainer:
    """The model and its optimizer."""

    def __init__(self) -> None:
        self.model = nn.Sequential(*[TrainerBlock() for _ in range(LAYERS)]).to("cuda", torch.bfloat16)
        self.optimizer = torch.optim.AdamW(self.model.parameters(), lr=1e-4)
        for _, batch in zip(range(3), on_card(), strict=False):
            self.step(batch)
        torch.cuda.synchronize()

    def step(self, batch: Any) -> None:
        """Train one step."""
        self.optimizer.zero_grad()
        (self.model(batch) - batch).square().mean().backward()
        self.optimizer.step()

    def run(self, batches: Iterator[Any], phase: LoadPhase) -> None:
        """Train until the phase ends."""
        flying: collections.deque[tuple[Any, int]] = collections.deque()
        while not phase.is_over():
            begun = time.monotonic_ns()
            self.step(next(batches))
            flying.append((torch.cuda.Event(), begun))
            flying[-1][0].record()
            if len(flying) > AHEAD:
                event, begun = flying.popleft()
                event.synchronize()
                phase.add(begun)
        torch.cuda.synchronize()


def main() -> None:
    """Build the model and serve phases."""
    trainer = Trainer()
    serve(
        {
            "steps": lambda phase: trainer.run(on_card(), phase),
            "loader": lambda phase: trainer.run(loaded(), phase),
        }
    )


if __name__ == "__main__":
    main()
