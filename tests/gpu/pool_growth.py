"""Fragmented pools, which grow without notice, are charged at once, and their shrinking is noticed.

`python -m tests.gpu.pool_growth` needs an NVIDIA GPU. It says natively how long an allocation takes that lets a pool
grow, and one that does not, which is what tells them apart (ADR 14). Then a program under a limit allocates and frees
at random, and compares what is charged with what its pool has reserved. 1 where a pool grew in less than 10 us, or
where the two are apart. On the simulated driver it runs too.
"""

import ctypes
import json
import os
import random
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import limiter
from tests.cuda_calls import pools
from tests.gpu.driver_calls import cuda, quiet, start
from vgpu.domain.formats import region

MIB: Final = 1 << 20
UNIT: Final = 512  # a pool's pieces are multiples of it
LARGEST: Final = 60000  # of those: 29 MiB
OPERATIONS: Final = 4000
GROWTHS: Final = 300
LEAST_US: Final = 10.0
ALL: Final = 2**64 - 1
THRESHOLDS: Final = (0, 256 * MIB, ALL)
QUIET_S: Final = 0.3
LOOKS: Final = 0.05  # of the operations after which all is waited for
ROOT: Final = Path(limiter.__file__).parents[1]


class Pool:
    """One of the program's own, whose calls raise RuntimeError where they fail."""

    def __init__(self, threshold: int) -> None:
        result, self.handle = pools.create()
        check(result or pools.write(self.handle, pools.THRESHOLD, threshold))

    def allocate(self, size: int) -> int:
        result, pointer = pools.alloc(size, self.handle)
        check(result)
        return pointer

    def free(self, pointer: int) -> None:
        check(cuda.cuMemFreeAsync(ctypes.c_uint64(pointer), None))

    def reserved(self) -> int:
        return pools.read(self.handle, pools.RESERVED)

    def end(self) -> None:
        check(cuda.cuCtxSynchronize() or pools.destroy(self.handle))


def check(result: int) -> None:
    if result:
        raise RuntimeError(f"CUresult {result}")


def timed() -> dict[str, float]:
    """Times of allocations in us: the shortest that grew a pool, and the median of the others."""
    took: dict[bool, list[float]] = {True: [], False: []}
    check(start())
    for threshold in (0, ALL):
        pool = Pool(threshold)
        for _ in range(GROWTHS):
            before = pool.reserved()
            begun = time.perf_counter_ns()
            pointer = pool.allocate(20 * MIB)
            ended = time.perf_counter_ns()
            took[pool.reserved() > before].append((ended - begun) / 1000)
            pool.free(pointer)
            check(cuda.cuCtxSynchronize())
        pool.end()
    return {"grown_least_us": min(took[True]), "not_grown_median_us": statistics.median(took[False])}


def watched() -> dict[str, int]:
    """Allocates at random; counts growths, charges below the reserved bytes, and wrong views of free memory."""
    path, found = Path(os.environ["VGPU_REGION_FILE"]), {"grown": 0, "under": 0, "view off": 0}

    def charged() -> int:
        return sum(card.used_bytes for card in region.decode(path.read_bytes()).cards)

    check(start())
    time.sleep(QUIET_S)
    quiet()
    base = charged()
    for threshold in THRESHOLDS:
        pool, chance, held = Pool(threshold), random.Random(threshold), list[int]()
        for _ in range(OPERATIONS):
            before = pool.reserved()
            if held and chance.random() < 0.5:
                pool.free(held.pop(chance.randrange(len(held))))
            else:
                held.append(pool.allocate(UNIT * chance.randrange(1, LARGEST)))
            found["grown"] += pool.reserved() > before
            found["under"] += charged() - base < pool.reserved()
            if chance.random() < LOOKS:
                quiet()
                found["view off"] += charged() - base != pool.reserved()
        for pointer in held:
            pool.free(pointer)
        pool.end()
    return found


def answers() -> Iterator[dict[str, Any]]:
    """The results of both programs, the second under a limit."""
    with limiter.environment("4GiB", 100, "fixed", dict(os.environ)) as limited:
        for name, env in (("timed", dict(os.environ)), ("watched", limited)):
            command = [sys.executable, "-m", "tests.gpu.pool_growth", name]
            done = subprocess.run(command, env={**env, "PYTHONPATH": str(ROOT)}, stdout=subprocess.PIPE, check=True)
            yield json.loads(done.stdout)


def main() -> int:
    """Print both; 1 where one is wrong."""
    times, found = answers()
    sys.stdout.write(f"{times}\n{found}\n")
    wrong = times["grown_least_us"] < LEAST_US or not found["grown"] or found["under"] or found["view off"]
    return int(bool(wrong))


if __name__ == "__main__":
    programs = {"timed": timed, "watched": watched}
    if sys.argv[1:]:
        json.dump(programs[sys.argv[1]](), sys.stdout)
    else:
        sys.exit(main())
