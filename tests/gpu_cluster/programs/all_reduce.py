"""all_reduce.py WORLD [RANK]: sums over all ranks with NCCL; without RANK, this process starts all of them.

{"rank": 0, "device_count": 2, "sum_is_right": true, "transports": ["P2P"]}
"""

import json
import os
import re
import sys
import tempfile
from pathlib import Path

import torch
import torch.distributed as dist
import torch.multiprocessing as mp

SIZE = 256 * 1024 * 1024 // 4


def run(rank: int, world: int, device: int) -> None:
    log = Path(tempfile.mkdtemp()) / "nccl.log"
    os.environ |= {"NCCL_DEBUG": "INFO", "NCCL_DEBUG_FILE": str(log), "NCCL_SOCKET_IFNAME": "lo"}
    torch.cuda.set_device(device)
    dist.init_process_group("nccl", init_method="tcp://127.0.0.1:29511", rank=rank, world_size=world)
    tensor = torch.full((SIZE,), float(rank + 1), device="cuda")
    dist.all_reduce(tensor)
    is_right = bool((tensor == world * (world + 1) / 2).all())
    for _ in range(10):
        dist.all_reduce(tensor)
    torch.cuda.synchronize()
    dist.destroy_process_group()
    transports = sorted(set(re.findall(r"via ([A-Z0-9]+)", log.read_text())))
    seen = {"rank": rank, "device_count": torch.cuda.device_count(), "sum_is_right": is_right, "transports": transports}
    print(json.dumps(seen), flush=True)


def main(world: int, rank: int | None = None) -> None:
    if rank is not None:
        run(rank, world, 0)
        return
    mp.spawn(run_on_own_card, args=(world,), nprocs=world)


def run_on_own_card(rank: int, world: int) -> None:
    run(rank, world, rank)


if __name__ == "__main__":
    main(*map(int, sys.argv[1:3]))
