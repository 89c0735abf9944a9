"""A process that calls CUDA and NVML for a test: `python -m tests.cuda_calls.session` (the client is simgpu.session).

Evaluates each line of standard input as an expression over the functions below, and prints the value as JSON. Results
of the driver are numbers, and so are NVML's errors. Expressions may name the other modules of this folder too:
`arrays.plain(64, 64)`.
"""

import ctypes
import json
import os
import signal
import sys
from typing import TYPE_CHECKING

import pynvml

from tests.cuda_calls import (
    arrays,
    captures,
    collectives,
    copies,
    delays,
    external,
    graphs,
    green,
    host_functions,
    ipc,
    kernels,
    launches,
    multicast,
    pools,
    vmm,
)

if TYPE_CHECKING:
    from collections.abc import Callable

# Names for the expressions.
__all__ = (
    "arrays",
    "captures",
    "collectives",
    "copies",
    "delays",
    "external",
    "graphs",
    "green",
    "host_functions",
    "ipc",
    "kernels",
    "launches",
    "multicast",
    "pools",
    "vmm",
)

cuda = ctypes.CDLL("libcuda.so.1")
U64 = ctypes.c_uint64


class OldProcess(ctypes.Structure):
    """An entry of the first version of NVML's process lists, which nvidia-ml-py no longer has."""

    _fields_ = (("pid", ctypes.c_uint), ("usedGpuMemory", ctypes.c_ulonglong))


def start(device: int = 0) -> int:
    """Result of initializing CUDA and of making the device's primary context current."""
    context = ctypes.c_void_p()
    result = cuda.cuInit(0) or cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), device)
    return int(result or cuda.cuCtxSetCurrent(context))


def alloc(size: int, function: str = "cuMemAlloc_v2") -> tuple[int, int]:
    """Result and pointer of an allocation function."""
    pointer = U64()
    rest = {"cuMemAllocManaged": (1,), "cuMemAllocAsync": (None,)}.get(function, ())
    return cuda[function](ctypes.byref(pointer), ctypes.c_size_t(size), *rest), pointer.value


def free(pointer: int, function: str = "cuMemFree_v2") -> int:
    """Result of a function that frees."""
    rest = (None,) if function == "cuMemFreeAsync" else ()
    return int(cuda[function](U64(pointer), *rest))


def made(function: str, *arguments: object) -> tuple[int, int]:
    """Result and value of a function that writes a handle or an address into its first argument."""
    out = U64()
    return cuda[function](ctypes.byref(out), *arguments), out.value


def fill_card(size: int) -> int:
    """Number of allocations of that size that succeeded before one failed; they are kept."""
    count = 0
    while alloc(size)[0] == 0:
        count += 1
    return count


def contend(size: int, wins: int) -> tuple[int, int]:
    """Allocates and frees until `wins` allocations succeeded: how many failed, and NVML's highest sum of bytes."""
    refusals = most = 0
    while wins:
        result, pointer = alloc(size)
        if result == 0:
            wins -= 1
            most = max(most, sum(held for _, held in processes()))
            free(pointer)
        refusals += result != 0
    return refusals, most


def fill(pointer: int, size: int) -> int:
    """Result of cuMemsetD8."""
    return int(cuda.cuMemsetD8_v2(U64(pointer), 0, ctypes.c_size_t(size)))


def info() -> tuple[int, int, int]:
    """Result, free and total bytes of cuMemGetInfo."""
    available, total = ctypes.c_size_t(), ctypes.c_size_t()
    return cuda.cuMemGetInfo_v2(ctypes.byref(available), ctypes.byref(total)), available.value, total.value


def device_attribute(which: int, device: int = 0) -> int:
    """The value of cuDeviceGetAttribute."""
    value = ctypes.c_int()
    result = cuda.cuDeviceGetAttribute(ctypes.byref(value), which, device)
    return -result if result else value.value


def uuids() -> list[str]:
    """UUIDs of the CUDA devices, in their order."""
    found = []
    count = ctypes.c_int()
    cuda.cuDeviceGetCount(ctypes.byref(count))
    for device in range(count.value):
        raw = (ctypes.c_ubyte * 16)()
        cuda.cuDeviceGetUuid_v2(raw, device)
        text = bytes(raw).hex()
        found.append(f"GPU-{text[:8]}-{text[8:12]}-{text[12:16]}-{text[16:20]}-{text[20:]}")
    return found


def proc(symbol: str, version: int, flags: int = 0) -> tuple[int, int | None, int]:
    """Result, address and status of cuGetProcAddress_v2."""
    function, status = ctypes.c_void_p(), ctypes.c_int(-1)
    result = cuda.cuGetProcAddress_v2(
        symbol.encode(), ctypes.byref(function), version, U64(flags), ctypes.byref(status)
    )
    return result, function.value, status.value


def symbol(name: str) -> int | None:
    """Address of an exported symbol; None when it is not exported."""
    try:
        return ctypes.cast(cuda[name], ctypes.c_void_p).value
    except AttributeError:
        return None


def nvml(name: str, *arguments: object) -> object:
    """Value of a function of nvidia-ml-py, or the number of its error."""
    function: Callable[..., object] = getattr(pynvml, name)
    try:
        value = function(*arguments)
    except pynvml.NVMLError as error:
        return error.value
    return value


def card(index: int = 0) -> object:
    """NVML's handle of a card."""
    return pynvml.nvmlDeviceGetHandleByIndex(index)


def processes(index: int = 0) -> list[tuple[int, int]]:
    """PID and bytes of each process that NVML lists for the card."""
    return [(p.pid, p.usedGpuMemory) for p in pynvml.nvmlDeviceGetComputeRunningProcesses(card(index))]


def listed(function: str, room: int = 8) -> tuple[int, object]:
    """Result of a process list of NVML, in any version, with that room; and the list, or the number of processes."""
    entry = pynvml.c_nvmlProcessInfo_v2_t if function[-3:] in {"_v2", "_v3"} else OldProcess
    found = (entry * room)()
    count = ctypes.c_uint(room)
    result = ctypes.CDLL("libnvidia-ml.so.1")[function](card(), ctypes.byref(count), found if room else None)
    return result, count.value if result else [(p.pid, p.usedGpuMemory) for p in found[: count.value]]


def memory(index: int = 0) -> dict[str, int]:
    """Total, reserved, free and used bytes by nvmlDeviceGetMemoryInfo_v2."""
    found = pynvml.nvmlDeviceGetMemoryInfo(card(index), pynvml.nvmlMemory_v2)
    return {name: getattr(found, name) for name in ("total", "reserved", "free", "used")}


def in_fork(expression: str) -> object:
    """Value of the expression in a child of fork, which then ends."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.write(writing, json.dumps(evaluate(expression)).encode())
        os._exit(0)
    os.close(writing)
    with os.fdopen(reading) as answer:
        value: object = json.load(answer)
    os.waitpid(child, 0)
    return value


def fork_and_stay() -> int:
    """PID of a running child of fork that keeps the parent's open files until it is killed."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.closerange(0, 3)
        os.close(reading)
        os.write(writing, b"!")
        signal.pause()
    os.read(reading, 1)
    return child


def evaluate(expression: str) -> object:
    """Value of one expression."""
    return eval(expression, globals())  # the only writer is the test that started this process


if __name__ == "__main__":
    for line in sys.stdin:
        sys.stdout.write(f"{json.dumps(evaluate(line))}\n")
        sys.stdout.flush()
