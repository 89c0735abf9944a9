"""A process that takes memory of each class and releases its contexts: each line of input is an expression over these.

`python -m tests.gpu.context_worker` (its client is tests/gpu/context_ends.py). Results are those of the driver.
"""

import ctypes
import json
import sys
import time
from ctypes import POINTER, c_int, c_size_t, c_ubyte, c_uint64, c_void_p

cuda = ctypes.CDLL("libcuda.so.1")
ON_DEVICE, PINNED = 1, 1

# Spins for a number of clock cycles.
_PTX = b"""
.version 6.0
.target sm_50
.address_size 64
.visible .entry spin(.param .u64 cycles) {
  .reg .u64 %a<4>; .reg .pred %is_over;
  ld.param.u64 %a0, [cycles]; mov.u64 %a1, %clock64;
again: mov.u64 %a2, %clock64; sub.u64 %a3, %a2, %a1; setp.lt.u64 %is_over, %a3, %a0;
  @%is_over bra again;
  ret;
}
"""


class _Location(ctypes.Structure):
    _fields_ = (("type", c_int), ("id", c_int))


class _PoolProperties(ctypes.Structure):
    _fields_ = (
        ("type", c_int),
        ("handles", c_int),
        ("location", _Location),
        ("win32", c_void_p),
        ("rest", c_ubyte * 64),
    )


class _ChunkProperties(ctypes.Structure):
    _fields_ = (
        ("type", c_int),
        ("handles", c_int),
        ("location", _Location),
        ("win32", c_void_p),
        ("flags", c_ubyte * 8),
    )


class _AllocationNode(ctypes.Structure):
    _fields_ = (
        ("pool", _PoolProperties),
        ("access", c_void_p),
        ("accesses", c_size_t),
        ("size", c_size_t),
        ("pointer", c_uint64),
    )


_POOL = _PoolProperties(type=PINNED, location=_Location(ON_DEVICE, 0))
_CHUNK = _ChunkProperties(type=PINNED, location=_Location(ON_DEVICE, 0))


def start() -> int:
    """Initialise CUDA, and make the primary context current."""
    return int(cuda.cuInit(0) or retain())


def retain() -> int:
    """Retain the primary context, and make it current."""
    context = c_void_p()
    return int(cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0) or cuda.cuCtxSetCurrent(context))


def release() -> int:
    """Release a reference after all work is done."""
    return int(cuda.cuCtxSynchronize() or cuda.cuDevicePrimaryCtxRelease_v2(0))


def take(kind: str, mib: int) -> int:
    """Take memory of a class: plain, chunk, default pool, pool, graph."""
    size, out = c_size_t(mib << 20), c_uint64()
    if kind == "plain":
        return int(cuda.cuMemAlloc_v2(ctypes.byref(out), size))
    if kind == "chunk":
        return int(cuda.cuMemCreate(ctypes.byref(out), size, ctypes.byref(_CHUNK), c_uint64(0)))
    if kind == "default pool":
        return int(cuda.cuMemAllocAsync(ctypes.byref(out), size, None))
    return _take_from_pool(size) if kind == "pool" else _take_by_graph(size)


def _take_from_pool(size: c_size_t) -> int:
    pool, out = c_void_p(), c_uint64()
    result = cuda.cuMemPoolCreate(ctypes.byref(pool), ctypes.byref(_POOL))
    return int(result or cuda.cuMemAllocFromPoolAsync(ctypes.byref(out), size, pool, None))


def _take_by_graph(size: c_size_t) -> int:
    graph, added, ready = c_void_p(), c_void_p(), c_void_p()
    node = _AllocationNode(pool=_POOL, size=size)
    return int(
        cuda.cuGraphCreate(ctypes.byref(graph), 0)
        or cuda.cuGraphAddMemAllocNode(ctypes.byref(added), graph, None, c_size_t(0), ctypes.byref(node))
        or cuda.cuGraphInstantiateWithFlags(ctypes.byref(ready), graph, c_uint64(0))
        or cuda.cuGraphLaunch(ready, None)
    )


def most(step_mib: int) -> int:
    """Take plain memory in steps until a step is refused, and return the MiB."""
    taken = 0
    while take("plain", step_mib) == 0:
        taken += step_mib
    return taken


def _kernel() -> c_void_p:
    module, function = c_void_p(), c_void_p()
    result = cuda.cuModuleLoadData(ctypes.byref(module), _PTX)
    result = result or cuda.cuModuleGetFunction(ctypes.byref(function), module, b"spin")
    if result:
        raise RuntimeError(f"the kernel: {result}")
    return function


def _launch(function: c_void_p, cycles: int, blocks: int = 1) -> None:
    argument = c_uint64(cycles)
    arguments = (POINTER(c_uint64) * 1)(ctypes.pointer(argument))
    cuda.cuLaunchKernel(function, blocks, 1, 1, 1, 1, 1, 0, None, arguments, None)


def burn(seconds: float) -> int:
    """Keep the card busy."""
    function, until = _kernel(), time.monotonic() + seconds
    while time.monotonic() < until:
        for _ in range(20):
            _launch(function, 1_000_000, 2000)
        cuda.cuCtxSynchronize()
    return 0


def spares(count: int) -> list[float]:
    """Release spare references while work is queued, and return ms: p50, p99, longest."""
    function, spent, context = _kernel(), [], c_void_p()
    for _ in range(count):
        _launch(function, 20_000)
        cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0)
        begun = time.perf_counter()
        cuda.cuDevicePrimaryCtxRelease_v2(0)
        spent.append(1e3 * (time.perf_counter() - begun))
    spent.sort()
    return [round(ms, 4) for ms in (spent[count // 2], spent[count * 99 // 100], spent[-1])]


if __name__ == "__main__":
    for line in sys.stdin:
        sys.stdout.write(f"{json.dumps(eval(line))}\n")  # expressions of the test
        sys.stdout.flush()
