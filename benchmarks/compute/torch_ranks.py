"""One of two ranks that compute and wait for each other; prints whether all sums were right.

RANK=0 WORLD_SIZE=2 MASTER_ADDR=127.0.0.1 python -m benchmarks.compute.torch_ranks gloo|nccl

gloo: both ranks on the first card; nccl: each rank on a card of its own.
"""

import datetime as dt
import importlib
import json
import os
import sys
from typing import Any

torch: Any = importlib.import_module("torch")  # not installed where types are checked
distributed: Any = importlib.import_module("torch.distributed")

ROUNDS = 100
WIDTH = 2048
PORT = {"gloo": "29511", "nccl": "29512"}


def main() -> None:
    """Compute, add up over the ranks, and print JSON."""
    backend, rank, world = sys.argv[1], int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    if backend == "nccl" and torch.cuda.device_count() < world:
        print(json.dumps({"skipped": "needs two cards"}))
        return
    os.environ["MASTER_PORT"] = PORT[backend]
    torch.cuda.set_device(rank if backend == "nccl" else 0)
    distributed.init_process_group(backend, timeout=dt.timedelta(seconds=60))
    right = all(once(rank, world, number) for number in range(ROUNDS))
    distributed.destroy_process_group()
    print(json.dumps({"right": right}))


def once(rank: int, world: int, number: int) -> bool:
    """Add up a product of each rank; return whether the sum is right."""
    ones = torch.full((WIDTH, WIDTH), float(rank + 1), device="cuda")
    product = ones @ torch.eye(WIDTH, device="cuda") + number
    distributed.all_reduce(product)
    expected = sum(range(1, world + 1)) + world * number
    return bool((product == expected).all().item())


if __name__ == "__main__":
    main()
