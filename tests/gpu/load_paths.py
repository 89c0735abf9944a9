"""On a real GPU: PyTorch and the driver's own programs under a limit, by every way to load the library.

    python3 -m tests.gpu.load_paths [CASE ...]

Prints a line for each case; the exit status is 1 if one fails. Needs `limiter/libvgpushare.so`, and PyTorch
but for the cases of the driver and of nvidia-smi; those of the driver need `build/simgpu/gpuprobe`.
"""

import ctypes
import json
import os
import random
import subprocess
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import limiter
from vgpu.domain.formats import region

GIB = 1 << 30
MIB = 1 << 20
ROOT = Path(limiter.__file__).parents[1]
PROGRAM = Path(__file__).with_name("torch_program.py")
CHUNK = 2 << 20
TIMEOUT_S = 120
ALLOCATORS = ("", "expandable_segments:True", "backend:cudaMallocAsync")
KINDS = ("alloc", "pitch", "managed", "async", "vmm")
SIZES = (1, 512, 4096, 100_000, 1 << 20, (1 << 20) + 1, 3 << 20)

Fault = str  # empty where there is none


def run(*command: str, **env: str) -> str:
    """Standard output of the command. Raises ValueError with the end of its errors if it fails, or TimeoutExpired."""
    full = {**os.environ, "PYTHONPATH": str(ROOT), **env}
    done = subprocess.run(command, env=full, capture_output=True, text=True, check=False, timeout=TIMEOUT_S)
    sys.stderr.write(done.stderr)
    if done.returncode:
        raise ValueError(done.stderr.strip().rpartition("\n")[2] or f"exit code {done.returncode}")
    return done.stdout


def differences(seen: dict[str, Any], **expected: object) -> list[Fault]:
    return [f"{name} is {seen[name]}" for name, value in expected.items() if seen[name] != value]


def torch_program(*command: str, allocator: str = "") -> Fault:
    """`torch_program` under a limit of 4 GiB."""
    seen = json.loads(run(*command, PYTORCH_CUDA_ALLOC_CONF=allocator))
    seen["total"], seen["begins with"] = seen["info"][1], seen["info"][0] <= 4 * GIB
    seen["left"] = 0 < seen["free after 3 GiB"] <= GIB
    wanted = {"total": 4 * GIB, "properties": 4 * GIB, "begins with": True, "within": ["Tensor", "Tensor"]}
    wanted |= {"left": True, "past": "OutOfMemoryError", "goes on": 7, "computes": True}
    return "; ".join(differences(seen, **wanted))


def nvidia_smi() -> Fault:
    with limiter.environment("4GiB", 100, "fixed", os.environ) as env:
        command = ("nvidia-smi", "--query-gpu=memory.total,memory.used", "--format=csv,noheader,nounits", "--id=0")
        output = run(*command, **env).strip()
    return "" if output == "4096, 0" else f"nvidia-smi shows {output}"


def last_chunk(kind: str, *options: str) -> Fault:
    """Allocates up to the limit less the context; a pool grows by 32 MiB, and the driver uses some chunks itself."""
    probe = str(ROOT / "build/simgpu/gpuprobe")
    with limiter.environment("2GiB", 100, "fixed", os.environ) as env:
        done = subprocess.run(
            [probe, "fill", *options, "--kind", kind, "2"], env=env, capture_output=True, text=True, check=False
        )
        context = region.decode(Path(env["VGPU_REGION_FILE"]).read_bytes()).cards[0].context_bytes
    filled = json.loads(done.stdout)
    left = 2 * GIB - context - filled["mib"] * MIB
    is_good = filled["result"] == 2 and 0 <= left < (34 if kind == "async" else 8) * MIB
    return "" if is_good else f"{filled}, {left / MIB} MiB left"


def start() -> ctypes.CDLL:
    """The driver, with a context."""
    cuda, context = ctypes.CDLL("libcuda.so.1"), ctypes.c_void_p()
    cuda.cuInit(0), cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0), cuda.cuCtxSetCurrent(context)
    return cuda


def take(cuda: ctypes.CDLL, size: int) -> tuple[int, ctypes.c_uint64]:
    pointer = ctypes.c_uint64()
    return int(cuda.cuMemAlloc_v2(ctypes.byref(pointer), ctypes.c_size_t(size))), pointer


def free(cuda: ctypes.CDLL) -> int:
    available, total = ctypes.c_size_t(), ctypes.c_size_t()
    cuda.cuMemGetInfo_v2(ctypes.byref(available), ctypes.byref(total))
    return available.value


def use_small_sizes() -> None:
    """Allocates and frees at random, and prints the decrease of free memory from time to time."""
    cuda = start()
    begun, chance, seen = free(cuda), random.Random(5), []
    held: list[ctypes.c_uint64] = []
    for step in range(2000):
        if held and chance.random() < 0.45:
            assert cuda.cuMemFree_v2(held.pop(chance.randrange(len(held)))) == 0
        else:
            result, pointer = take(cuda, chance.choice(SIZES))
            assert result == 0
            held.append(pointer)
        if step % 20 == 0:
            seen.append(begun - free(cuda))
    sys.stdout.write(json.dumps(seen))


def small_sizes() -> Fault:
    """Free memory falls as it does natively, but for the few chunks that the driver had begun for itself.

    They are charged to the first pieces in them until the next measurement, which may be after the look before them.
    """
    command = (sys.executable, "-m", "tests.gpu.load_paths", "use_small_sizes")
    native = json.loads(run(*command))
    with limiter.environment("8GiB", 100, "fixed", os.environ) as env:
        ours = json.loads(run(*command, **env))
    over = [b - a for a, b in zip(native, ours, strict=True)]
    return "" if -4 * CHUNK <= min(over) <= max(over) <= 4 * CHUNK else f"{min(over)} to {max(over)} bytes over native"


def use_resets() -> None:
    """Repeatedly fills the context up to the limit of 4 GiB and resets it."""
    cuda = start()
    for _ in range(3):
        start()
        assert [take(cuda, size)[0] for size in (3 * GIB, 4096, 8192, 2 * GIB)] == [0, 0, 0, 2]
        assert cuda.cuDevicePrimaryCtxReset_v2(0) == 0


def resets() -> Fault:
    with limiter.environment("4GiB", 100, "fixed", os.environ) as env:
        run(sys.executable, "-m", "tests.gpu.load_paths", "use_resets", **env)
    return ""


def use_deepbind() -> None:
    """Allocates from a driver that is opened past a preloaded library."""
    loader, sizes = ctypes.CDLL(None), (GIB, 8 * GIB)
    loader.dlopen.restype = loader.dlsym.restype = ctypes.c_void_p
    driver = ctypes.c_void_p(loader.dlopen(b"libcuda.so.1", os.RTLD_NOW | os.RTLD_DEEPBIND))

    def call(name: str, *arguments: object) -> int:
        function: Callable[..., int] = ctypes.CFUNCTYPE(ctypes.c_int)(loader.dlsym(driver, name.encode()))
        return function(*arguments)

    pointer = ctypes.c_void_p()
    started = call("cuInit", 0) or call("cuDevicePrimaryCtxRetain", ctypes.byref(pointer), 0)
    started = started or call("cuCtxSetCurrent", pointer)
    taken = [call("cuMemAlloc_v2", ctypes.byref(pointer), ctypes.c_size_t(size)) for size in sizes]
    sys.stdout.write(json.dumps([started, *taken]))


def deepbind() -> Fault:
    """The driver gives 1 GiB, and not the whole limit; natively it gives both."""
    command = (sys.executable, "-m", "tests.gpu.load_paths", "use_deepbind")
    native = json.loads(run(*command))
    with limiter.environment("8GiB", 100, "fixed", os.environ) as env:
        ours = json.loads(run(*command, **env))
    return "" if (native, ours) == ([0, 0, 0], [0, 0, 2]) else f"results are {native} natively, {ours} limited"


VGPU_RUN = (sys.executable, "-m", "vgpu.cli", "run", "--gpu-mem", "4Gi", "--", sys.executable, str(PROGRAM))
PRELOAD = (sys.executable, str(PROGRAM), "preload")
MODULE = (sys.executable, "-m", "limiter", "--memory", "4GiB", "--", str(PROGRAM))
PROGRAMS = {
    "use_small_sizes": use_small_sizes,
    "use_resets": use_resets,
    "use_deepbind": use_deepbind,
}
CASES: dict[str, Callable[[], Fault]] = {
    **{
        f"vgpu run, {allocator or 'native'}": partial(torch_program, *VGPU_RUN, allocator=allocator)
        for allocator in ALLOCATORS
    },
    **{
        f"preload, {allocator or 'native'}": partial(torch_program, *PRELOAD, allocator=allocator)
        for allocator in ALLOCATORS
    },
    "by the module": partial(torch_program, *MODULE),
    "nvidia-smi": nvidia_smi,
    **{f"to the last chunk, {kind}": partial(last_chunk, kind) for kind in KINDS},
    **{f"to the last chunk, {kind}, cuGetProcAddress": partial(last_chunk, kind, "--proc") for kind in KINDS},
    "small sizes": small_sizes,
    "resets": resets,
    "RTLD_DEEPBIND": deepbind,
}


def judge(name: str) -> Fault:
    """The faults of a case."""
    try:
        return CASES[name]()
    except (subprocess.SubprocessError, OSError, ValueError, KeyError, IndexError) as error:
        return f"{type(error).__name__}: {error}"


def main(names: list[str]) -> int:
    """Judge the cases, all by default."""
    wrong = 0
    for name in names or CASES:
        fault = judge(name)
        wrong += bool(fault)
        sys.stdout.write(f"{name}: {fault or 'as it must be'}\n")
        sys.stdout.flush()
    return 1 if wrong else 0


if __name__ == "__main__":
    if sys.argv[-1] in PROGRAMS:
        PROGRAMS[sys.argv[-1]]()
    else:
        sys.exit(main(sys.argv[1:]))
