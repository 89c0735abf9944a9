"""On a real GPU: PyTorch and the driver's own programs under a limit of 4 GiB, through both doors (`make gpu`)."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import limiter
from limiter import launch
from vgpu import region

pytestmark = pytest.mark.gpu

GIB = 1 << 30
MIB = 1 << 20
ROOT = Path(limiter.__file__).parents[1]
PROGRAM = Path(__file__).with_name("gpu_program.py")
CHUNK = 2 << 20


def has_torch(python: str) -> bool:
    return subprocess.run([python, "-c", "import torch"], check=False, capture_output=True).returncode == 0


@pytest.fixture(scope="session")
def python() -> str:
    """An interpreter with PyTorch: this one, or the system's."""
    for candidate in (sys.executable, shutil.which("python3", path="/opt/torch/.venv/bin:" + os.environ["PATH"])):
        if candidate and has_torch(candidate):
            return candidate
    raise AssertionError("no Python with PyTorch on this machine")


def run(*command: str, **env: str) -> subprocess.CompletedProcess[str]:
    done = subprocess.run(
        command, env={**os.environ, "PYTHONPATH": str(ROOT), **env}, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return done


def check(seen: dict[str, Any]) -> None:
    assert seen["info"][1] == seen["properties"] == 4 * GIB
    assert seen["info"][0] <= 4 * GIB
    assert seen["within"] == ["Tensor", "Tensor"]
    assert 0 < seen["free after 3 GiB"] <= GIB
    assert seen["past"] == "OutOfMemoryError"
    assert (seen["goes on"], seen["computes"]) == (7, True)


@pytest.mark.parametrize("allocator", ["", "expandable_segments:True", "backend:cudaMallocAsync"])
def test_torch_under_vgpu_run(python: str, allocator: str) -> None:
    limited = (sys.executable, "-m", "cli", "run", "--gpu-mem", "4Gi", "--", python, str(PROGRAM))
    check(json.loads(run(*limited, PYTORCH_CUDA_ALLOC_CONF=allocator).stdout))


@pytest.mark.parametrize("allocator", ["", "expandable_segments:True", "backend:cudaMallocAsync"])
def test_torch_that_limits_itself(python: str, allocator: str) -> None:
    check(json.loads(run(python, str(PROGRAM), "preload", PYTORCH_CUDA_ALLOC_CONF=allocator).stdout))


def test_torch_run_by_the_module(python: str) -> None:
    check(json.loads(run(python, "-m", "limiter", "--memory", "4GiB", "--", str(PROGRAM)).stdout))


def test_nvidia_smi_shows_the_limit() -> None:
    with launch.environment("4GiB", None, "fixed", os.environ) as env:
        asked = ("nvidia-smi", "--query-gpu=memory.total,memory.used", "--format=csv,noheader,nounits", "--id=0")
        assert run(*asked, **env).stdout.strip() == "4096, 0"


@pytest.mark.parametrize("options", [(), ("--proc",)])
@pytest.mark.parametrize("kind", ["alloc", "pitch", "managed", "async", "vmm"])
def test_a_driver_program_gets_the_limit_to_the_last_chunk(kind: str, options: tuple[str, ...]) -> None:
    """What its context takes is of the limit; a pool takes 32 MiB at a time, the driver a few chunks for itself."""
    probe = str(ROOT / "build/driver/gpuprobe")
    with launch.environment("2GiB", None, "fixed", os.environ) as env:
        filled = json.loads(run(probe, "fill", *options, "--kind", kind, "2", **env).stdout)
        context = region.decode(Path(env["VGPU_REGION_FILE"]).read_bytes()).cards[0].context_bytes
    assert filled["result"] == 2
    assert 0 <= 2 * GIB - context - filled["mib"] * MIB < (34 if kind == "async" else 8) * MIB


SMALL = """
import ctypes, random
cuda = ctypes.CDLL("libcuda.so.1")
context, pointer, free, total = ctypes.c_void_p(), ctypes.c_uint64(), ctypes.c_size_t(), ctypes.c_size_t()
cuda.cuInit(0), cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0), cuda.cuCtxSetCurrent(context)
def left():
    cuda.cuMemGetInfo_v2(ctypes.byref(free), ctypes.byref(total))
    return free.value
begun, chance, held, seen = left(), random.Random(5), [], []
for step in range(2000):
    if held and chance.random() < 0.45:
        assert cuda.cuMemFree_v2(held.pop(chance.randrange(len(held)))) == 0
    else:
        size = chance.choice([1, 512, 4096, 100_000, 1 << 20, (1 << 20) + 1, 3 << 20])
        assert cuda.cuMemAlloc_v2(ctypes.byref(pointer), ctypes.c_size_t(size)) == 0
        held.append(ctypes.c_uint64(pointer.value))
    if step % 20 == 0:
        seen.append(begun - left())
print(seen)
"""


def test_what_is_charged_is_what_the_driver_takes(python: str) -> None:
    """Free memory falls as it does natively, but for the few chunks that the driver had begun for itself.

    They are charged to the first pieces in them until the next measurement, which may be after the look before them.
    """
    native = json.loads(run(python, "-c", SMALL).stdout)
    with launch.environment("8GiB", None, "fixed", os.environ) as env:
        ours = json.loads(run(python, "-c", SMALL, **env).stdout)
    over = [b - a for a, b in zip(native, ours, strict=True)]
    assert -4 * CHUNK <= min(over) <= max(over) <= 4 * CHUNK


RESET = """
import ctypes
cuda = ctypes.CDLL("libcuda.so.1")
context, pointer = ctypes.c_void_p(), ctypes.c_uint64()
cuda.cuInit(0)
for _ in range(3):
    cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0), cuda.cuCtxSetCurrent(context)
    for size in (3 << 30, 4096, 8192):
        assert cuda.cuMemAlloc_v2(ctypes.byref(pointer), ctypes.c_size_t(size)) == 0
    assert cuda.cuMemAlloc_v2(ctypes.byref(pointer), ctypes.c_size_t(2 << 30)) == 2
    assert cuda.cuDevicePrimaryCtxReset_v2(0) == 0
"""


def test_a_reset_context_gives_its_memory_back(python: str) -> None:
    with launch.environment("4GiB", None, "fixed", os.environ) as env:
        run(python, "-c", RESET, **env)


def test_what_is_charged_is_what_the_process_holds_at_every_quiet_moment(python: str) -> None:
    run(python, "-m", "tests.limiter.gpu_overhead")
