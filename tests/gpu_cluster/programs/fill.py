"""fill.py FRAMEWORK [HOLD_S]: what a framework sees and gets, in MiB, and the sum of a thousand ones.

{"total": 8192, "got": 7424, "refused": true, "sum": 1000.0}
"""

import json
import os
import sys
import time

PIECE = 256 * 1024 * 1024


def torch_fill() -> dict[str, object]:
    import torch

    held, refused = [], False
    total = torch.cuda.mem_get_info()[1]
    try:
        while True:
            held.append(torch.empty(PIECE, dtype=torch.uint8, device="cuda"))
    except torch.OutOfMemoryError:
        refused = True
    got = sum(piece.numel() for piece in held)
    HELD.extend(held[:-4])
    del held
    torch.cuda.empty_cache()
    return {
        "total": total >> 20,
        "got": got >> 20,
        "refused": refused,
        "sum": float(torch.ones(1000, device="cuda").sum()),
    }


def cupy_fill() -> dict[str, object]:
    import cupy

    held, refused = [], False
    total = cupy.cuda.runtime.memGetInfo()[1]
    try:
        while True:
            held.append(cupy.cuda.runtime.malloc(PIECE))
    except cupy.cuda.runtime.CUDARuntimeError as error:
        refused = "OutOfMemory" in str(error) or "MemoryAllocation" in str(error)
    got = len(held) * PIECE
    for pointer in held[-4:]:
        cupy.cuda.runtime.free(pointer)
    ones = cupy.ones(1000, dtype=cupy.float32)
    return {"total": total >> 20, "got": got >> 20, "refused": refused, "sum": float((ones * ones).sum())}


def jax_fill() -> dict[str, object]:
    os.environ["XLA_PYTHON_CLIENT_MEM_FRACTION"] = "0.9"  # of what the card shows, taken at once
    import jax
    import jax.numpy as jnp

    (device,) = jax.devices("gpu")
    got, refused = device.memory_stats()["bytes_limit"], False
    total = got / 0.9
    HELD.append(jnp.zeros(PIECE, dtype=jnp.uint8).block_until_ready())
    try:
        jnp.zeros(int(total), dtype=jnp.uint8).block_until_ready()
    except Exception as error:  # noqa: BLE001 - jaxlib's own class, whose place differs by version
        refused = "RESOURCE_EXHAUSTED" in str(error)
    return {"total": int(total) >> 20, "got": got >> 20, "refused": refused, "sum": float(jnp.ones(1000).sum())}


HELD: list[object] = []


def main(framework: str, hold_s: float = 0.0) -> None:
    result = {"torch": torch_fill, "cupy": cupy_fill, "jax": jax_fill}[framework]()
    print(json.dumps({"framework": framework, **result}), flush=True)
    time.sleep(hold_s)


if __name__ == "__main__":
    main(sys.argv[1], *map(float, sys.argv[2:3]))
