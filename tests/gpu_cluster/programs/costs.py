"""costs.py: what a launch, an allocation and a training step take: medians in microseconds.

{"launch": 4.3, "allocation": 86.1, "step": 3120.5}
"""

import ctypes
import json
import statistics
import time
from collections.abc import Callable
from functools import partial

import torch

driver = ctypes.CDLL("libcuda.so.1")
WIDTH, BATCH = 4096, 512


def median_us(work: Callable[[], object], times: int, batch: int) -> float:
    """Return the median time of one call over `times` batches; the card is idle before and after each batch."""
    took = []
    for _ in range(times):
        torch.cuda.synchronize()
        began = time.perf_counter()
        for _ in range(batch):
            work()
        torch.cuda.synchronize()
        took.append((time.perf_counter() - began) / batch)
    return statistics.median(took) * 1e6


def allocation() -> None:
    pointer = ctypes.c_uint64()
    assert driver.cuMemAlloc_v2(ctypes.byref(pointer), ctypes.c_size_t(4096)) == 0
    assert driver.cuMemFree_v2(pointer) == 0


def training() -> Callable[[], None]:
    layers = [torch.nn.Sequential(torch.nn.Linear(WIDTH, WIDTH), torch.nn.ReLU()) for _ in range(4)]
    model = torch.nn.Sequential(*layers).cuda()
    optimizer = torch.optim.AdamW(model.parameters(), fused=True)
    samples = torch.randn(BATCH, WIDTH, device="cuda")

    def step() -> None:
        optimizer.zero_grad()
        model(samples).square().mean().backward()
        optimizer.step()

    return step


def main() -> None:
    one = torch.zeros(1, device="cuda")
    parts = {
        "launch": (partial(one.add_, 1), 40, 500),
        "allocation": (allocation, 40, 20),
        "step": (training(), 15, 10),
    }
    for work, _, batch in parts.values():  # code is loaded and memory is cached at the first calls
        median_us(work, 2, batch)
    print(json.dumps({name: median_us(*part) for name, part in parts.items()}), flush=True)


if __name__ == "__main__":
    main()
