"""Matrix products in PyTorch, eagerly, in a CUDA graph or compiled, and the GPU time that they took.

    python -m benchmarks.compute.torch_load eager|graph|compile SECONDS

A product's time is the mean between two events around it, but for those that were not launched in time, which took a
multiple of the median: between their events the card has waited too. Prints JSON.
"""

import collections
import json
import statistics
import sys
import time
from collections.abc import Callable, Sequence

import torch

SIZE = 4096
IN_FLIGHT = 16
IN_TIME = 1.5  # of the median


def make(kind: str) -> Callable[[], object]:
    """Return what does one product (a graph ten) when it is called."""
    left, right = (torch.randn(SIZE, SIZE, device="cuda", dtype=torch.bfloat16) for _ in range(2))
    out = torch.empty_like(left)

    def product() -> object:
        return torch.mm(left, right, out=out)

    product()
    torch.cuda.synchronize()
    if kind == "compile":
        compiled = torch.compile(lambda: torch.relu(left @ right))
        compiled()
        return compiled
    if kind == "eager":
        return product
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        for _ in range(10):
            product()
    return graph.replay


def feed(once: Callable[[], object], seconds: float) -> tuple[int, float, float]:
    """Do it again and again; return how often, the seconds that took, and the seconds of one."""
    flying: collections.deque[tuple[torch.cuda.Event, torch.cuda.Event]] = collections.deque()
    times: list[float] = []
    begun = time.monotonic()
    count = 0
    while time.monotonic() < begun + seconds:
        pair = (torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True))
        pair[0].record()
        once()
        pair[1].record()
        flying.append(pair)
        count += 1
        if len(flying) == IN_FLIGHT:
            first, last = flying.popleft()
            last.synchronize()
            times.append(first.elapsed_time(last) / 1000)
    torch.cuda.synchronize()
    return count, time.monotonic() - begun, mean_in_time(times)


def mean_in_time(times: Sequence[float]) -> float:
    """Return the mean of those that are not far above the median."""
    most = IN_TIME * statistics.median(times)
    return statistics.fmean(each for each in times if each <= most)


def main() -> None:
    """Feed the card for a second, then for as long as asked."""
    once = make(sys.argv[1])
    feed(once, 1)
    count, seconds, each = feed(once, float(sys.argv[2]))
    print(json.dumps({"count": count, "each_ms": each * 1000, "share": count * each / seconds}))


if __name__ == "__main__":
    main()
