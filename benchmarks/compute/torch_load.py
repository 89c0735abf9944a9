"""Matrix products in PyTorch, eager, in a CUDA graph or compiled, and the GPU time that they took.

    python -m benchmarks.compute.torch_load eager|graph|compile SECONDS

The time of a product is the mean of the times between two events around it. Only products count that were launched
before the card had finished the product before: between the events of others the card was idle too. Prints JSON.
"""

import collections
import importlib
import json
import statistics
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

torch: Any = importlib.import_module("torch")  # not installed where types are checked

SIZE = 4096
IN_FLIGHT = 16


@dataclass(frozen=True, slots=True)
class Product:
    """The events around a product. `is_ahead`: it was launched before the card had finished the product before."""

    before: Any
    after: Any
    is_ahead: bool

    def seconds(self) -> float:
        """Wait for its end and return the seconds between the events."""
        self.after.synchronize()
        return float(self.before.elapsed_time(self.after)) / 1000


def make(kind: str) -> Callable[[], object]:
    """Return a function that does one product; a graph does ten."""
    left, right = (torch.randn(SIZE, SIZE, device="cuda", dtype=torch.bfloat16) for _ in range(2))
    out = torch.empty_like(left)

    def product() -> object:
        return torch.mm(left, right, out=out)

    product()
    torch.cuda.synchronize()
    if kind == "compile":
        compiled: Callable[[], object] = torch.compile(lambda: torch.relu(left @ right))
        compiled()
        return compiled
    if kind == "eager":
        return product
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        for _ in range(10):
            product()
    replay: Callable[[], object] = graph.replay
    return replay


def feed(once: Callable[[], object], seconds: float) -> tuple[int, float, float]:
    """Do products for `seconds`; return how many, the seconds they took together, and the seconds of one."""
    flying: collections.deque[Product] = collections.deque()
    times: list[float] = []
    begun = time.monotonic()
    count = 0
    while time.monotonic() < begun + seconds:
        flying.append(launch(once, flying[-1].after if flying else None))
        count += 1
        if len(flying) == IN_FLIGHT:
            done = flying.popleft()
            took = done.seconds()
            times += [took] if done.is_ahead else []
    torch.cuda.synchronize()
    return count, time.monotonic() - begun, statistics.fmean(times)


def launch(once: Callable[[], object], former: torch.cuda.Event | None) -> Product:
    """Do one product between two events; `former` is the event behind the product before."""
    before, after = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    before.record()
    once()
    after.record()
    return Product(before, after, is_ahead=former is not None and not former.query())


def main() -> None:
    """Warm up for a second, then measure."""
    once = make(sys.argv[1])
    feed(once, 1)
    count, seconds, each = feed(once, float(sys.argv[2]))
    print(json.dumps({"count": count, "each_ms": each * 1000, "share": count * each / seconds}))


if __name__ == "__main__":
    main()
